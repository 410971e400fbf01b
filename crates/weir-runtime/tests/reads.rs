//! The order of reads: a flow never sees a shared value older than it has seen it before, under every engine.
//!
//! A read here returns the number of reads of its shared value so far, as if another flow changed the value between any two of
//! them. So answers are those of the evaluator only if all reads of each value are made in the order of the text.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::num::{NonZeroU64, NonZeroUsize};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use test_support::flows::gates::{Gates, function, immediate, int, library, on_shared};
use test_support::flows::random_cases::seeds;
use test_support::flows::{Feed, one_flow, options, started};
use test_support::random::Random;
use weir_host::{
    AwaitedCall, Call, CallRest, EarlierReads, FunctionCode, HostValue, Library, Outcome, Passing, Settled, Type,
    TypeDefinition, TypeShape, Unique, Value, World,
};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::Program;
use weir_runtime::{ENGINES, start};

/// The programs that are tried; `WEIR_SEEDS=400..4000` tries others.
const PROGRAMS: u64 = 60;

/// The shared values of each program.
const SHARED: [&str; 3] = ["s", "t", "u"];

/// A future that is polled this many times before it is ready.
struct Yields(i64);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0 -= 1;
        if self.0 < 0 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Returns a library of reads that count, of a function that waits, and of one that combines two numbers.
fn counting() -> Library {
    let looks = ["a.look_s", "a.look_t", "a.look_u"].map(|path| {
        let count = AtomicI64::new(0);
        let look = immediate(path, &[("x", Type::Int, Passing::Value)], move |_| {
            Outcome::Value(Value::Int(count.fetch_add(1, Ordering::SeqCst)))
        });
        on_shared(look, Passing::Borrow)
    });
    let mix = immediate("a.mix", &[("x", Type::Int, Passing::Value), ("y", Type::Int, Passing::Value)], |call| {
        let (one, other) = (int(call, 0), int(call, 1));
        Outcome::Value(Value::Int(one.wrapping_mul(31).wrapping_add(other)))
    });
    let wait = FunctionCode::Waiting(Arc::new(|call: &mut Call<'_>| {
        let argument = int(call, 0);
        Ok(Box::pin(async move {
            Yields(argument.rem_euclid(7)).await;
            Settled { outcome: Outcome::Value(Value::Int(argument)), restored: Vec::new() }
        }))
    }));
    let wait = function("b.wait", &[("x", Type::Int, Passing::Value)], World::Pure, wait);
    library(looks.into_iter().chain([mix, wait]))
}

/// A program under construction.
struct Straight {
    random: Random,
    text: String,
    /// The integers that statements can use.
    integers: Vec<u64>,
    next: u64,
    /// Number of reads.
    reads: u64,
}

impl Straight {
    /// Returns the body of a flow of reads, waits, choices and loops whose result depends on everything that was read.
    fn body(seed: u64) -> String {
        let mut straight =
            Straight { random: Random::new(seed), text: String::new(), integers: vec![0], next: 1, reads: 0 };
        let statements = 4 + straight.random.below(12);
        (0..statements).for_each(|_| straight.statement());
        let mut mixed = 0;
        for read in straight.integers.split_off(1) {
            straight.text += &format!("%{}: Int = call a.mix at m{0} (%{mixed}, %{read})\n", straight.next);
            mixed = straight.next;
            straight.next += 1;
        }
        format!("{}yield %{mixed}", straight.text)
    }

    fn statement(&mut self) {
        let (one, other) = (self.integer(), self.integer());
        let operation = match self.random.below(8) {
            0..=2 => format!("call b.wait at n{} (%{one})", self.next),
            3 => self.choice(one, other),
            4 => return self.every(one),
            _ => self.look(one),
        };
        self.text += &format!("%{}: Int = {operation}\n", self.next);
        self.integers.push(self.next);
        self.next += 1;
    }

