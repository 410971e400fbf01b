//! The reasons for waits, as sentences about the call that waits.

use weir_host::{Resource, Text, Type};
use weir_ir::graph::Graph;
use weir_ir::io_rounds::{Ahead, IoCall, TurnReason, WaitReason};
use weir_ir::program::{LoopExit, SharedValue};
use weir_library::tables::is_database;

use super::{Places, is_commit, name};

/// The type of tables.
const TABLE: &str = "tables.Table";

/// Returns the reason for which a call waits, as the rest of a sentence that begins with the call.
pub(super) fn waits(call: &IoCall, calls: &[IoCall], places: &Places<'_>) -> Option<String> {
    let wait = call.wait.as_ref()?;
    let earlier = &calls[wait.call];
    if is_commit(call) {
        return Some("waits until all that was written is durable".to_owned());
    }
    if is_commit(earlier) {
        return Some("has an effect, which waits until all that was written is durable".to_owned());
    }
    let named = format!("`{}` ({})", name(earlier), places.line(earlier.origin.start));
    Some(because(&wait.why, &named, places))
}

fn because(why: &WaitReason, earlier: &str, places: &Places<'_>) -> String {
    match why {
        WaitReason::Argument => format!("needs the answer of {earlier}"),
        WaitReason::Branch(at) => {
            let word = match places.word(at.start) {
                word @ ("if" | "match") => format!("`{word}`"),
                _ => "condition".to_owned(),
            };
            format!("is behind the {word} at {}, which needs the answer of {earlier}", places.line(at.start))
        }
        WaitReason::Order { resource, earlier_writes: true, later_writes: false } => {
            format!("reads {}, which {earlier} changes: this write forces a round", places.resource(resource))
        }
        WaitReason::Order { resource, earlier_writes: false, later_writes: false } => {
            format!(
                "reads {}, as {earlier} does: reads of one value keep the order of the text",
                places.resource(resource)
            )
        }
        WaitReason::Order { resource, earlier_writes: false, .. } => {
            format!(
                "changes {}, which {earlier} reads: a write waits for the reads before it",
                places.resource(resource)
            )
        }
        WaitReason::Order { resource, .. } => {
            format!("changes {}, as {earlier} does: writes keep the order of the text", places.resource(resource))
        }
        WaitReason::End(at) => {
            let line = places.line(at.start);
            format!("has an effect, and the request may end before it at {line}, which depends on {earlier}")
        }
        WaitReason::Return(at) => {
            format!("is behind the `return` at {}, which depends on {earlier}", places.line(at.start))
        }
        WaitReason::Atomic { at, why } if !places.has_word("atomic", at.start) => because(why, earlier, places),
        WaitReason::Atomic { at, .. } => format!(
            "is inside the `atomic` at {}, which begins when all that it needs from outside is there, such as the answer of \
             {earlier}",
            places.line(at.start)
        ),
        WaitReason::GivenUp => {
            format!("keeps the order of the text with {earlier}, because `within` and `race` may be given up")
        }
        WaitReason::Barrier => format!("comes behind {earlier}: everything behind that in the text waits for it"),
        WaitReason::Statement => {
            format!(
                "comes behind {earlier}: during a write, a statement of an `atomic`, or a query of several tables, a request begins nothing else"
            )
        }
        WaitReason::Enclosing { word, at, why } => {
            format!("is in the `{word}` at {}, which {}", places.line(at.start), because(why, earlier, places))
        }
    }
}

/// Returns the arm that a call is in, if another arm of the same `if` or `match` calls the same.
pub(super) fn arm(call: &IoCall, calls: &[IoCall], places: &Places<'_>) -> Option<String> {
    let same = |other: &&IoCall| other.function == call.function && other.table == call.table;
    let arm = calls.iter().filter(same).find_map(|other| call.arm_instead_of(other))?;
    let at = places.line(arm.at.start);
    Some(match (arm.is_condition, arm.arm) {
        (true, 0) => format!("if the condition at {at} holds"),
        (true, _) => format!("if the condition at {at} does not hold"),
        (false, index) => format!("in arm {} of the `{}` at {at}", index + 1, places.choice(arm.at.start)),
    })
}

/// Returns how a flow runs ahead of a statement.
pub(super) const fn ahead(ahead: Ahead) -> &'static str {
    match ahead {
        Ahead::Placed => "sent without waiting for the answer",
        Ahead::PlacedBehindFirst => {
            "sent without waiting for the answer, but for the first, which begins the transaction"
        }
        Ahead::AskedEarly => "asked for as soon as the key is known",
        Ahead::SentTogether => "sent together with the reads before it",
    }
}

/// Returns the reason for which a call is made again and again, one after the other.
pub(super) fn turns(reason: &TurnReason, places: &Places<'_>) -> String {
    match reason {
        // The loop of a function such as `any` is in the library.
        TurnReason::Loop { at, exit: LoopExit::Failure(_) | LoopExit::Return(_), .. }
            if let Some(method) = places.method(*at) =>
        {
            let line = places.line(at.start);
            format!("for one element after the other, because `{method}` at {line} may end before the last one")
        }
        // The elements that fulfil the condition of a `for` are folded into a list, and so are the results of one that may be left.
        TurnReason::Loop { word: "fold", at, exit } if !places.has_word("fold", at.start) => {
            let left = match exit {
                LoopExit::Never => String::new(),
                LoopExit::Failure(by) | LoopExit::Return(by) => {
                    format!(", because the loop may be left at {}", places.line(by.start))
                }
            };
            format!("again in each round of the `for` at {}, one after the other{left}", places.line(at.start))
        }
        TurnReason::Loop { at, .. } if places.has_word("retry", at.start) => {
            format!("again in each attempt of the `retry` at {}", places.line(at.start))
        }
        TurnReason::Loop { word, .. } => format!("again in each round of a `{word}`, one after the other"),
        TurnReason::End(at) => format!(
            "for one element after the other, because it has an effect and each element may end the request at {}",
            places.line(at.start)
        ),
        TurnReason::Return(at) => format!(
            "for one element after the other, because each element may end the request by the `return` at {}",
            places.line(at.start)
        ),
        TurnReason::Statements => "for each element, one statement after the other".to_owned(),
        TurnReason::Resource(Resource::State(_)) => {
            "for one element after the other, because the function keeps a state between calls".to_owned()
        }
        TurnReason::Resource(resource) => {
            format!("for one element after the other, because the `for` changes {}", places.resource(resource))
        }
    }
}

impl Places<'_> {
    /// Returns the word of the choice at this place.
    fn choice(&self, offset: u32) -> &str {
        if self.word(offset) == "match" { "match" } else { "else" }
    }

    fn resource(&self, resource: &Resource) -> String {
        let is_table = |name: &Text| {
            let of_name = |shared: &&SharedValue<Graph>| shared.name == *name;
            self.program.shared.iter().find(of_name).is_some_and(|shared| shared.ty == Type::Named(TABLE.into()))
        };
        match resource {
            Resource::Shared(name) if is_table(name) => format!("the table `{name}`"),
            Resource::Shared(name) => format!("the shared value `{name}`"),
            Resource::Constraint(name) if is_database(name) => "stored tables".to_owned(),
            Resource::Constraint(name) => format!("`{name}`"),
            Resource::World(name) => format!("what `{name}` stands for"),
            Resource::State(_) => "the state of the call".to_owned(),
        }
    }
}
