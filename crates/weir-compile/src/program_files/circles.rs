//! Finds modules that use each other in a circle.

use weir_syntax::{Code, Diagnostic};

use super::{FileModules, ModuleUse};

/// Returns an error for one circle of modules, if there is one.
pub(super) fn find(modules: &FileModules, uses: &[ModuleUse]) -> Option<Diagnostic> {
    let mut uses_of: Vec<Vec<&ModuleUse>> = vec![Vec::new(); modules.names().len()];
    for used in uses {
        uses_of[used.from].push(used);
    }
    let circle = circle_in(&uses_of)?;
    let name = |file: usize| match &*modules.names()[file] {
        "" => "the main file".to_owned(),
        name => format!("`{name}`"),
    };
    let first = circle[0];
    let path: Vec<String> = circle.iter().map(|used| name(used.from)).collect();
    let message = format!("modules use each other in a circle: {} → {}", path.join(" → "), name(first.from));
    let mut diagnostic = Diagnostic::new(Code::ModuleCircle, message)
        .at(first.span, format!("{} uses {}", name(first.from), name(first.to)));
    for used in &circle[1..] {
        diagnostic = diagnostic.because(used.span, format!("{} uses {}", name(used.from), name(used.to)));
    }
    Some(diagnostic.hint("move what both need into a module of its own, which uses neither"))
}

/// Searches depth first, with an explicit stack: a path may have as many files as the program.
fn circle_in<'u>(uses_of: &[Vec<&'u ModuleUse>]) -> Option<Vec<&'u ModuleUse>> {
    let mut finished = vec![false; uses_of.len()];
    for start in 0..uses_of.len() {
        if finished[start] {
            continue;
        }
        // The uses that lead to the current file, and the number of its own uses that have been followed.
        let mut path: Vec<&ModuleUse> = Vec::new();
        let mut followed = vec![0];
        let mut on_path = vec![start];
        while let Some(file) = on_path.last().copied() {
            let next = uses_of[file].get(followed[followed.len() - 1]).copied();
            followed.last_mut().into_iter().for_each(|count| *count += 1);
            let Some(next) = next else {
                finished[file] = true;
                on_path.pop();
                followed.pop();
                path.pop();
                continue;
            };
            if let Some(at) = on_path.iter().position(|known| *known == next.to) {
                let mut circle = path.split_off(at);
                circle.push(next);
                return Some(circle);
            }
            if !finished[next.to] {
                path.push(next);
                on_path.push(next.to);
                followed.push(0);
            }
        }
    }
    None
}
