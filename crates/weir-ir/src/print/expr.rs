//! Blocks as text.
//!
//! ```text
//! %2: Result(Text, Failure) = call files.read at files.read#2 ("a", shared hits) @12..20
//! %3: Text = switch %2
//!   tag 0 (%4 text: Text)
//!     yield %4
//!   otherwise
//!     %5: Never = fail failure(program, "no")
//!     yield ()
//! %6: List(Int) = for %7 x: Int in [1, 2]
//!   yield %7
//! %8: Int = fold [1, 2] from 0 as %9: Int, %10: Int
//!   yield %9
//! %11: Int = loop 0 at most 5 as %12: Int
//!   yield (1, true)
//! %13: Int = atomic (write shared hits, read per session world db) session %3
//!   yield 1
//! %14: Option(Int) = within 200ms
//!   yield %13
//! %15: Int = race
//!   branch
//!     yield 1
//!   branch
//!     yield 2
//! %16: Int = transaction as %17: Bool
//!   yield 1
//! yield %16
//! ```

use std::fmt::{self, Display};

use weir_host::{Mode, Text};

use super::{Binder, Commas, Constant, IndentedText, LoopExitText, NameText, OriginText};
use crate::expr::{Arm, ArmTest, Atom, Block, Constraint, Let, Op};
use crate::prim::Prim;

pub(super) fn block(page: &mut IndentedText, block: &Block) {
    block.lets.iter().for_each(|binding| line(page, binding));
    page.line(format_args!("yield {}", AtomText(&block.result)));
}

fn line(page: &mut IndentedText, binding: &Let) {
    page.line(format_args!(
        "{} = {}{}",
        Binder(&binding.bound),
        OperationText(&binding.op),
        OriginText(binding.origin)
    ));
    page.nested(|page| match &binding.op {
        Op::Switch { arms, .. } => arms.iter().for_each(|value| arm(page, value)),
        op if op.has_branches() => op.blocks().for_each(|body| {
            page.line("branch");
            page.nested(|page| block(page, body));
        }),
        op => op.blocks().for_each(|body| block(page, body)),
    });
}

fn arm(page: &mut IndentedText, arm: &Arm) {
    let payload = match &arm.payload[..] {
        [] => String::new(),
        payload => format!(" ({})", Commas(payload.iter().map(Binder))),
    };
    page.line(format_args!("{}{payload}", TestText(&arm.test)));
    page.nested(|page| block(page, &arm.body));
}

/// An operation without its blocks.
struct OperationText<'a>(&'a Op);

impl Display for OperationText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.0.word();
        match self.0 {
            Op::Prim(prim, operands) => write!(f, "{}({})", PrimText(*prim), atoms(operands)),
            Op::Call(call) => {
                write!(
                    f,
                    "{word} {} at {} ({}){}",
                    NameText(&call.function),
                    NameText(&call.site),
                    atoms(&call.arguments),
                    kept_failure(call.keeps_failure)
                )
            }
            Op::Map { list, element, .. } => write!(f, "{word} {} in {}", Binder(element), AtomText(list)),
            Op::Fold { list, init, state, element, exit, .. } => {
                let (list, init) = (AtomText(list), Commas(init.iter().map(AtomText)));
                write!(f, "{word} {list} from {init} as {}, {}", Commas(state.iter().map(Binder)), Binder(element))?;
                LoopExitText(*exit).fmt(f)
            }
            Op::Loop { init, state, at_most, .. } => {
                let init = Commas(init.iter().map(AtomText));
                write!(f, "{word} {init} at most {at_most} as {}", Commas(state.iter().map(Binder)))
            }
            Op::Atomic { constraints, restores, session, cancellable, .. } => {
                let cancellable = if *cancellable { "cancellable " } else { "" };
                write!(f, "{word} {cancellable}({})", Commas(constraints.iter().map(ConstraintText)))?;
                write!(f, "{}", RestoresText(restores))?;
                session.iter().try_for_each(|session| write!(f, " session {}", AtomText(session)))
            }
            Op::Transaction { is_last, .. } => write!(f, "{word} as {}", Binder(is_last)),
            // An operation without details is its word and its operand.
            op => {
                f.write_str(word)?;
                op.operands().try_for_each(|operand| write!(f, " {}", AtomText(operand)))
            }
        }
    }
}

/// Returns the text behind a call that keeps its failure.
pub(super) fn kept_failure(keeps: bool) -> &'static str {
    if keeps { " keeps failure" } else { "" }
}

fn atoms(atoms: &[Atom]) -> impl Display {
    Commas(atoms.iter().map(AtomText))
}

#[derive(Clone, Copy)]
struct AtomText<'a>(&'a Atom);

impl Display for AtomText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Atom::Var(var) => write!(f, "%{}", var.0),
            Atom::Value(value) => Constant(value).fmt(f),
            Atom::Shared(name) => write!(f, "shared {}", NameText(name)),
        }
    }
}

/// A primitive, with its index: `add`, `field.1`.
pub(super) struct PrimText(pub(super) Prim);

impl Display for PrimText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())?;
        self.0.index().iter().try_for_each(|index| write!(f, ".{index}"))
    }
}

/// `tag 1`, `value "a"`, `otherwise`.
pub(super) struct TestText<'a>(pub(super) &'a ArmTest);

impl Display for TestText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ArmTest::Tag(tag) => write!(f, "tag {tag}"),
            ArmTest::Value(value) => write!(f, "value {}", Constant(value)),
            ArmTest::Otherwise => f.write_str("otherwise"),
        }
    }
}

/// `write per session shared carts`.
#[derive(Clone, Copy)]
pub(super) struct ConstraintText<'a>(pub(super) &'a Constraint);

impl Display for ConstraintText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = if self.0.per_session { " per session" } else { "" };
        write!(f, "{}{session} {}", mode(self.0.mode), ResourceText(&self.0.resource))
    }
}

/// ` restores (counter, seen)`; nothing if there are none.
#[derive(Clone, Copy)]
pub(super) struct RestoresText<'a>(pub(super) &'a [Text]);

impl Display for RestoresText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, " restores ({})", Commas(self.0.iter().map(|name| NameText(name))))
    }
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "read",
        Mode::Write => "write",
    }
}

/// `shared carts`, `world files`.
pub(super) struct ResourceText<'a>(pub(super) &'a weir_host::Resource);

impl Display for ResourceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use weir_host::Resource::{Constraint, Shared, State, World};
        let (sort, name) = match self.0 {
            Shared(name) => ("shared", name),
            Constraint(name) => ("constraint", name),
            World(name) => ("world", name),
            State(name) => ("state", name),
        };
        write!(f, "{sort} {}", NameText(name))
    }
}
