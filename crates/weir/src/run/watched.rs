//! Checks of a program that `weir run --watch` has started, before it replaces the one that runs: it can use its tables, and does not
//! read the standard input.

use weir_host::{HostType, Library, Text};
use weir_ir::graph::{Graph, Node, NodeKind, Operand, Program};
use weir_library::tables::{Schema, TableLocation, check_start};
use weir_runtime::{StartError, StartFailure};

use crate::Exit;
use crate::terminal::Terminal;

/// Checks a program.
///
/// # Errors
/// Reports what is wrong, tables by `refused`, and returns the exit code.
pub(super) fn check(
    (program, library): (&Program, &Library),
    place: &TableLocation,
    terminal: &mut Terminal,
    refused: impl Fn(&StartError, &mut Terminal) -> Exit,
) -> Result<(), Exit> {
    let reads_standard_input = |source: &Text| {
        let source = source.rsplit_once('.').and_then(|(module, name)| library.modules.get(module)?.sources.get(name));
        source.is_some_and(|(_, source)| source.reads_standard_input())
    };
    if program.entries.iter().any(|entry| reads_standard_input(&entry.source)) {
        let message = "`stdio.lines` cannot be used with `--watch`: a new version would not get the lines that the one before it has \
                       read ahead";
        let hint =
            "run the program without `--watch`, or read the lines from a file with `files.lines` or `files.follow`";
        return Err(terminal.fail(Exit::Usage, message, &[hint]));
    }
    let opened = program.shared.iter().filter_map(|shared| opening(&shared.name, &shared.init));
    let (openings, schemas): (Vec<TableOpening<'_>>, Vec<Schema>) = opened.unzip();
    for (opening, schema) in openings.into_iter().zip(&schemas) {
        check_start((schema, &schemas), place).map_err(|failure| {
            let TableOpening { name, path } = opening;
            let error = StartError::Table(StartFailure { name: name.clone(), path: path.to_owned(), failure });
            refused(&error, terminal)
        })?;
    }
    Ok(())
}

/// The call that opens a table when the program starts.
struct TableOpening<'p> {
    name: &'p Text,
    /// The path of its node.
    path: &'p str,
}

/// Returns the call that opens the table with this initial value, and the table.
fn opening<'p>(name: &'p Text, init: &'p Graph) -> Option<(TableOpening<'p>, Schema)> {
    let is_open =
        |node: &&Node| matches!(&node.kind, NodeKind::Call { function, .. } if function.as_str() == "tables.open");
    let node = init.nodes.iter().find(is_open)?;
    let Operand::Constant(at) = node.inputs.first()? else { return None };
    let schema = Schema::from_value(init.constants.get(*at as usize)?.clone()).ok()?;
    Some((TableOpening { name, path: &node.name }, schema))
}
