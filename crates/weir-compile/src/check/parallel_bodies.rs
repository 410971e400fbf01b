//! The check of the bodies of large programs on several cores. A body depends only on declarations, so that the files are
//! divided into shares, each of which a checker of its own checks as if all other files were kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_syntax::Diagnostic;
use weir_syntax::ast::NodeCounts;

use super::TypeChecker;
use crate::context::CheckContext;
use crate::declarations::{Declarations, FileScope};
use crate::parallel::{cores, in_parallel};
use crate::typed_tree::{FileTypes, TypedTree};

/// The minimum number of expressions for which it pays to start threads.
const PARALLEL_MIN: usize = 16_384;

/// The number of shares for each core, so that none waits long for the last one.
const SHARES_PER_CORE: usize = 4;

/// The files of one checker, with their results so far.
type Share = Vec<(usize, Arc<FileTypes>)>;

/// The results of one checker: those of each file, with the modules that it names; and the diagnostics.
type CheckedShare = (Vec<(usize, Arc<FileTypes>, FileScope)>, Vec<Diagnostic>);

impl<'a> TypeChecker<'a, '_> {
    /// Checks the bodies of the files that are not kept.
    pub(super) fn bodies_of_files(&mut self) {
        let shares = self.shares();
        if shares.len() < 2 || !self.inference.is_solved() {
            self.bodies();
            self.end_bodies();
            self.hidden_divisions();
            return;
        }
        self.leave_file();
        self.end_bodies();
        self.typed.declarations.references.clear();
        let nothing: Arc<FileTypes> = FileTypes::new(NodeCounts::default()).into();
        let mut take = |file: usize| (file, std::mem::replace(&mut self.typed.files[file], nothing.clone()));
        let shares: Vec<Share> = shares.into_iter().map(|files| files.into_iter().map(&mut take).collect()).collect();
        let (context, declarations, others) = (&*self.context, &self.typed.declarations, &self.typed.files);
        let checked = in_parallel(shares, |share| check_share(share, context.empty(), declarations, others));
        for (files, diagnostics) in checked {
            for (file, types, scope) in files {
                self.typed.files[file] = types;
                self.typed.declarations.files[file] = scope;
            }
            self.context.report_all(diagnostics);
        }
    }

    /// Divides the files that are not kept, if they are many.
    fn shares(&self) -> Vec<Vec<usize>> {
        let counts = &self.context.tree().node_counts;
        let files: Vec<usize> = (0..counts.len()).filter(|file| !self.is_kept(*file)).collect();
        let all: usize = files.iter().map(|file| counts[*file].exprs as usize).sum();
        let cores = if all < PARALLEL_MIN || files.len() < 2 { 1 } else { cores() };
        if cores < 2 {
            return Vec::new();
        }
        let size = all.div_ceil(cores * SHARES_PER_CORE);
        let (mut shares, mut left) = (Vec::new(), 0);
        for file in files {
            if left == 0 {
                shares.push(Vec::new());
                left = size;
            }
            shares.last_mut().expect("the first one has been added").push(file);
            left = left.saturating_sub(counts[file].exprs as usize);
        }
        shares
    }
}

/// Checks the bodies of some files.
fn check_share(
    share: Share,
    mut context: CheckContext<'_>,
    declarations: &Declarations,
    others: &[Arc<FileTypes>],
) -> CheckedShare {
    let files: Vec<usize> = share.iter().map(|(file, _)| *file).collect();
    let kept: BTreeSet<usize> = (0..others.len()).filter(|file| !files.contains(file)).collect();
    let mut all = others.to_vec();
    for (file, types) in share {
        all[file] = types;
    }
    let mut typed = TypedTree::of_files(declarations.clone(), all);
    typed.declarations.file = files.first().copied().unwrap_or_default();
    let mut checker = TypeChecker::new(&mut context, typed, kept);
    checker.declares = false;
    checker.bodies();
    checker.end_bodies();
    checker.hidden_divisions();
    let typed = checker.typed;
    let result = |file: usize| (file, typed.files[file].clone(), typed.declarations.files[file].clone());
    let results = files.into_iter().map(result).collect();
    drop(typed);
    (results, std::mem::take(context.diagnostics_mut()))
}

#[cfg(test)]
mod tests {
    use test_support::{fixture, long_program};
    use weir_syntax::{SourceFile, SourceId, Sources, Style, render_all};

    use crate::parallel::CORES_OF_TEST;
    use crate::{CheckCache, ModuleFile, ModuleFiles, ModulePlace, ProgramFiles};

    struct Modules(Vec<(String, String)>);

    impl ModuleFiles for Modules {
        fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
            let found = self.0.iter().find(|(name, _)| place.names == [name.as_str()]);
            found.map_or(ModuleFile::Missing, |(name, text)| ModuleFile::Found {
                name: name.clone(),
                text: text.clone(),
            })
        }
    }

    /// Returns all that a check on so many cores finds.
    fn findings(modules: &[(String, String)], cores: usize) -> String {
        CORES_OF_TEST.set(Some(cores));
        let (library, mut modules) = (fixture::library(), modules.to_vec());
        let (name, main) = modules.pop().expect("the main file is the last");
        let mut sources = Sources::new();
        let source = sources.add(SourceFile::new(name, main));
        let files = &mut Modules(modules);
        let program = ProgramFiles::load(source, sources.file_mut(source), &library, files);
        let checked = crate::check_program(program, sources.file(source), &library, &mut CheckCache::default());
        let exprs: usize = checked.parsed.tree.node_counts.iter().map(|counts| counts.exprs as usize).sum();
        assert!(exprs >= super::PARALLEL_MIN, "{exprs} expressions");
        let mut lines = vec![render_all(&sources, &checked.diagnostics, Style::Plain)];
        let text = sources.file(SourceId(0)).text();
        let types = (0..text.len() as u32).step_by(61).filter_map(|offset| checked.type_at(offset));
        lines.extend(types.map(|(span, ty)| format!("{span:?} {ty}")));
        lines.extend(checked.references().map(|found| format!("{found:?}")));
        lines.extend(checked.expr.iter().chain(&checked.tests).map(weir_ir::print::expr));
        lines.join("\n")
    }

    #[test]
    fn the_number_of_cores_changes_nothing() {
        let mut modules = long_program::with_files(30, 250);
        let last = modules.len() - 1;
        let main = "use http\nconst limit = 7\nshared hits = 0\nservice s on http(port: 1) {\n  get \"/{n}\" (n: Int) {\n    \
            hits.add(1)\n    http.text(\"{total(n + limit)} {hits}\")\n  }\n}\ntest \"first\" { expect total(1) > 0 }\n";
        modules[last].1.push_str(main);
        assert_eq!(findings(&modules, 1), findings(&modules, 3), "a program without errors");
        for (at, wrong) in
            [(3, "fn f() -> Int { \"no\" }"), (9, "fn f() -> Int { g(1) }"), (20, "fn f() { let unused = 1 }")]
        {
            modules[at].1.push_str(wrong);
            modules[at].1.push_str("\nfn late(n: Option(Int)) -> Int { match n { Some(n) => n } }\n");
            assert_eq!(findings(&modules, 1), findings(&modules, 3), "{wrong}");
        }
    }
}