    /// Returns reads in the arms of a switch on a comparison.
    fn choice(&mut self, one: u64, other: u64) -> String {
        let (test, left, right) = (self.next, self.next + 1, self.next + 2);
        self.next += 3;
        self.text += &format!("%{test}: Bool = less(%{one}, %{other})\n");
        let (here, there) = (self.look(one), self.look(other));
        format!(
            "switch %{test}\n  value true\n    %{left}: Int = {here}\n    yield %{left}\n  otherwise\n    \
             %{right}: Int = {there}\n    yield %{right}"
        )
    }

    /// Adds a loop that reads in each of its rounds.
    fn every(&mut self, one: u64) {
        let (list, element, read, number) = (self.next, self.next + 1, self.next + 2, self.next + 3);
        self.next += 4;
        let look = self.look(element);
        self.text += &format!(
            "%{list}: List(Int) = for %{element}: Int in [1, 2]\n  %{read}: Int = {look}\n  %{}: Int = call a.mix at k{0} \
             (%{read}, %{one})\n  yield %{0}\n%{number}: Int = length(%{list})\n",
            self.next
        );
        self.next += 1;
        self.integers.push(number);
    }

    fn look(&mut self, argument: u64) -> String {
        let shared = SHARED[self.random.below(3) as usize];
        self.reads += 1;
        format!("call a.look_{shared} at read{} (shared {shared}, %{argument})", self.reads)
    }

    fn integer(&mut self) -> u64 {
        self.integers[self.random.below(self.integers.len() as u64) as usize]
    }
}

/// Compares the answers of a program to four numbers under each engine, with a library of its own, with those of the evaluator.
#[track_caller]
fn check_engines(program: &Program, seed: u64, of_evaluator: &Library, of_engine: &mut dyn FnMut() -> Library) {
    let mut evaluator = Evaluator::new(program, of_evaluator).map_err(|_| "no shared value").unwrap();
    let answers: Vec<_> = (0..4).map(|x| evaluator.run(0, 0, vec![Value::Int(x)]).unwrap()).collect();
    for row in ENGINES {
        let (feed, mut library) = (Feed::new(), of_engine());
        feed.put(&mut library, "test", "feed");
        let running = start(&weir_ir::optimize(program, &library), &library, options(row.name, 2)).unwrap();
        for (x, answer) in (0..).zip(&answers) {
            let found = feed.run(vec![Value::Int(x)]);
            assert_eq!(found.as_ref(), Ok(answer), "seed {seed}, {}\n{}", row.name, weir_ir::print::expr(program));
        }
        drop(feed);
        running.wait().unwrap();
    }
}

#[test]
fn a_flow_makes_the_reads_of_each_shared_value_in_order() {
    let shared: String = SHARED.iter().map(|name| format!("shared {name}: Int\n  yield 0\n")).collect();
    for seed in seeds(PROGRAMS) {
        let program = one_flow(&shared, &Straight::body(seed));
        check_engines(&program, seed, &counting(), &mut counting);
    }
}

/// A value whose reads see a snapshot of it.
struct Store;

impl HostValue for Store {
    fn type_name(&self) -> &'static str {
        "a.Store"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
    fn into_any_box(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        self
    }
    fn snapshots(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(1)
    }
}

/// A connection to something that executes one read after the other. When it is lost, another one takes its place.
#[derive(Default)]
struct Connection {
    /// The number of connections that were here before.
    lost: u64,
    /// The reads that were sent and not executed, with the counts that they read.
    sent: VecDeque<(u64, Arc<AtomicI64>)>,
    /// The counts that were read, or `None` for a read whose connection was lost.
    answers: BTreeMap<u64, Option<i64>>,
}

/// Something else that executes reads: on connections of its own, which are lost now and then, or on threads.
#[derive(Default)]
struct Elsewhere {
    connections: [Mutex<Connection>; 2],
    /// A source of numbers, each of which stands for a decision.
    decisions: AtomicU64,
    /// The number of reads that were sent behind another one, and of those among them that were lost.
    behind: AtomicUsize,
    lost: AtomicUsize,
}

impl Elsewhere {
    fn decide(&self, choices: u64) -> u64 {
        Random::new(self.decisions.fetch_add(1, Ordering::SeqCst)).below(choices)
    }

