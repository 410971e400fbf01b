//! Finds the cases that a `match` forgets, and the arms that nothing reaches.
//!
//! The algorithm is that of Maranget, "Warnings for pattern matching" (2007): a row of patterns is *useful* behind other
//! rows if some value matches it and none of them; a match forgets a case if a row of wildcards is useful behind its
//! arms, and an arm is unreachable if it is not useful behind those before it. Numbers are split into intervals at the
//! bounds that patterns mention, lists by length. The search is bounded by [`STEPS_MAX`]: a match that needs more has to end
//! with an arm for all other values.

mod patterns;

use weir_host::Library;
use weir_syntax::ast::{Arm, Expr, Pattern};
use weir_syntax::{Code, Diagnostic, Span};

use crate::typed::Typed;
use crate::types::Ty;
use patterns::{Case, Head, Space};

/// The most rows that are looked at for one match, each as often as it is.
const STEPS_MAX: usize = 2_000_000;

/// The most missing cases that one diagnostic shows.
const MISSING_MAX: usize = 3;

/// Looks at the arms of a match.
pub(crate) fn check_match(
    typed: &Typed,
    library: &Library,
    value: &Expr,
    arms: &[Arm],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let ty = typed.expr_type(value.id);
    if *ty == Ty::Error || ty.is_never() || matches!(ty, Ty::Unknown(_)) {
        return;
    }
    let space = Space { typed, library };
    let mut rows = Vec::new();
    let mut search = Search { space: &space, steps: 0 };
    for arm in arms {
        let Some(case) = space.case(&arm.pattern) else { return };
        if search.useful(&rows, std::slice::from_ref(&case), std::slice::from_ref(ty)) == Found::Nothing {
            let mut diagnostic = Diagnostic::new(Code::UnreachableArm, "this arm is never reached")
                .at(arm.pattern.span, "the arms before it take every such value");
            if let Some(first) = arms.first().filter(|first| first.guard.is_none() && arms.len() == 2) {
                diagnostic = diagnostic.because(first.pattern.span, "takes them all");
            }
            diagnostics.push(diagnostic.hint("take it out, or move it up"));
        }
        if arm.guard.is_none() {
            rows.push(vec![case]);
        }
    }
    match missing(&mut search, rows, ty) {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => diagnostics.push(not_covered(value, arms, &missing, ty)),
        Err(TooFar) => diagnostics.push(too_far(value.span)),
    }
}

/// The cases that no row takes, some of them.
fn missing(search: &mut Search<'_>, mut rows: Vec<Vec<Case>>, ty: &Ty) -> Result<Vec<String>, TooFar> {
    search.steps = 0;
    let mut missing = Vec::new();
    while missing.len() < MISSING_MAX {
        match search.useful(&rows, &[Case::Any], std::slice::from_ref(ty)) {
            Found::Witness(witness) => {
                missing.push(search.space.shown(&witness[0], ty));
                rows.push(witness);
            }
            Found::Nothing => break,
            Found::TooFar if missing.is_empty() => return Err(TooFar),
            Found::TooFar => break,
        }
    }
    Ok(missing)
}

/// The cases are too many to be looked at.
struct TooFar;

fn too_far(span: Span) -> Diagnostic {
    Diagnostic::new(Code::MissingCases, "the cases of this pattern are too many to be looked at")
        .at(span, "nothing shows that every value has a case")
        .hint("end with an arm for all other values: `_ => …`")
}

fn not_covered(value: &Expr, arms: &[Arm], missing: &[String], ty: &Ty) -> Diagnostic {
    let quoted: Vec<String> = missing.iter().map(|case| format!("`{case}`")).collect();
    let what = if missing.len() == 1 { "the case" } else { "the cases" };
    let diagnostic = Diagnostic::new(Code::MissingCases, format!("this match forgets {what} {}", quoted.join(", ")))
        .at(value.span, format!("this is `{ty}`"));
    let diagnostic = match arms.iter().find(|arm| arm.guard.is_some()) {
        Some(guarded) => diagnostic
            .because(guarded.pattern.span, "an arm with a guard may not be taken, so it covers nothing for sure"),
        None => diagnostic,
    };
    diagnostic.hint(format!("add an arm: `{} => …`", missing[0]))
}

