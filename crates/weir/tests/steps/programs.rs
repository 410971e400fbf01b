//! Random programs with nested atomic steps: through `fn`s, branches, handlers, loops, races with a
//! body that never ends, readers and writers, and sessions.
//!
//! Every `fn` takes the number of its flow and, for each log, the token of the enclosing step that holds the log, or 0.

use std::fmt::Write as _;

use weir_ir::generate::Random;

/// Logs that all flows share.
pub(crate) const LOGS: [&str; 4] = ["apple", "cherry", "fig", "plum"];

/// The constraint that the functions of the vault are bound to.
pub(crate) const PURSE: &str = "purse";

/// Logs, and the constraint of the vault: what steps hold and accesses name tokens of.
pub(crate) const HELD: [&str; 5] = ["apple", "cherry", "fig", "plum", PURSE];

const CONSTRAINTS: [&str; 2] = ["bank", "ledger"];

/// Bindings of the constraint of the vault.
const BINDINGS: [&str; 3] = [
    "vault, read vault.balance, read vault.slow_balance",
    "vault.deposit, read vault.slow_balance, read vault.balance, vault.slow_deposit",
    "vault",
];

/// Maximal nesting of statements in a body.
const DEPTH: usize = 3;

/// Number of the flow of `at end`.
pub(crate) const END: i64 = 99;

/// Number of sessions.
pub(crate) const SESSIONS: i64 = 2;

/// Kind of a generated program.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Flows of several steps. Of [`HELD`], those with a set bit are held per session, or each session has its own. Stateful calls keep the
    /// order of the flows if their source is `ordered`.
    Steps { per_session: usize, ordered: bool },
    /// Flows that are one step each, which holds every log.
    Whole,
}

/// Generates one program.
pub(crate) struct Maker {
    random: Random,
    per_session: usize,
    /// Logs of which each session has its own.
    own: usize,
}

impl Maker {
    /// Returns the program of a seed, and its logs that are held per session or belong to one.
    pub(crate) fn program(seed: u64, whole: bool) -> (String, Shape) {
        let mut random = Random::new(seed);
        let per_session = if whole || random.chance(50) { 0 } else { random.below(1 << LOGS.len()) };
        // Never all logs: a log that all flows share puts whole flows in one order.
        let own = if random.chance(50) { 0 } else { random.below((1 << LOGS.len()) - 1) };
        let ordered = !whole && random.chance(50);
        let source = if ordered { "ordered_flows" } else { "flows" };
        let mut maker = Maker { random, per_session, own };
        let mut text = String::from("use probe, vault\n\n");
        for (at, log) in LOGS.iter().enumerate() {
            let scope = if own >> at & 1 == 1 { " per session" } else { "" };
            _ = writeln!(text, "shared {log} = probe.log(\"{log}\"){scope}");
        }
        CONSTRAINTS.iter().for_each(|constraint| _ = writeln!(text, "constraint {constraint}"));
        let purse_of_session = !whole && maker.random.chance(30);
        let scope = if purse_of_session { " per session" } else { "" };
        _ = writeln!(text, "constraint {PURSE}{scope} on {}", BINDINGS[maker.random.below(BINDINGS.len())]);
        let fns = maker.random.below(4);
        for at in 0..fns {
            let handler = if maker.random.chance(40) { maker.handler(at) } else { String::new() };
            let parameters = HELD.map(|log| format!(", {log}_token: Int")).concat();
            let body = maker.statements(at, 1);
            _ = writeln!(text, "\nfn f{at}(flow: Int{parameters}) {{\n{handler}{body}}}");
        }
        let none = HELD.map(|log| format!("let {log}_token = 0\n")).concat();
        let arms = (0..3).map(|arm| format!("{arm} => {{\n{}}}\n", maker.statements(fns, 0)));
        let arms = format!("match flow % 3 {{\n{}_ => ()\n}}", arms.collect::<String>());
        let body = if whole { format!("atomic {} {{\n{}{arms}\n}}", HELD.join(", "), tokens(&HELD)) } else { arms };
        _ = writeln!(
            text,
            "\nfor flow in probe.{source}() {{\nsession = flow % {SESSIONS}\n{none}{body}\nlet end = probe.token()\n}}"
        );
        if maker.random.chance(50) {
            text.push_str(&maker.end());
        }
        let per_session = per_session | own | (usize::from(purse_of_session) << LOGS.len());
        (text, if whole { Shape::Whole } else { Shape::Steps { per_session, ordered } })
    }

    /// Generates the block of `at end`: an addition to each log that all flows share.
    fn end(&mut self) -> String {
        let all = LOGS.iter().enumerate().filter(|(at, _)| (self.per_session | self.own) >> at & 1 == 0);
        let adds = all.map(|(_, log)| format!("{log}.slow_add({END}, 0, {})\n", self.random.below(9)));
        format!("at end {{\nprobe.pause()\n{}let done = 1\n}}\n", adds.collect::<String>())
    }

