//! Calls of a flow in their rounds, and the reasons for which they wait.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Resource, Text, Value};

use crate::graph::{NodeId, Operand};
use crate::program::{LoopExit, Origin};

/// A call of a function that may wait or that blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct IoCall {
    /// The path of the function.
    pub function: Text,
    /// The name of the table, if it is a statement on one.
    pub table: Option<Text>,
    /// The position in the text.
    pub origin: Origin,
    /// The number of its round, from 1.
    pub round: u32,
    /// Maximum number of calls that its function answers at once; `None` if it answers one.
    pub batch_max: Option<usize>,
    /// The arguments in which calls of one batch must agree.
    pub common: Vec<CommonArgument>,
    /// True if it is made for each element of a list, and these calls are under way together.
    pub for_each: bool,
    /// The reason for which it is made again and again, one after the other: in each round of a loop, or for each element of a
    /// list. `None` if it is made once, or for all elements together.
    pub in_turn: Option<TurnReason>,
    /// The way in which the flow runs ahead of it, if it is a statement of a transaction for which the flow does.
    pub ahead: Option<Ahead>,
    /// The reason for which it does not begin in an earlier round; `None` in the first one.
    pub wait: Option<IoWait>,
    /// The arms that it is in, outermost first.
    pub arms: Vec<IoArm>,
}

/// An arm of an `if` or `match` that a call is in.
#[derive(Clone, Debug, PartialEq)]
pub struct IoArm {
    /// The number of the graph and the node of the switch, which no other switch has.
    pub switch: (u32, NodeId),
    /// The position of the `if` or `match`.
    pub at: Origin,
    /// The index of the arm.
    pub arm: u32,
    /// True if the switch tests a condition, which holds in the first arm.
    pub is_condition: bool,
}

/// The ways in which a flow runs ahead of the statements of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// The flow goes on before the statement is answered; if it fails, the flow fails.
    Placed,
    /// The same, but for the first element of a list: its statement begins the transaction, and is waited for.
    PlacedBehindFirst,
    /// The rows are asked for as soon as their keys are known, before the flow comes to the statement.
    AskedEarly,
    /// The statement is sent together with the reads before it.
    SentTogether,
}

impl IoCall {
    /// Returns true if its function answers many calls at once.
    #[must_use]
    pub fn is_batched(&self) -> bool {
        self.batch_max.is_some()
    }

    /// Returns true if one batch has both calls, when both are of the same round.
    #[must_use]
    pub fn shares_batch(&self, other: &IoCall) -> bool {
        // The elements of a `for` gather with what is called once, but rounds of a loop come one after the other.
        let meets = self.in_turn == other.in_turn;
        self.is_batched() && self.function == other.function && self.common == other.common && meets
    }

    /// Returns the innermost arm of this call such that the other one is in another arm of the same `if` or `match`.
    #[must_use]
    pub fn arm_instead_of(&self, other: &IoCall) -> Option<&IoArm> {
        let differs = |one: &IoArm, of_other: &IoArm| one.switch == of_other.switch && one.arm != of_other.arm;
        self.arms.iter().rfind(|arm| other.arms.iter().any(|of_other| differs(arm, of_other)))
    }

    /// Returns true if the elements for which it is made may differ in the arguments in which calls of one batch must agree.
    #[must_use]
    pub fn has_several_batches(&self) -> bool {
        self.common.iter().any(|argument| matches!(argument, CommonArgument::Computed { repeats: true, .. }))
    }
}

/// An argument in which calls of one batch must agree, as far as the graph shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum CommonArgument {
    /// A constant.
    Constant(Value),
    /// A shared value, by its name.
    Shared(Text),
    /// The value of an operand.
    Computed {
        /// The number of its graph.
        graph: u32,
        /// The operand there.
        operand: Operand,
        /// True if the graph is executed several times in a flow.
        repeats: bool,
    },
}

/// The reason for which repeated calls come one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnReason {
    /// They are in a `fold` or `loop`, whose rounds come one after the other, or in a `for` that is executed like one.
    Loop {
        /// The word of the node.
        word: &'static str,
        /// The position of the repetition.
        at: Origin,
        /// The way in which it ends before its list does.
        exit: LoopExit,
    },
    /// They have an effect, and the flow may end at this position for each element.
    End(Origin),
    /// The flow may return at this position for each element.
    Return(Origin),
    /// They use this resource, which the `for` changes.
    Resource(Resource),
    /// They are statements on tables.
    Statements,
}

/// The reason for which a call waits.
#[derive(Clone, Debug, PartialEq)]
pub struct IoWait {
    /// The index of the call that it waits for, among those of the flow.
    pub call: usize,
    /// The reason.
    pub why: WaitReason,
}

/// The kind of a dependency between two calls.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitReason {
    /// An argument is computed from the result of the earlier call.
    Argument,
    /// The result of the earlier call decides about the `if` or `match` at this position, in whose branch the later one is.
    Branch(Origin),
    /// Both use this resource, and one of them changes it, or it is a shared value, whose reads keep their order.
    Order {
        /// The resource.
        resource: Resource,
        /// True if the earlier one changes it.
        earlier_writes: bool,
        /// True if the later one changes it.
        later_writes: bool,
    },
    /// The earlier call is one that everything behind it in the text waits for, such as `time.sleep`.
    Barrier,
    /// The later call has an effect, and the flow may end at this position, which depends on the earlier call.
    End(Origin),
    /// The flow may return at this position before the later call, and the earlier call decides about it.
    Return(Origin),
    /// The later call is in an atomic step, which begins when all that it needs from outside is there; the earlier call is part of
    /// that.
    Atomic {
        /// The position of the step: of an `atomic`, or of a statement that is a step by itself.
        at: Origin,
        /// The reason for which something in the step comes after the earlier call.
        why: Box<WaitReason>,
    },
    /// The later or the earlier call is in a `within` or `race`, which may be given up, so that both keep the order of the text.
    GivenUp,
    /// One of the calls is a statement under the locks of an atomic step, such as a write. The flow begins such a step when what is
    /// before it in the text has ended, and begins nothing behind the statement before that has ended.
    Statement,
    /// The later call is in a construct with a body, such as a `for`, and that waits.
    Enclosing {
        /// The word for the construct.
        word: &'static str,
        /// Its position.
        at: Origin,
        /// The reason for which it waits.
        why: Box<WaitReason>,
    },
}

/// The tables of a program whose statements have other rounds than those of most tables.
#[derive(Clone, Debug, Default)]
pub struct ExplainedTables {
    /// The tables whose changes a transaction waits for, although the program does not use the answer.
    pub awaited: BTreeSet<Text>,
    /// The tables in memory. Their statements are answered at once.
    pub in_memory: BTreeSet<Text>,
    /// The tables that no flow changes, so that their statements need one another only to begin.
    pub unchanged: BTreeSet<Text>,
    /// The tables whose rows an `update_all` updates in their place, by statements that are sent together: no unique value can move
    /// from one row to another, or the database is an existing one.
    pub updated_in_place: BTreeSet<Text>,
    /// The stored tables whose rows a table references, for each reference.
    pub references: BTreeMap<Text, Vec<Text>>,
    /// The stored tables whose rows reference those of a table.
    pub referenced_by: BTreeMap<Text, Vec<Text>>,
}
