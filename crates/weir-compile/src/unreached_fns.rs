//! The checks of `fn`s that no flow reaches: each is lowered by itself, and its IR is checked like that of a flow.

use std::collections::BTreeSet;
use std::ops::Range;

use weir_ir::expr::Program;
use weir_syntax::Diagnostic;

use crate::check_cache::CheckCache;
use crate::context::CheckContext;
use crate::fingerprints::Fingerprints;
use crate::move_checker::{self, MoveOnlyDefinitions};
use crate::parallel::{cores, in_parallel};
use crate::typed_tree::TypedTree;
use crate::{lost_updates, lower, races};

/// The minimum number of `fn`s for which it pays to start threads.
const PARALLEL_MIN: usize = 256;

/// The number of jobs for each core, so that none waits long for the last one.
const JOBS_PER_CORE: usize = 4;

/// Checks every `fn` that no flow reaches, unless the cache knows it to be clean.
pub(crate) fn check<'a>(
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
    program: &Program,
    (cache, fingerprints): (&mut CheckCache, &Fingerprints<'_>),
) {
    let all: Vec<(usize, u64)> = typed.unreached_fns().into_iter().map(|at| (at, fingerprints.of(at))).collect();
    let (known, new): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, fingerprint)| cache.knows(*fingerprint));
    let found = in_parallel(parts(new.len()), |part| {
        let types = MoveOnlyDefinitions::of(&program.types, context.library);
        let check = |(at, _): &(usize, u64)| check_fn(*at, context.empty(), typed, &types);
        new[part].iter().map(check).collect::<Vec<_>>()
    });
    let mut clean: BTreeSet<u64> = known.into_iter().map(|(_, fingerprint)| fingerprint).collect();
    for ((_, fingerprint), diagnostics) in new.iter().zip(found.into_iter().flatten()) {
        if diagnostics.is_empty() {
            clean.insert(*fingerprint);
        }
        // The body of a `fn` that two others call has the same error twice.
        diagnostics.into_iter().for_each(|diagnostic| context.report_once(diagnostic));
    }
    cache.keep(clean);
}

/// Divides `fn`s into jobs.
fn parts(count: usize) -> Vec<Range<usize>> {
    let jobs = if count < PARALLEL_MIN { 1 } else { cores() * JOBS_PER_CORE };
    let size = count.div_ceil(jobs).max(1);
    (0..count).step_by(size).map(|begin| begin..(begin + size).min(count)).collect()
}

/// Returns what is wrong with a `fn`.
fn check_fn<'a>(
    at: usize,
    mut context: CheckContext<'a>,
    typed: &'a TypedTree,
    types: &MoveOnlyDefinitions<'_>,
) -> Vec<Diagnostic> {
    let context = &mut context;
    if let Some((parameters, body)) = lower::lower_unreached_fn(at, context, typed) {
        move_checker::check(&parameters, &body, types, context);
        lost_updates::check_body(&body, typed, context);
        races::check(&body, context);
    }
    std::mem::take(context.diagnostics_mut())
}
