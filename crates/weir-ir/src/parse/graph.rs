//! Reads the graph form of a program.

use super::cursor::Cursor;
use super::error::ParseResult;
use super::expr::{constraint, mode, prim, resource, restores, test};
use super::lines::LineReader;
use super::value::{ty, value};
use crate::graph::{Control, Graph, Node, NodeId, NodeKind, Operand, ResourceUse, SwitchArm};

/// Parameters, constants, nodes, and what the graph yields.
pub(super) fn graph(lines: &mut LineReader<'_>, depth: usize) -> ParseResult<Graph> {
    let mut graph = Graph::default();
    if let Some(mut line) = lines.next_with(depth, "parameters") {
        graph.parameters = line.commas(ty)?;
        line.end()?;
    }
    while let Some(mut line) = lines.next_with(depth, "constant") {
        graph.constants.push(value(&mut line)?);
        line.end()?;
    }
    loop {
        let mut line = lines.expect_at(depth, "a node or `yield`")?;
        if line.eat("yield") {
            graph.result = source(&mut line)?;
            line.end()?;
            return Ok(graph);
        }
        if !line.eat(&format!("%{}", graph.nodes.len())) {
            return Err(
                line.error(&format!("`%{}`, for nodes are numbered in their order, or `yield`", graph.nodes.len()))
            );
        }
        graph.nodes.push(node(lines, &mut line, depth)?);
    }
}

/// `name: Type = kind(inputs) if %1 arm 0 after %2 uses write world files within %3 condition of %5 @12..20`
fn node(lines: &mut LineReader<'_>, line: &mut Cursor<'_>, depth: usize) -> ParseResult<Node> {
    let name = line.name("the name of a node")?;
    let outputs = if line.eat(":") { line.commas(ty)? } else { Vec::new() };
    line.expect("=")?;
    let mut kind = kind(line)?;
    let inputs = line.list("(", ")", source)?;
    let control = if line.eat("if") { Some(control(line)?) } else { None };
    let after = if line.eat("after") { line.commas(id)? } else { Vec::new() };
    let uses = if line.eat("uses") { line.commas(usage)? } else { Vec::new() };
    let within = if line.eat("within") { Some(id(line)?) } else { None };
    let condition_of = if line.eat("condition of") { Some(id(line)?) } else { None };
    let origin = line.origin()?;
    line.end()?;
    children(&mut kind, lines, depth + 1)?;
    Ok(Node { name, kind, inputs, outputs, control, after, uses, within, condition_of, origin })
}

/// `of 3 at most 9`: the number of states, 1 if it is not there, the bound on rounds, and the exit of a fold.
fn numbers(kind: &mut NodeKind, line: &mut Cursor<'_>) -> ParseResult<()> {
    let (states, at_most) = kind.numbers_mut();
    if let Some(states) = states
        && line.eat("of")
    {
        *states = line.number("the number of states")?;
    }
    if let Some(at_most) = at_most {
        line.expect("at most")?;
        *at_most = line.number("the bound of a loop")?;
    }
    if let Some(exit) = kind.exit_mut() {
        *exit = line.loop_exit()?;
    }
    Ok(())
}

/// The operation of a node, with empty bodies.
fn kind(line: &mut Cursor<'_>) -> ParseResult<NodeKind> {
    if line.eat("call") {
        let function = line.name("the path of a function")?;
        let (keeps_failure, may_end) = (line.eat("keeps failure"), line.eat("may end"));
        return Ok(NodeKind::Call { function, keeps_failure, may_end });
    }
    if line.eat("select") {
        return Ok(NodeKind::Select { switch: id(line)? });
    }
    if line.eat("acquire") {
        let cancellable = line.eat("cancellable");
        let constraints = line.list("(", ")", constraint)?;
        return Ok(NodeKind::Acquire { constraints, restores: restores(line)?, cancellable });
    }
    if line.eat("release") {
        return Ok(NodeKind::Release { acquire: id(line)? });
    }
    if let Some(mut kind) = NodeKind::without_details().into_iter().find(|kind| line.eat(kind.word())) {
        numbers(&mut kind, line)?;
        return Ok(kind);
    }
    prim(line)?.map(NodeKind::Prim).ok_or_else(|| line.error("what the node does"))
}

fn children(kind: &mut NodeKind, lines: &mut LineReader<'_>, depth: usize) -> ParseResult<()> {
    if let NodeKind::Switch { arms } = kind {
        while let Some(mut line) = lines.next_at(depth) {
            let test = test(&mut line)?;
            let payload = if line.eat("payload") { line.number("a number of fields")? } else { 0 };
            line.end()?;
            arms.push(SwitchArm { test, payload });
        }
    } else if let Some(bodies) = kind.branches_mut() {
        while let Some(mut line) = lines.next_with(depth, "branch") {
            line.end()?;
            bodies.push(graph(lines, depth + 1)?);
        }
    } else {
        kind.bodies_mut().iter_mut().try_for_each(|body| graph(lines, depth).map(|parsed| *body = parsed))?;
    }
    Ok(())
}

/// `%3.0`, `p0`, `k0`, `shared hits`, `never`
fn source(cursor: &mut Cursor<'_>) -> ParseResult<Operand> {
    if cursor.sees("%") {
        let node = id(cursor)?;
        cursor.expect(".")?;
        return Ok(Operand::Port(node, cursor.number("the index of a port")?));
    }
    if cursor.eat("shared") {
        return Ok(Operand::Shared(cursor.name("the name of a shared value")?));
    }
    if cursor.eat("never") {
        return Ok(Operand::Never);
    }
    cursor.eat("");
    let (parameter, constant) = (cursor.rest().starts_with('p'), cursor.rest().starts_with('k'));
    if !parameter && !constant {
        return Err(cursor.error("a port, `p0`, `k0`, `shared` or `never`"));
    }
    cursor.run(|c| matches!(c, 'p' | 'k'));
    let index = cursor.number("an index")?;
    Ok(if parameter { Operand::Parameter(index) } else { Operand::Constant(index) })
}

fn id(cursor: &mut Cursor<'_>) -> ParseResult<NodeId> {
    Ok(NodeId(cursor.var()?.0))
}

/// `%1 arm 0`
fn control(cursor: &mut Cursor<'_>) -> ParseResult<Control> {
    let switch = id(cursor)?;
    cursor.expect("arm")?;
    Ok(Control { switch, arm: cursor.number("the index of an arm")? })
}

/// `write held shared hits`
fn usage(cursor: &mut Cursor<'_>) -> ParseResult<ResourceUse> {
    let mode = mode(cursor)?;
    let held = cursor.eat("held");
    Ok(ResourceUse { mode, held, resource: resource(cursor)? })
}