    /// Begins a read without a thread, or not at all.
    fn begin(self: &Arc<Self>, count: &Arc<AtomicI64>) -> Option<AwaitedCall> {
        let (this, count, yields) = (Arc::clone(self), Arc::clone(count), self.decide(4) as i64);
        let at = match self.decide(8) {
            0 => return None,
            1 => None,
            choice => Some(usize::from(choice == 2)),
        };
        let outcome = async move {
            let read = match at {
                Some(at) => this.executed(at, &count, yields).await,
                None => None,
            };
            let read = match read {
                Some(read) => read,
                None => {
                    Yields(yields).await;
                    count.fetch_add(1, Ordering::SeqCst)
                }
            };
            Settled { outcome: Outcome::Value(Value::Int(read)), restored: Vec::new() }
        };
        let number = |at: usize| 2 * self.connections[at].lock().unwrap().lost + at as u64 + 1;
        let sent_on = at.map(number).and_then(NonZeroU64::new);
        Some(AwaitedCall { rest: CallRest::Awaited(Box::pin(outcome)), keeps_locks: false, sent_on })
    }

    /// Sends a read on a connection, and returns what it has read; `None` if the connection is lost, and the earlier reads of the flow have
    /// been made by other means.
    async fn executed(&self, at: usize, count: &Arc<AtomicI64>, yields: i64) -> Option<i64> {
        let number = self.decisions.fetch_add(1, Ordering::SeqCst);
        let is_behind = {
            let mut connection = self.connections[at].lock().unwrap();
            connection.sent.push_back((number, Arc::clone(count)));
            connection.sent.len() > 1
        };
        self.behind.fetch_add(usize::from(is_behind), Ordering::SeqCst);
        Yields(yields).await;
        let is_lost = self.decide(6) == 0;
        let read = self.connections[at].lock().unwrap().answer(number, is_lost);
        if read.is_none() {
            self.lost.fetch_add(usize::from(is_behind), Ordering::SeqCst);
            EarlierReads::answered().await;
        }
        read
    }
}

impl Connection {
    /// Executes what was sent up to this read, unless the connection is lost, and returns its answer.
    fn answer(&mut self, number: u64, is_lost: bool) -> Option<i64> {
        if is_lost {
            self.lost += 1;
            let sent = self.sent.drain(..);
            self.answers.extend(sent.map(|(number, _)| (number, None)));
        }
        while !self.answers.contains_key(&number) {
            let (next, count) = self.sent.pop_front().expect("it was sent");
            self.answers.insert(next, Some(count.fetch_add(1, Ordering::SeqCst)));
        }
        self.answers[&number]
    }
}

/// Returns a library like [`counting`] whose reads are executed elsewhere.
fn counting_elsewhere(elsewhere: &Arc<Elsewhere>) -> Library {
    let store = || ("on", Type::Named("a.Store".into()), Passing::Borrow);
    let looks = ["a.look_s", "a.look_t", "a.look_u"].map(|path| {
        let (elsewhere, count) = (Arc::clone(elsewhere), Arc::<AtomicI64>::default());
        let mut look = immediate(path, &[store(), ("x", Type::Int, Passing::Value)], move |call| {
            if call.declare_units(1 << 40) {
                return Outcome::Value(Value::Int(count.fetch_add(1, Ordering::SeqCst)));
            }
            if let Some(awaited) = call.awaited.take() {
                *awaited = elsewhere.begin(&count);
            }
            Outcome::ExceedsUnits
        });
        let effects = &mut look.signature.effects;
        (effects.declares_units, effects.leaves_thread, effects.sees_snapshot) = (true, true, true);
        look
    });
    let mut make = immediate("a.store", &[], |_| Outcome::Value(Value::Unique(Unique::new(Box::new(Store)))));
    make.signature.result = Type::Named("a.Store".into());
    let shape = TypeShape::Opaque { shareable: false };
    make.types.push(TypeDefinition { name: "a.Store".into(), doc: "".into(), shape });
    let change = ("on", Type::Named("a.Store".into()), Passing::Change);
    let set = immediate("a.set", &[change, ("x", Type::Int, Passing::Value)], |call| Outcome::Value(call.value(1)));
    let others = counting().modules.into_values().flat_map(|module| module.functions.into_values());
    let others = others.filter(|function| !function.signature.name.starts_with("look_"));
    library(looks.into_iter().chain([make, set]).chain(others))
}

