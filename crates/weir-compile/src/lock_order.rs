//! Lock ordering: reports the locks that the pass [`order_locks`] hoists, and waits for turns inside of steps.

use weir_host::{Mode, Resource, Text};
use weir_ir::expr::{Block, Call, Op, Origin, Program};
use weir_ir::passes::{Hoisting, order_locks};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::lang_items::TABLES;

/// Hoists constraints in every step of a program, and reports each hoisting.
pub(crate) fn order(program: &mut Program, context: &mut CheckContext<'_>) {
    for entry in program.entries.iter().filter(|entry| entry.ordered) {
        entry.flows.iter().for_each(|flow| turns_in_steps(&flow.body, None, context));
    }
    for hoisting in order_locks(program, context.library) {
        report(&hoisting, context);
    }
}

/// Reports calls of stateful functions inside a step, in a flow of an ordered source. Such a call waits at its ticket
/// gate for the earlier flows, and one of these may wait for a lock that the step holds.
fn turns_in_steps(block: &Block, step: Option<Origin>, context: &mut CheckContext<'_>) {
    for binding in &block.lets {
        let step = match &binding.op {
            Op::Atomic { .. } => step.or(Some(binding.origin)),
            _ => step,
        };
        if let (Op::Call(call), Some(step)) = (&binding.op, step)
            && context.library.function(&call.function).is_some_and(|function| function.signature.state.is_some())
        {
            let diagnostic = turn_in_step(call, binding.origin, step, context);
            context.report_once(diagnostic);
        }
        binding.op.blocks().for_each(|inner| turns_in_steps(inner, step, context));
    }
}

fn turn_in_step(call: &Call, at: Origin, step: Origin, context: &CheckContext<'_>) -> Diagnostic {
    Diagnostic::new(Code::TurnInStep, format!("`{}` waits for earlier flows inside an atomic step", call.function))
        .at(context.span(at), "called in the order of the source's elements")
        .because(keyword(context.span(step)), "the step begins here")
        .note("an earlier flow may wait for this step, and this step waits for that flow: a deadlock")
        .hint("call it before or after the step")
}

/// Returns the span of a step's keyword, `atomic`.
fn keyword(step: Span) -> Span {
    Span { end: (step.start + "atomic".len() as u32).min(step.end), ..step }
}

/// Reports a lock that was hoisted.
fn report(hoisting: &Hoisting, context: &mut CheckContext<'_>) {
    let Hoisting { resource, mode, per_session, at, step, last } = hoisting;
    let (name, last) = (shown(resource), shown(last));
    let cost = match mode {
        Mode::Read => format!("no other flow can change {name} during the step"),
        Mode::Write => format!("every other flow that uses {name} waits during the step"),
    };
    let step = context.span(*step);
    let begin = keyword(step);
    // A write of a table outside of a transaction is a step without a keyword.
    let named = context.text.get(step.range()).and_then(|text| text.strip_prefix("atomic"));
    let named = named.and_then(|rest| rest.split_once('{')).map(|(named, _)| named.trim());
    let diagnostic = Diagnostic::new(
        Code::HoistedConstraint,
        format!("{name} is held for the whole step, not only while it is used"),
    )
    .at(if named.is_some() { begin } else { step }, format!("holds {last}, and therefore {name} too"))
    .because(context.span(*at), format!("uses {name}"))
    .note(format!("all flows take {name} before {last}: taking them in different orders could deadlock"))
    .note(cost);
    let (bare, scope) = (name_of(resource), if *per_session { " per session" } else { "" });
    context.report_once(match named {
        Some(named) => diagnostic.fix(
            format!(
                "use {name} before or after the step, or make the step hold it: `atomic {bare}{scope}, {named} {{ … }}`"
            ),
            begin.at_end(),
            format!(" {bare}{scope},"),
        ),
        None => diagnostic.hint(format!("use {name} before or after this write, which is a step of its own")),
    });
}

/// Returns a resource as a message names it.
fn shown(resource: &Resource) -> String {
    match resource {
        Resource::Constraint(name) if name.as_str() == TABLES => "the database of the tables".to_owned(),
        _ => format!("`{}`", name_of(resource)),
    }
}

fn name_of(resource: &Resource) -> Text {
    match resource {
        Resource::Shared(name) | Resource::Constraint(name) | Resource::World(name) | Resource::State(name) => {
            name.clone()
        }
    }
}
