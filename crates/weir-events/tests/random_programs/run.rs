//! Running a program with this crate: its processes as threads, or as tasks in a random order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::common::TOO_LONG;
use crate::model::Outcomes;
use crate::program::{Action, Branch, FORWARDED, Operation, Program, Random, Step, result, step_key};
use crate::state::Results;
use weir_events::*;

/// A value on a channel. Cloning it, which a send does when it is tried and when it is registered, may take a while, so
/// that threads meet between the branches of a choice.
struct Value(u32);

impl Clone for Value {
    fn clone(&self) -> Self {
        pause();
        Value(self.0)
    }
}

/// Lets the other threads go on for a random while, on a thread that runs a process.
fn pause() {
    let seed = PAUSES.get();
    if seed == 0 {
        return;
    }
    let mut random = Random(seed);
    PAUSES.set(random.next() | 1);
    match random.below(4) {
        0 => std::thread::yield_now(),
        1 => (0..random.below(300)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}

/// Returns a branch that never takes effect, and that pauses when it is tried and when it is registered.
fn pausing() -> Event<u32> {
    from_future_with(|| {
        std::future::poll_fn(|_| {
            pause();
            Poll::Pending
        })
    })
}

thread_local! {
    /// Seed of the pauses of this thread; 0 on a thread that runs tasks.
    static PAUSES: Cell<u64> = const { Cell::new(0) };
}

/// One run of a program.
#[derive(Clone)]
struct Run {
    channels: Vec<Channel<Value>>,
    results: Arc<Mutex<Results>>,
    /// Fired when nothing more can happen, so that waiting processes end.
    stop: Signal,
    actions_as: Actions,
}

/// The way in which post-consumption actions run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Actions {
    Threads,
    Tasks,
}

impl Run {
    fn new(program: &Program, actions_as: Actions) -> Self {
        let channel = |&capacity: &usize| match capacity {
            usize::MAX => Channel::unbounded(),
            capacity => Channel::bounded(capacity),
        };
        let channels = program.channels.iter().map(channel).collect();
        Run { channels, results: Arc::default(), stop: Signal::new(), actions_as }
    }

    fn record(&self, key: u32, value: u32) {
        self.results.lock().unwrap().insert(key, value);
    }

    /// The event of a choice, written in one of several equivalent forms.
    fn choice(&self, branches: &[Branch], form: u64) -> Event<u32> {
        let mut random = Random(form);
        let mut events: Vec<_> = branches
            .iter()
            .enumerate()
            .map(|(number, branch)| disguised(&mut random, self.branch(number, *branch)))
            .collect();
        if PAUSES.get() != 0 {
            events.extend((0..Random(PAUSES.get()).below(3)).map(|_| pausing()));
        }
        match random.below(4) {
            0 if events.len() > 1 => {
                let last = events.split_off(events.len() / 2);
                choose([choose(events), never(), choose(last)])
            }
            1 => choose([choose([]), choose(events)]),
            _ => choose(events),
        }
    }

    fn branch(&self, number: usize, branch: Branch) -> Event<u32> {
        let channel = &self.channels[branch.channel];
        match (branch.action, branch.operation) {
            (Some(_), _) => self.asynchronous(branch).a_trans().wrap(move |()| result(number, Ok(None))),
            (None, Operation::Send(value)) => {
                channel.send(Value(value)).wrap(move |sent| result(number, sent.map(|()| None).map_err(drop)))
            }
            (None, Operation::Receive) => {
                channel.recv().wrap(move |received| result(number, received.map(|value| Some(value.0)).map_err(drop)))
            }
        }
    }

    fn asynchronous(&self, branch: Branch) -> AsyncEvent<(), ()> {
        let channel = &self.channels[branch.channel];
        let outcomes = match branch.operation {
            Operation::Send(value) => {
                self.counted(a_send(channel, Value(value)), |sent| sent.map(|()| None).map_err(drop))
            }
            Operation::Receive => {
                self.counted(a_recv(channel), |received| received.map(|value| Some(value.0)).map_err(drop))
            }
        };
        let run = self.clone();
        let act = move |outcome| run.act(branch.action, outcome);
        match self.actions_as {
            Actions::Threads => outcomes.a_wrap(act),
            Actions::Tasks => {
                let act = Arc::new(act);
                outcomes.a_wrap_async(move |outcome| {
                    let act = act.clone();
                    async move { act(outcome) }
                })
            }
        }
    }

    fn counted<B: Send + 'static>(
        &self,
        event: AsyncEvent<(), B>,
        outcome: fn(B) -> Result<Option<u32>, ()>,
    ) -> AsyncEvent<(), Result<Option<u32>, ()>> {
        match self.actions_as {
            Actions::Threads => event.a_wrap(outcome),
            Actions::Tasks => event.a_wrap_async(move |consumed| async move { outcome(consumed) }),
        }
    }

    fn act(&self, action: Option<Action>, outcome: Result<Option<u32>, ()>) {
        let Some(Action { key, forward }) = action else { return };
        self.record(key, result(0, outcome));
        if let Some(channel) = forward {
            // A closed channel drops the value, as in the model.
            let value = Value(outcome.ok().flatten().unwrap_or(key) + FORWARDED);
            _ = self.channels[channel].post(value);
        }
    }

    /// A step that never waits.
    fn start(&self, step: &Step) {
        match step {
            Step::Start(branch) => self.asynchronous(*branch).a_sync(),
            Step::StartOne(branches) => a_choose(branches.iter().map(|branch| self.asynchronous(*branch))).a_sync(),
            Step::Close(channel) => self.channels[*channel].close(),
            Step::Choose { .. } => unreachable!("a choice is synchronised"),
        }
    }
}