    fn handler(&mut self, fns: usize) -> String {
        let body = self.statements(fns, DEPTH - 1);
        // A handler sees only the parameters of its `fn`, and runs after the steps that were left.
        format!("on failure of probe.spend {{\n{body}}}\n")
    }

    fn log(&mut self) -> &'static str {
        LOGS[self.random.below(LOGS.len())]
    }

    /// Generates statements that can call the `fn`s before `fns`.
    fn statements(&mut self, fns: usize, depth: usize) -> String {
        let count = 1 + self.random.below(3);
        let mut text: String = (0..count).map(|_| self.statement(fns, depth)).collect();
        text.push_str("let done = 1\n");
        text
    }

    fn statement(&mut self, fns: usize, depth: usize) -> String {
        let log = self.log();
        let (by, forms) = (self.random.below(9), if depth > DEPTH { 11 } else { 19 });
        match self.random.below(forms) {
            0 => format!("{log}.get(flow, {log}_token)\n"),
            1 => format!("{log}.slow_get(flow, {log}_token)\n"),
            2 => format!("{log}.add(flow, {log}_token, {by})\n"),
            3 => {
                let other = self.log();
                format!("{log}.slow_add(flow, {log}_token, {other}.get(flow, {other}_token) + {by})\n")
            }
            4 => format!("{log}.spend(flow, {log}_token)?\n"),
            5 => self.both(log),
            6 if fns > 0 => {
                let tokens = HELD.map(|log| format!(", {log}_token")).concat();
                format!("f{}(flow{tokens})\n", self.random.below(fns))
            }
            6 | 7 => ["probe.pause()\n", "probe.peer()\n"][by % 2].to_owned(),
            8 => ["probe.turn(flow)\n", "probe.slow_turn(flow)\n"][by % 2].to_owned(),
            9 => format!("vault.{}(flow, {PURSE}_token, {by})\n", ["deposit", "slow_deposit"][by % 2]),
            10 => format!("vault.{}(flow, {PURSE}_token)\n", ["balance", "slow_balance"][by % 2]),
            11 => {
                let (then, otherwise) = (self.statements(fns, depth + 1), self.statements(fns, depth + 1));
                format!("if {log}.get(flow, {log}_token) % 2 == 0 {{\n{then}}} else {{\n{otherwise}}}\n")
            }
            12 => format!("for round in [1, 2] {{\n{}}}\n", self.statements(fns, depth + 1)),
            13 => {
                let body = self.statements(fns, depth + 1);
                format!("loop round = 0 {{\n{body}round + 1\n}} until round > 1 at most 3\n")
            }
            14 | 15 => format!("race {{\n{{\n{}}}\nprobe.never()\n}}\n", self.statements(fns, depth + 1)),
            _ => self.step(fns, depth),
        }
    }

    fn both(&mut self, from: &str) -> String {
        let others: Vec<&str> = LOGS.into_iter().filter(|log| *log != from).collect();
        let to = others[self.random.below(others.len())];
        format!("probe.both({from}, {to}, flow, {from}_token, {to}_token)\n")
    }

    fn step(&mut self, fns: usize, depth: usize) -> String {
        let mut logs = vec![self.log()];
        if self.random.chance(40) {
            logs.push(self.log());
            logs.dedup();
        }
        let mut held: Vec<String> = logs.iter().map(|log| format!("{log}{}", self.scope(log))).collect();
        if self.random.chance(30) {
            logs.push(PURSE);
            held.push(format!("{}{PURSE}", self.mode()));
        }
        if self.random.chance(30) {
            let constraint = CONSTRAINTS[self.random.below(CONSTRAINTS.len())];
            held.push(format!("{}{constraint}", self.mode()));
        }
        let peer = if self.random.chance(30) { "probe.peer()\n" } else { "" };
        let body = self.statements(fns, depth + 1);
        format!("atomic {} {{\n{}{peer}{body}}}\n", held.join(", "), tokens(&logs))
    }

    fn mode(&mut self) -> &'static str {
        if self.random.chance(40) { "read " } else { "" }
    }

    fn scope(&self, log: &str) -> &'static str {
        let at = LOGS.iter().position(|known| *known == log).unwrap_or(0);
        // For values that belong to a session, `per session` is implied.
        if (self.per_session & !self.own) >> at & 1 == 1 { " per session" } else { "" }
    }
}

/// Gives a step that holds these logs a token for each, unless an enclosing step has one.
fn tokens(logs: &[&str]) -> String {
    let token =
        |log: &&str| format!("let {log}_token = if {log}_token == 0 {{ probe.token() }} else {{ {log}_token }}\n");
    logs.iter().map(token).collect()
}
