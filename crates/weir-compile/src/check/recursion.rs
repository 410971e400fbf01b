//! Reports recursive `fn`s: every `fn` is inlined, so that recursion is not possible.

use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::typed_tree::FnCall;

#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    New,
    Open,
    Done,
}

/// Reports each cycle of calls once, with every call in it.
pub(super) fn report<'c>(
    calls: impl Iterator<Item = &'c FnCall>,
    declarations: &Declarations,
    context: &mut CheckContext<'_>,
) {
    let count = declarations.functions.len();
    let mut callees: Vec<Vec<(usize, Span)>> = vec![Vec::new(); count];
    for FnCall { caller, callee, span } in calls {
        callees[declarations.fn_index(caller)].push((declarations.fn_index(callee), *span));
    }
    let mut states = vec![VisitState::New; count];
    for start in 0..count {
        visit(start, &callees, &mut states, declarations, context);
    }
}

/// Depth-first search with an explicit stack, because a call chain may be as long as the program.
fn visit(
    start: usize,
    callees: &[Vec<(usize, Span)>],
    states: &mut [VisitState],
    declarations: &Declarations,
    context: &mut CheckContext<'_>,
) {
    if states[start] != VisitState::New {
        return;
    }
    states[start] = VisitState::Open;
    // The open `fn`s, each with the index of its next callee.
    let mut path = vec![(start, 0)];
    while let Some((at, next)) = path.last_mut() {
        let Some((callee, span)) = callees[*at].get(*next).copied() else {
            states[*at] = VisitState::Done;
            path.pop();
            continue;
        };
        *next += 1;
        match states[callee] {
            VisitState::New => {
                states[callee] = VisitState::Open;
                path.push((callee, 0));
            }
            VisitState::Open => context.report(cycle(callee, span, &path, callees, declarations)),
            VisitState::Done => {}
        }
    }
}

fn cycle(
    callee: usize,
    span: Span,
    path: &[(usize, usize)],
    callees: &[Vec<(usize, Span)>],
    declarations: &Declarations,
) -> Diagnostic {
    let name = |at: usize| declarations.functions.get_index(at).map_or("", |(name, _)| &**name);
    let begin = path.iter().position(|(at, _)| *at == callee).unwrap_or(0);
    let members = &path[begin..];
    let shown: Vec<String> = members.iter().map(|(at, _)| format!("`{}`", name(*at))).collect();
    let message = if members.len() == 1 {
        format!("`{}` calls itself", name(callee))
    } else {
        format!("these functions are recursive: {} → `{}`", shown.join(" → "), name(callee))
    };
    let last = members.last().map_or(callee, |(at, _)| *at);
    let mut diagnostic =
        Diagnostic::new(Code::Recursion, message).at(span, format!("`{}` calls `{}` here", name(last), name(callee)));
    for (at, next) in &members[..members.len() - 1] {
        if let Some((called, span)) = callees[*at].get(next - 1) {
            diagnostic = diagnostic.because(*span, format!("`{}` calls `{}` here", name(*at), name(*called)));
        }
    }
    diagnostic.hint("repeat with `for`, `fold` or `loop … until … at most n` instead")
}