/// The same event in another form: behind a guard, a nack, a wrap, or a choice of its own.
fn disguised(random: &mut Random, event: Event<u32>) -> Event<u32> {
    match random.below(6) {
        0 => guard(move || event.clone()),
        1 => with_nack(move |_| event.clone()),
        2 => event.wrap(|value| value + 1).wrap(|value| value - 1),
        3 => choose([event, never()]),
        _ => event,
    }
}

/// Runs a program with a thread for each process; returns its results if they are one of the outcomes.
pub(crate) fn on_threads(program: &Program, outcomes: &Outcomes, random: &mut Random) -> Result<Results, Results> {
    let run = Run::new(program, Actions::Threads);
    let delays: Vec<_> = program.processes.iter().map(|_| random.next()).collect();
    std::thread::scope(|scope| {
        for (number, process) in program.processes.iter().enumerate() {
            let (run, mut delays) = (&run, Random(delays[number]));
            scope.spawn(move || {
                PAUSES.set(delays.next() | 1);
                for (step, code) in process.iter().enumerate() {
                    (0..delays.below(200)).for_each(|_| std::hint::spin_loop());
                    let value = match code {
                        Step::Choose { branches, form } => match run.choice(branches, *form).unless(&run.stop).sync() {
                            Some(value) => value,
                            None => return,
                        },
                        step => {
                            run.start(step);
                            result(0, Ok(None))
                        }
                    };
                    run.record(step_key(number, step) + 9, value);
                }
            });
        }
        await_member(&run, &outcomes.last);
        run.stop.fire();
    });
    // If it was not over yet, the processes went on for a moment.
    match await_member(&run, &outcomes.any) {
        true => Ok(run.results.lock().unwrap().clone()),
        false => Err(run.results.lock().unwrap().clone()),
    }
}

/// Waits until the results are in the set; false if they are not for too long.
fn await_member(run: &Run, set: &std::collections::BTreeSet<Results>) -> bool {
    let start = Instant::now();
    while start.elapsed() < TOO_LONG {
        if set.contains(&*run.results.lock().unwrap()) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

thread_local! {
    /// The actions that the executor of this thread was given.
    static NEW_TASKS: RefCell<Vec<ActionTask>> = const { RefCell::new(Vec::new()) };
}

/// A task that is ready if its flag is set.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    is_ready: Arc<Ready>,
}

struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl Task {
    fn new(future: impl Future<Output = ()> + 'static) -> Self {
        Task { future: Box::pin(future), is_ready: Arc::new(Ready(AtomicBool::new(true))) }
    }
}

/// Runs a program with a task for each process and each action, in a random order on this thread.
pub(crate) fn as_tasks(program: &Program, random: &mut Random) -> Results {
    static EXECUTOR: Once = Once::new();
    EXECUTOR.call_once(|| {
        assert!(set_action_executor(|action| NEW_TASKS.with_borrow_mut(|tasks| tasks.push(action))));
    });
    seed_choices(random.next());
    let run = Run::new(program, Actions::Tasks);
    let mut tasks: VecDeque<_> = (0..program.processes.len())
        .map(|number| Task::new(process(run.clone(), number, program.processes[number].clone())))
        .collect();
    loop {
        tasks.extend(NEW_TASKS.take().into_iter().map(Task::new));
        let ready: Vec<_> = (0..tasks.len()).filter(|&task| tasks[task].is_ready.0.load(SeqCst)).collect();
        if ready.is_empty() {
            return run.results.lock().unwrap().clone();
        }
        let chosen = ready[random.below(ready.len())];
        let task = &mut tasks[chosen];
        task.is_ready.0.store(false, SeqCst);
        let waker = Waker::from(task.is_ready.clone());
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            tasks.remove(chosen);
        }
    }
}

async fn process(run: Run, number: usize, steps: Vec<Step>) {
    for (step, code) in steps.iter().enumerate() {
        let value = match code {
            Step::Choose { branches, form } => run.choice(branches, *form).await,
            step => {
                run.start(step);
                result(0, Ok(None))
            }
        };
        run.record(step_key(number, step) + 9, value);
        yield_once().await;
    }
}

/// Lets the other tasks go on.
async fn yield_once() {
    let mut has_yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
