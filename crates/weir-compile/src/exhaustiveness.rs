//! Exhaustiveness checking: finds the missing cases of a `match`, and its unreachable arms.
//!
//! The algorithm is that of Maranget, "Warnings for pattern matching" (2007). A row of patterns is *useful* with
//! respect to other rows if some value matches it and none of them. A match misses a case if a row of wildcards is
//! useful with respect to its arms; an arm is unreachable if it is not useful with respect to the arms before it.
//! Numbers are split into intervals at the bounds that patterns mention, and lists are split by length. The search
//! visits at most [`STEPS_MAX`] rows; a match that needs more has to end with a catch-all arm.

mod constructors;

use weir_syntax::ast::{Arm, Expr, Pattern};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::typed_tree::TypedTree;
use crate::types::Ty;
use crate::whole_lines::has_comment;
use constructors::{Constructor, DeconstructedPattern, MatchContext};

/// The maximum number of rows that the search visits for one match. A row counts each time it is visited.
const STEPS_MAX: usize = 2_000_000;

/// The maximum number of missing cases that one diagnostic lists.
const MISSING_MAX: usize = 3;

/// Returns the span to remove with an arm, up to one of its neighbours; `None` for an arm without neighbours, and if
/// there are comments in the span.
pub(crate) fn removed_arm(text: &str, arms: &[Arm], at: usize) -> Option<Span> {
    let own = arms[at].span;
    let removed = match (arms.get(at + 1), at.checked_sub(1)) {
        (Some(next), _) => Span { end: next.span.start, ..own },
        (None, Some(before)) => Span { start: arms[before].span.end, ..own },
        (None, None) => return None,
    };
    (!has_comment(text, removed)).then_some(removed)
}

/// Checks the arms of a match.
pub(crate) fn check_match(context: &mut CheckContext<'_>, typed: &TypedTree, value: &Expr, arms: &[Arm]) {
    let ty = typed.expr_type(value.id);
    if *ty == Ty::Error || ty.is_never() || matches!(ty, Ty::Unknown(_)) {
        return;
    }
    let patterns = MatchContext { typed, library: context.library };
    let mut rows = Vec::new();
    let mut search = UsefulnessSearch { patterns: &patterns, steps: 0 };
    for (at, arm) in arms.iter().enumerate() {
        let Some(case) = patterns.deconstruct(&arm.pattern) else { return };
        if search.useful(&rows, std::slice::from_ref(&case), std::slice::from_ref(ty)) == Usefulness::Useless {
            // Such as an empty range.
            let matches_nothing = search.useful(&[], std::slice::from_ref(&case), std::slice::from_ref(ty));
            let because = match matches_nothing {
                Usefulness::Useless => "no value matches it",
                _ => "the arms before it match every such value",
            };
            let mut diagnostic =
                Diagnostic::new(Code::UnreachableArm, "this arm is unreachable").at(arm.pattern.span, because);
            if let Some(first) = arms.first().filter(|first| at > 0 && first.guard.is_none() && arms.len() == 2) {
                diagnostic = diagnostic.because(first.pattern.span, "matches every value");
            }
            context.report(match removed_arm(context.text, arms, at) {
                Some(span) => diagnostic.suggest("remove it, or move it up", span, ""),
                None => diagnostic.hint("remove it, or move it up"),
            });
        }
        if arm.guard.is_none() {
            rows.push(vec![case]);
        }
    }
    match missing(&mut search, rows, ty) {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => context.report(missing_cases(value, arms, &missing, ty)),
        Err(SearchLimitReached) => context.report(search_limit_reached(value.span)),
    }
}

/// Returns up to [`MISSING_MAX`] cases that no row covers.
fn missing(
    search: &mut UsefulnessSearch<'_>,
    mut rows: Vec<Vec<DeconstructedPattern>>,
    ty: &Ty,
) -> Result<Vec<String>, SearchLimitReached> {
    search.steps = 0;
    let mut missing = Vec::new();
    while missing.len() < MISSING_MAX {
        match search.useful(&rows, &[DeconstructedPattern::Wildcard], std::slice::from_ref(ty)) {
            Usefulness::Useful(witness) => {
                missing.push(search.patterns.shown(&witness[0], ty));
                rows.push(witness);
            }
            Usefulness::Useless => break,
            Usefulness::LimitReached if missing.is_empty() => return Err(SearchLimitReached),
            Usefulness::LimitReached => break,
        }
    }
    Ok(missing)
}

/// The search would visit more than [`STEPS_MAX`] rows.
struct SearchLimitReached;

fn search_limit_reached(span: Span) -> Diagnostic {
    Diagnostic::new(Code::MissingCases, "this pattern has too many cases to check")
        .at(span, "may not cover every value")
        .hint("add a last arm for all other values: `_ => …`")
}

fn missing_cases(value: &Expr, arms: &[Arm], missing: &[String], ty: &Ty) -> Diagnostic {
    let quoted: Vec<String> = missing.iter().map(|case| format!("`{case}`")).collect();
    let diagnostic = Diagnostic::new(Code::MissingCases, format!("this match does not cover {}", quoted.join(", ")))
        .at(value.span, format!("this is `{ty}`"));
    let diagnostic = match arms.iter().find(|arm| arm.guard.is_some()) {
        Some(guarded) => {
            diagnostic.because(guarded.pattern.span, "an arm with a guard may be skipped, so it covers no case")
        }
        None => diagnostic,
    };
    diagnostic.hint(format!("add an arm: `{} => …`", missing[0]))
}

