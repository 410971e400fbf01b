//! Random programs: a few processes that communicate on a few channels, described as data.

/// A program: its channels and its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Capacities of the channels; `usize::MAX` is unbounded.
    pub(crate) channels: Vec<usize>,
    pub(crate) processes: Vec<Vec<Step>>,
}

/// One step of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Synchronises on a choice; `form` selects one of several ways to write the same choice.
    Choose { branches: Vec<Branch>, form: u64 },
    /// Starts an asynchronous event.
    Start(Branch),
    /// Starts an `a_choose`.
    StartOne(Vec<Branch>),
    /// Closes a channel.
    Close(usize),
}

/// One communication of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Branch {
    pub(crate) channel: usize,
    pub(crate) operation: Operation,
    /// `None`: synchronous. Otherwise asynchronous, in a choice transformed by `a_trans`.
    pub(crate) action: Option<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Send(u32),
    Receive,
}

/// The post-consumption action of a branch. Every action records its result under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Action {
    pub(crate) key: u32,
    /// The channel on which the action posts the received value, or a value of its own.
    pub(crate) forward: Option<usize>,
}

/// Added to a value that an action posts.
pub(crate) const FORWARDED: u32 = 1000;

/// The key of a step's result.
pub(crate) fn step_key(process: usize, step: usize) -> u32 {
    (process * 100 + step * 10) as u32
}

/// The result of a branch: its number, and the received value, `Ok` or `Closed`.
pub(crate) fn result(branch: usize, outcome: Result<Option<u32>, ()>) -> u32 {
    let code = match outcome {
        Ok(None) => 0,
        Err(()) => 1,
        Ok(Some(value)) => 2 + value,
    };
    branch as u32 * 10_000 + code
}

/// The kinds of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Choices of sends and receives, and closed channels.
    Synchronous,
    /// The same with asynchronous events, their actions, and their choices.
    Asynchronous,
}

/// Random numbers that are the same for the same seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

const CAPACITIES: [usize; 7] = [0, 0, 0, 1, 2, 16, usize::MAX];

/// The program of a seed.
pub(crate) fn program(seed: u64, kind: Kind) -> Program {
    let mut random = Random(seed);
    let channels: Vec<_> = (0..1 + random.below(2)).map(|_| CAPACITIES[random.below(CAPACITIES.len())]).collect();
    let processes = (0..2 + random.below(3))
        .map(|process| {
            (0..1 + random.below(3)).map(|step| any_step(&mut random, kind, channels.len(), process, step)).collect()
        })
        .collect();
    Program { channels, processes }
}

fn any_step(random: &mut Random, kind: Kind, channels: usize, process: usize, step: usize) -> Step {
    if random.below(24) == 0 {
        return Step::Close(random.below(channels));
    }
    let key = step_key(process, step);
    let is_asynchronous = kind == Kind::Asynchronous && random.below(2) == 0;
    let count = 1 + random.below(3);
    let branches: Vec<_> = (0..count)
        .map(|branch| {
            let is_asynchronous = is_asynchronous && random.below(4) > 0;
            any_branch(random, channels, key + branch as u32, is_asynchronous)
        })
        .collect();
    match random.below(3) {
        0 if is_asynchronous => Step::StartOne(branches.into_iter().map(asynchronous(key)).collect()),
        1 if is_asynchronous => Step::Start(asynchronous(key)(branches[0])),
        _ => Step::Choose { branches, form: random.next() },
    }
}

fn any_branch(random: &mut Random, channels: usize, value: u32, is_asynchronous: bool) -> Branch {
    let operation = if random.below(2) == 0 { Operation::Send(value) } else { Operation::Receive };
    let forward = (random.below(3) == 0).then(|| random.below(channels));
    let action = is_asynchronous.then_some(Action { key: value + 4, forward });
    Branch { channel: random.below(channels), operation, action }
}

/// Gives a branch an action, if it has none.
fn asynchronous(key: u32) -> impl Fn(Branch) -> Branch {
    move |branch| Branch { action: branch.action.or(Some(Action { key: key + 7, forward: None })), ..branch }
}
