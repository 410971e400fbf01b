//! Reads the graph form of a program.

use super::Parsed;
use super::cursor::Cursor;
use super::expr::{constraint, mode, prim, resource, test};
use super::lines::Lines;
use super::value::{ty, value};
use crate::graph::{Control, Graph, Kind, Node, NodeId, Source, SwitchArm, Use};

/// Parameters, constants, nodes, and what the graph yields.
pub(super) fn graph(lines: &mut Lines<'_>, depth: usize) -> Parsed<Graph> {
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

/// `name: Type = kind(inputs) if %1 arm 0 after %2 uses write world files within %3 @12..20`
fn node(lines: &mut Lines<'_>, line: &mut Cursor<'_>, depth: usize) -> Parsed<Node> {
    let name = line.name("the name of a node")?;
    let outputs = if line.eat(":") { line.commas(ty)? } else { Vec::new() };
    line.expect("=")?;
    let mut kind = kind(line)?;
    let inputs = line.list("(", ")", source)?;
    let control = if line.eat("if") { Some(control(line)?) } else { None };
    let after = if line.eat("after") { line.commas(id)? } else { Vec::new() };
    let uses = if line.eat("uses") { line.commas(usage)? } else { Vec::new() };
    let within = if line.eat("within") { Some(id(line)?) } else { None };
    let origin = line.origin()?;
    line.end()?;
    children(&mut kind, lines, depth + 1)?;
    Ok(Node { name, kind, inputs, outputs, control, after, uses, within, origin })
}

/// What a node does, its bodies still empty.
fn kind(line: &mut Cursor<'_>) -> Parsed<Kind> {
    if line.eat("call") {
        return Ok(Kind::Call { function: line.name("the path of a function")? });
    }
    if line.eat("switch") {
        return Ok(Kind::Switch { arms: Vec::new() });
    }
    if line.eat("select") {
        return Ok(Kind::Select { switch: id(line)? });
    }
    if line.eat("for") {
        return Ok(Kind::Map { body: Box::default() });
    }
    if line.eat("fold") {
        return Ok(Kind::Fold { body: Box::default() });
    }
    if line.eat("loop") {
        line.expect("at most")?;
        return Ok(Kind::Loop { body: Box::default(), at_most: line.number("the bound of a loop")? });
    }
    if line.eat("within") {
        return Ok(Kind::Within { body: Box::default() });
    }
    if line.eat("race") {
        return Ok(Kind::Race { bodies: Vec::new() });
    }
    if line.eat("acquire") {
        return Ok(Kind::Acquire { constraints: line.list("(", ")", constraint)? });
    }
    if line.eat("release") {
        return Ok(Kind::Release { acquire: id(line)? });
    }
    if line.eat("return") {
        return Ok(Kind::Return);
    }
    if line.eat("fail") {
        return Ok(Kind::Fail);
    }
    prim(line)?.map(Kind::Prim).ok_or_else(|| line.error("what the node does"))
}

fn children(kind: &mut Kind, lines: &mut Lines<'_>, depth: usize) -> Parsed<()> {
    match kind {
        Kind::Switch { arms } => {
            while let Some(mut line) = lines.next_at(depth) {
                let test = test(&mut line)?;
                let payload = if line.eat("payload") { line.number("a number of fields")? } else { 0 };
                line.end()?;
                arms.push(SwitchArm { test, payload });
            }
        }
        Kind::Map { body } | Kind::Fold { body } | Kind::Loop { body, .. } | Kind::Within { body } => {
            **body = graph(lines, depth)?;
        }
        Kind::Race { bodies } => {
            while let Some(mut line) = lines.next_with(depth, "branch") {
                line.end()?;
                bodies.push(graph(lines, depth + 1)?);
            }
        }
        _ => {}
    }
    Ok(())
}

/// `%3.0`, `p0`, `k0`, `shared hits`, `never`
fn source(cursor: &mut Cursor<'_>) -> Parsed<Source> {
    if cursor.sees("%") {
        let node = id(cursor)?;
        cursor.expect(".")?;
        return Ok(Source::Port(node, cursor.number("the index of a port")?));
    }
    if cursor.eat("shared") {
        return Ok(Source::Shared(cursor.name("the name of a shared value")?));
    }
    if cursor.eat("never") {
        return Ok(Source::Never);
    }
    cursor.eat("");
    let (parameter, constant) = (cursor.rest().starts_with('p'), cursor.rest().starts_with('k'));
    if !parameter && !constant {
        return Err(cursor.error("a port, `p0`, `k0`, `shared` or `never`"));
    }
    cursor.run(|c| matches!(c, 'p' | 'k'));
    let index = cursor.number("an index")?;
    Ok(if parameter { Source::Parameter(index) } else { Source::Constant(index) })
}

fn id(cursor: &mut Cursor<'_>) -> Parsed<NodeId> {
    Ok(NodeId(cursor.var()?.0))
}

/// `%1 arm 0`
fn control(cursor: &mut Cursor<'_>) -> Parsed<Control> {
    let switch = id(cursor)?;
    cursor.expect("arm")?;
    Ok(Control { switch, arm: cursor.number("the index of an arm")? })
}

/// `write held shared hits`
fn usage(cursor: &mut Cursor<'_>) -> Parsed<Use> {
    let mode = mode(cursor)?;
    let held = cursor.eat("held");
    Ok(Use { mode, held, resource: resource(cursor)? })
}
