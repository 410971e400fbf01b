//! `weir fix`: applies the edits that diagnostics propose and that are certain to be right; on request, also those that
//! warnings suggest.

use std::path::Path;

use weir_ide::apply;
use weir_syntax::{Certainty, Edit, location};

use crate::commands::arguments::FixArguments;
use crate::programs::is_standard_input;
use crate::project::Project;
use crate::terminal::{ErrorFormat, Terminal};
use crate::{Exit, Library, programs};

/// Maximum number of rounds: an edit may make another one possible, such as a `use` whose last module goes.
const ROUNDS_MAX: usize = 16;

/// Maximum number of edits of a round that are tried one by one, because all together cause an error.
const SINGLE_EDITS_MAX: usize = 64;

/// Fixes every file in place, or reports files that could be fixed. Prints what was changed and what remains.
pub(crate) fn fix(arguments: &FixArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    programs::for_each(&arguments.files, terminal, |file, terminal| fix_file(file, arguments, library, terminal))
}

fn fix_file(path: &Path, arguments: &FixArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let mut project = Project::default();
    let text = match project.read(path, terminal) {
        Ok(id) => project.sources.file(id).text().to_owned(),
        Err(exit) => return exit,
    };
    if project.has_errors() {
        return project.report(ErrorFormat::Human, terminal);
    }
    let (fixed, changes) = fixed(path, &text, arguments.suggestions, library);
    terminal.eprint(&changes.concat());
    match (arguments.check, is_standard_input(path)) {
        (false, true) => terminal.print(&fixed),
        (true, _) if !changes.is_empty() => Exit::Failure,
        (false, false) if fixed != text => match terminal.write(Some(path), &fixed) {
            Exit::Success => report_rest(path, &fixed, library, terminal),
            exit => exit,
        },
        _ => report_rest(path, &fixed, library, terminal),
    }
}

/// Applies all chosen edits until none is left. Returns the text and one line for each change.
fn fixed(path: &Path, text: &str, suggestions: bool, library: &Library) -> (String, Vec<String>) {
    let (mut text, mut changes) = (text.to_owned(), Vec::new());
    let mut project = checked(path, &text, library);
    for _ in 0..ROUNDS_MAX {
        let chosen = chosen_edits(&project, text.len(), suggestions);
        let without_errors = |edits: &[(Edit, String)]| {
            let edits: Vec<Edit> = edits.iter().map(|(edit, _)| edit.clone()).collect();
            let next = apply(&text, &edits);
            let after = checked(path, &next, library);
            // An edit that causes an error was not certain; the author sees its diagnostic.
            (errors_in(&after) <= errors_in(&project)).then_some((next, after))
        };
        let (applied, (next, after)) = match without_errors(&chosen) {
            Some(result) => (chosen, result),
            None if suggestions => {
                let harmless = chosen.into_iter().take(SINGLE_EDITS_MAX).fold(Vec::new(), |mut harmless, edit| {
                    harmless.push(edit);
                    if without_errors(&harmless).is_none() {
                        harmless.pop();
                    }
                    harmless
                });
                let Some(result) = without_errors(&harmless) else { break };
                (harmless, result)
            }
            None => break,
        };
        if next == text {
            break;
        }
        (text, project) = (next, after);
        changes.extend(applied.into_iter().map(|(_, line)| line));
    }
    (text, changes)
}

/// Returns the first chosen edit of each diagnostic and its line of output, without edits that overlap earlier ones and
/// those of the modules behind the file, which has this length. Chosen are the certain edits, and the `suggestions` of
/// warnings.
fn chosen_edits(project: &Project, length: usize, suggestions: bool) -> Vec<(Edit, String)> {
    let proposed = project.diagnostics.iter().filter_map(|diagnostic| {
        let is_applied = |certainty: Certainty| match certainty {
            Certainty::Certain => true,
            Certainty::Suggested => suggestions && !diagnostic.is_error(),
            Certainty::Offered => false,
        };
        let hint = diagnostic.help.iter().find(|hint| hint.edit.is_some() && is_applied(hint.certainty))?;
        let edit = hint.edit.clone().filter(|edit| edit.span.end as usize <= length)?;
        Some((edit, hint.text.as_str(), diagnostic))
    });
    let mut proposed: Vec<_> = proposed.collect();
    proposed.sort_by_key(|(edit, ..)| (edit.span.start, edit.span.end));
    let mut edits: Vec<(Edit, String)> = Vec::new();
    for (edit, advice, diagnostic) in proposed {
        if edits.last().is_none_or(|(last, _)| last.span.end <= edit.span.start && last.span != edit.span) {
            let place = location(project.sources.file(edit.span.source), edit.span.start);
            let line = format!("{place}: {}: {advice} [{}]\n", diagnostic.message, diagnostic.code);
            edits.push((edit, line));
        }
    }
    edits
}

fn checked(path: &Path, text: &str, library: &Library) -> Project {
    let mut project = Project::default();
    let source = project.add(path, text);
    project.check(source, library);
    project
}

fn errors_in(project: &Project) -> usize {
    project.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count()
}

/// Prints the diagnostics that no certain edit removes.
fn report_rest(path: &Path, text: &str, library: &Library, terminal: &mut Terminal) -> Exit {
    checked(path, text, library).report(ErrorFormat::Human, terminal)
}
