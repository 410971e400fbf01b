//! `--port`: replaces the port in the program.

use weir_host::{Library, Value};
use weir_ir::graph::{Graph, NodeKind, Operand, Program};
use weir_ir::prim::Prim;

/// Name of the port parameter of a source.
const PORT: &str = "port";

/// The reason why the port cannot be replaced, and advice.
pub(super) struct PortError {
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// Replaces the port of the only source that has one.
///
/// # Errors
/// Fails if no source or several sources have a port.
pub(super) fn replace(program: &mut Program, library: &Library, port: u16) -> Result<(), PortError> {
    let mut listening: Vec<(usize, usize)> = Vec::new();
    for (index, entry) in program.entries.iter().enumerate() {
        let source =
            entry.source.rsplit_once('.').and_then(|(module, name)| library.modules.get(module)?.sources.get(name));
        let parameters = source.map(|(signature, _)| signature.parameters.as_slice()).unwrap_or_default();
        listening.extend(parameters.iter().position(|parameter| &*parameter.name == PORT).map(|place| (index, place)));
    }
    match listening.as_slice() {
        [(entry, place)] => replace_argument(&mut program.entries[*entry].arguments, *place, Value::Int(port.into())),
        [] => Err(PortError {
            message: "`--port` cannot be used: no source of this program listens on a port".into(),
            hint: "run the program without `--port`",
        }),
        several => Err(PortError {
            message: format!("`--port` is ambiguous: this program listens on {} ports", several.len()),
            hint: "declare the ports, as in `config port: Int = 8080`, and choose each with `--set port=…`",
        }),
    }
}

fn no_tuple() -> PortError {
    PortError {
        message: "the arguments of the source are not a tuple".into(),
        hint: "this is a bug in Weir or in a linked library",
    }
}

/// Replaces one element of the tuple that the graph returns.
fn replace_argument(arguments: &mut Graph, place: usize, value: Value) -> Result<(), PortError> {
    let constant = |graph: &mut Graph, value: Value| {
        graph.constants.push(value);
        Operand::Constant(u32::try_from(graph.constants.len() - 1).unwrap_or(u32::MAX))
    };
    match arguments.result.clone() {
        Operand::Port(node, _) if arguments.node(node).kind == NodeKind::Prim(Prim::Record) => {
            let replacement = constant(arguments, value);
            arguments.nodes[node.0 as usize].inputs[place] = replacement;
            Ok(())
        }
        Operand::Constant(index) => match &arguments.constants[index as usize] {
            Value::Record(fields) => {
                let mut fields = fields.to_vec();
                fields[place] = value;
                arguments.result = constant(arguments, Value::Record(fields.into()));
                Ok(())
            }
            _ => Err(no_tuple()),
        },
        _ => Err(no_tuple()),
    }
}