/// Checks a pattern that has to match every value: of a `let` without `else`, a parameter or a `for`.
pub(crate) fn check_irrefutable(context: &mut CheckContext<'_>, typed: &TypedTree, pattern: &Pattern) {
    let ty = typed.pattern_type(pattern.id);
    if *ty == Ty::Error || ty.is_never() || matches!(ty, Ty::Unknown(_)) {
        return;
    }
    let patterns = MatchContext { typed, library: context.library };
    let Some(case) = patterns.deconstruct(pattern) else { return };
    let mut search = UsefulnessSearch { patterns: &patterns, steps: 0 };
    match missing(&mut search, vec![vec![case]], ty) {
        Ok(missing) => missing.first().into_iter().for_each(|missing| context.report(refutable(pattern, missing, ty))),
        Err(SearchLimitReached) => context.report(search_limit_reached(pattern.span)),
    }
}

fn refutable(pattern: &Pattern, missing: &str, ty: &Ty) -> Diagnostic {
    Diagnostic::new(Code::RefutablePattern, format!("this pattern does not match `{missing}`"))
        .at(pattern.span, format!("must match every `{ty}`"))
        .hint("use `match`, or add `else { return … }` after the `let`")
}

#[derive(PartialEq)]
enum Usefulness {
    /// The row is useful; this is a value that it matches and no other row does.
    Useful(Vec<DeconstructedPattern>),
    Useless,
    /// The search reached its limit.
    LimitReached,
}

struct UsefulnessSearch<'s> {
    patterns: &'s MatchContext<'s>,
    steps: usize,
}

impl UsefulnessSearch<'_> {
    /// Returns whether `row` is useful with respect to `rows`.
    fn useful(&mut self, rows: &[Vec<DeconstructedPattern>], row: &[DeconstructedPattern], types: &[Ty]) -> Usefulness {
        self.steps += rows.len() + 1;
        if self.steps > STEPS_MAX {
            return Usefulness::LimitReached;
        }
        if rows.iter().any(|row| row.iter().all(|case| *case == DeconstructedPattern::Wildcard)) {
            return Usefulness::Useless;
        }
        let Some((first, rest)) = row.split_first() else {
            return if rows.is_empty() { Usefulness::Useful(Vec::new()) } else { Usefulness::Useless };
        };
        match first {
            DeconstructedPattern::Or(cases) => self.useful_for_any_alternative(cases, rows, rest, types),
            DeconstructedPattern::Constructed(constructor, _) => {
                let constructors = self.patterns.split(constructor, rows);
                self.useful_for_any_constructor(constructors, rows, row, types)
            }
            DeconstructedPattern::Wildcard if rows.iter().all(|row| row[0] == DeconstructedPattern::Wildcard) => {
                let rows: Vec<Vec<DeconstructedPattern>> = rows.iter().map(|row| row[1..].to_vec()).collect();
                match self.useful(&rows, rest, &types[1..]) {
                    Usefulness::Useful(witness) => {
                        Usefulness::Useful([vec![DeconstructedPattern::Wildcard], witness].concat())
                    }
                    other => other,
                }
            }
            DeconstructedPattern::Wildcard => {
                let constructors = self.patterns.all_constructors(&types[0], rows);
                self.useful_for_any_constructor(constructors, rows, row, types)
            }
        }
    }

    fn useful_for_any_alternative(
        &mut self,
        cases: &[DeconstructedPattern],
        rows: &[Vec<DeconstructedPattern>],
        rest: &[DeconstructedPattern],
        types: &[Ty],
    ) -> Usefulness {
        for case in cases {
            let row = [std::slice::from_ref(case), rest].concat();
            match self.useful(rows, &row, types) {
                Usefulness::Useless => {}
                found => return found,
            }
        }
        Usefulness::Useless
    }

    /// Tries each constructor that the first value may have.
    fn useful_for_any_constructor(
        &mut self,
        constructors: Vec<Constructor>,
        rows: &[Vec<DeconstructedPattern>],
        row: &[DeconstructedPattern],
        types: &[Ty],
    ) -> Usefulness {
        for constructor in constructors {
            let parts = self.patterns.parts(&constructor, &types[0]);
            let inner: Vec<Ty> = parts.iter().chain(&types[1..]).cloned().collect();
            let specialized: Vec<Vec<DeconstructedPattern>> =
                rows.iter().flat_map(|row| specialize(row, &constructor, parts.len())).collect();
            for row in specialize(row, &constructor, parts.len()) {
                match self.useful(&specialized, &row, &inner) {
                    Usefulness::Useless => {}
                    Usefulness::LimitReached => return Usefulness::LimitReached,
                    Usefulness::Useful(mut witness) => {
                        let rest = witness.split_off(parts.len());
                        return Usefulness::Useful(
                            [vec![DeconstructedPattern::Constructed(constructor, witness)], rest].concat(),
                        );
                    }
                }
            }
        }
        Usefulness::Useless
    }
}

/// Returns what remains of a row if its first value has the constructor. The fields of the constructor come first.
fn specialize(row: &[DeconstructedPattern], constructor: &Constructor, parts: usize) -> Vec<Vec<DeconstructedPattern>> {
    match &row[0] {
        DeconstructedPattern::Wildcard => vec![[&vec![DeconstructedPattern::Wildcard; parts], &row[1..]].concat()],
        DeconstructedPattern::Or(cases) => {
            let rows = cases.iter().map(|case| [std::slice::from_ref(case), &row[1..]].concat());
            rows.flat_map(|row| specialize(&row, constructor, parts)).collect()
        }
        DeconstructedPattern::Constructed(own, inner) => match own.takes(constructor, inner, parts) {
            Some(inner) => vec![[&inner, &row[1..]].concat()],
            None => Vec::new(),
        },
    }
}