/// Returns the body of a flow like [`Straight::body`] that also writes the shared values, behind everything else, if its result is 99.
fn writing(seed: u64) -> String {
    let body = Straight::body(seed);
    let (reads, result) = body.rsplit_once("yield %").unwrap();
    let result: u64 = result.parse().unwrap();
    let sets: Vec<String> = (3..)
        .zip(SHARED)
        .map(|(at, name)| format!("    %{}: Int = call a.set at set_{name} (shared {name}, %0)\n", result + at))
        .collect();
    format!(
        "{reads}%{0}: Bool = equal(%{result}, 99)\n%{1}: Int = switch %{0}\n  value true\n{2}    yield %0\n  otherwise\n    \
         yield %{result}\nyield %{1}",
        result + 1,
        result + 2,
        sets.concat()
    )
}

/// Reads are sent behind others on one connection where that is possible.
#[test]
fn a_flow_sees_the_reads_in_order_that_are_executed_elsewhere() {
    let shared = SHARED
        .map(|name| format!("shared {name}: a.Store\n  %0: a.Store = call a.store at make_{name} ()\n  yield %0\n"));
    let (mut behind, mut lost) = (0, 0);
    for seed in seeds(PROGRAMS) {
        let program = one_flow(&shared.concat(), &writing(seed));
        let mut of_engines = Vec::new();
        check_engines(&program, seed, &counting_elsewhere(&Arc::default()), &mut || {
            let elsewhere = Arc::new(Elsewhere { decisions: AtomicU64::new(seed << 32), ..Elsewhere::default() });
            of_engines.push(Arc::clone(&elsewhere));
            counting_elsewhere(&elsewhere)
        });
        behind += of_engines.iter().map(|of| of.behind.load(Ordering::SeqCst)).sum::<usize>();
        lost += of_engines.iter().map(|of| of.lost.load(Ordering::SeqCst)).sum::<usize>();
    }
    assert!(behind > 0 && lost > 0, "{behind} reads were sent behind others, and {lost} of them were lost");
}

#[test]
fn a_read_waits_for_an_earlier_one_whose_argument_is_not_known() {
    for row in ENGINES {
        let gates = Gates::new();
        let read = on_shared(immediate("a.read", &[("x", Type::Int, Passing::Value)], current), Passing::Borrow);
        let set = on_shared(immediate("a.set", &[("x", Type::Int, Passing::Value)], assign), Passing::Change);
        let body = "%1: Int = switch %0\n  value 7\n    %2: Int = call a.set at set (shared s, %0)\n    yield %2\n  otherwise\n    \
                    %3: Int = call b.wait at wait (%0)\n    %4: Int = call a.read at one (shared s, %3)\n    \
                    %5: Int = call a.read at other (shared s, 0)\n    %6: Int = multiply(%5, 10)\n    %7: Int = add(%4, %6)\n    \
                    yield %7\nyield %1";
        let functions = [read, set, gates.waiting("b.wait", World::Pure)];
        let (feed, running) = started(functions, "shared s: Int\n  yield 0\n", body, options(row.name, 2));
        let reader = feed.begin(vec![Value::Int(1)]);
        let waiting = gates.next();
        assert_eq!(feed.run(vec![Value::Int(7)]), Ok(Value::Int(7)));
        waiting.release();
        assert_eq!(reader.blocking_recv().unwrap(), Ok(Value::Int(77)), "{}", row.name);
        drop(feed);
        running.wait().unwrap();
    }
}

fn current(call: &mut Call<'_>) -> Outcome {
    Outcome::Value(call.shared(0).unwrap().read().clone())
}

fn assign(call: &mut Call<'_>) -> Outcome {
    let value = call.value(1);
    *call.shared(0).unwrap().write() = value.clone();
    Outcome::Value(value)
}