/// Looks at a pattern that has to match every value: of a `let` without `else`, a parameter, a `for`.
pub(crate) fn check_whole(typed: &Typed, library: &Library, pattern: &Pattern, diagnostics: &mut Vec<Diagnostic>) {
    let ty = typed.pattern_type(pattern.id);
    if *ty == Ty::Error || ty.is_never() || matches!(ty, Ty::Unknown(_)) {
        return;
    }
    let space = Space { typed, library };
    let Some(case) = space.case(pattern) else { return };
    let mut search = Search { space: &space, steps: 0 };
    match missing(&mut search, vec![vec![case]], ty) {
        Ok(missing) => diagnostics.extend(missing.first().map(|missing| refutable(pattern, missing, ty))),
        Err(TooFar) => diagnostics.push(too_far(pattern.span)),
    }
}

fn refutable(pattern: &Pattern, missing: &str, ty: &Ty) -> Diagnostic {
    Diagnostic::new(Code::RefutablePattern, format!("this pattern does not match `{missing}`"))
        .at(pattern.span, format!("must match every `{ty}`"))
        .hint("use `match`, or add `else { return … }` behind the `let`")
}

#[derive(PartialEq)]
enum Found {
    /// A row that matches what no other does.
    Witness(Vec<Case>),
    Nothing,
    /// The search was given up.
    TooFar,
}

struct Search<'s> {
    space: &'s Space<'s>,
    steps: usize,
}

impl Search<'_> {
    /// Whether `row` matches something that none of `rows` does.
    fn useful(&mut self, rows: &[Vec<Case>], row: &[Case], types: &[Ty]) -> Found {
        self.steps += rows.len() + 1;
        if self.steps > STEPS_MAX {
            return Found::TooFar;
        }
        if rows.iter().any(|row| row.iter().all(|case| *case == Case::Any)) {
            return Found::Nothing;
        }
        let Some((first, rest)) = row.split_first() else {
            return if rows.is_empty() { Found::Witness(Vec::new()) } else { Found::Nothing };
        };
        match first {
            Case::Either(cases) => self.any_of(cases, rows, rest, types),
            Case::Of(head, _) => {
                let heads = self.space.split(head, rows);
                self.through(heads, rows, row, types)
            }
            Case::Any if rows.iter().all(|row| row[0] == Case::Any) => {
                let rows: Vec<Vec<Case>> = rows.iter().map(|row| row[1..].to_vec()).collect();
                match self.useful(&rows, rest, &types[1..]) {
                    Found::Witness(witness) => Found::Witness([vec![Case::Any], witness].concat()),
                    other => other,
                }
            }
            Case::Any => {
                let heads = self.space.all_heads(&types[0], rows);
                self.through(heads, rows, row, types)
            }
        }
    }

    fn any_of(&mut self, cases: &[Case], rows: &[Vec<Case>], rest: &[Case], types: &[Ty]) -> Found {
        for case in cases {
            let row = [std::slice::from_ref(case), rest].concat();
            match self.useful(rows, &row, types) {
                Found::Nothing => {}
                found => return found,
            }
        }
        Found::Nothing
    }

    /// Looks at the row once for each head that its first value may have.
    fn through(&mut self, heads: Vec<Head>, rows: &[Vec<Case>], row: &[Case], types: &[Ty]) -> Found {
        for head in heads {
            let parts = self.space.parts(&head, &types[0]);
            let inner: Vec<Ty> = parts.iter().chain(&types[1..]).cloned().collect();
            let specialized: Vec<Vec<Case>> = rows.iter().flat_map(|row| specialize(row, &head, parts.len())).collect();
            for row in specialize(row, &head, parts.len()) {
                match self.useful(&specialized, &row, &inner) {
                    Found::Nothing => {}
                    Found::TooFar => return Found::TooFar,
                    Found::Witness(mut witness) => {
                        let rest = witness.split_off(parts.len());
                        return Found::Witness([vec![Case::Of(head, witness)], rest].concat());
                    }
                }
            }
        }
        Found::Nothing
    }
}

/// The rows that are left of a row once its first value is known to have the head: its parts in front.
fn specialize(row: &[Case], head: &Head, parts: usize) -> Vec<Vec<Case>> {
    match &row[0] {
        Case::Any => vec![[&vec![Case::Any; parts], &row[1..]].concat()],
        Case::Either(cases) => {
            let rows = cases.iter().map(|case| [std::slice::from_ref(case), &row[1..]].concat());
            rows.flat_map(|row| specialize(&row, head, parts)).collect()
        }
        Case::Of(own, inner) => match own.takes(head, inner, parts) {
            Some(inner) => vec![[&inner, &row[1..]].concat()],
            None => Vec::new(),
        },
    }
}
