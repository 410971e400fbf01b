//! Reads the blocks of the expression IR.

use weir_host::{Mode, Resource, Text};

use super::cursor::Cursor;
use super::error::ParseResult;
use super::lines::LineReader;
use super::program::binder;
use super::value::value;
use crate::expr::{Arm, ArmTest, Atom, Block, Call, Constraint, Let, Op};
use crate::prim::Prim;

/// Bindings, and what the block yields.
pub(super) fn block(lines: &mut LineReader<'_>, depth: usize) -> ParseResult<Block> {
    let mut lets = Vec::new();
    loop {
        let mut line = lines.expect_at(depth, "a binding or `yield`")?;
        if line.eat("yield") {
            let result = atom(&mut line)?;
            line.end()?;
            return Ok(Block { lets, result });
        }
        lets.push(binding(lines, &mut line, depth)?);
    }
}

/// `%3 name: Type = operation @12..20`
fn binding(lines: &mut LineReader<'_>, line: &mut Cursor<'_>, depth: usize) -> ParseResult<Let> {
    let bound = binder(line)?;
    line.expect("=")?;
    let mut op = head(line)?;
    let origin = line.origin()?;
    line.end()?;
    children(&mut op, lines, depth + 1)?;
    Ok(Let { bound, op, origin })
}

/// An operation with empty blocks.
fn head(line: &mut Cursor<'_>) -> ParseResult<Op> {
    if line.eat("call") {
        let function = line.name("the path of a function")?;
        line.expect("at")?;
        let site = line.name("the name of a call site")?;
        let arguments = line.list("(", ")", atom)?;
        return Ok(Op::Call(Call { function, site, arguments, keeps_failure: line.eat("keeps failure") }));
    }
    if line.eat("for") {
        let element = binder(line)?;
        line.expect("in")?;
        return Ok(Op::Map { list: atom(line)?, element, body: Block::empty() });
    }
    if line.eat("fold") {
        return fold(line);
    }
    if line.eat("loop") {
        let init = line.commas(atom)?;
        line.expect("at most")?;
        let at_most = line.number("the bound of a loop")?;
        line.expect("as")?;
        return Ok(Op::Loop { init, state: line.commas(binder)?, body: Block::empty(), at_most });
    }
    if line.eat("atomic") {
        let cancellable = line.eat("cancellable");
        let constraints = line.list("(", ")", constraint)?;
        let restores = restores(line)?;
        let session = if line.eat("session") { Some(atom(line)?) } else { None };
        return Ok(Op::Atomic { constraints, restores, session, cancellable, body: Block::empty() });
    }
    if line.eat("transaction") {
        line.expect("as")?;
        return Ok(Op::Transaction { is_last: binder(line)?, body: Block::empty() });
    }
    if let Some(mut op) = Op::without_details().into_iter().find(|op| line.eat(op.word())) {
        op.operands_mut().try_for_each(|operand| atom(line).map(|parsed| *operand = parsed))?;
        return Ok(op);
    }
    let prim = prim(line)?.ok_or_else(|| line.error("an operation"))?;
    Ok(Op::Prim(prim, line.list("(", ")", atom)?))
}

/// `fold %3 from 0 as %4: Int, %5: Int`, with the exit behind it
fn fold(line: &mut Cursor<'_>) -> ParseResult<Op> {
    let list = atom(line)?;
    line.expect("from")?;
    let init = line.commas(atom)?;
    line.expect("as")?;
    let mut state = line.commas(binder)?;
    let element = state.pop().expect("a list of binders is not empty");
    Ok(Op::Fold { list, init, state, element, body: Block::empty(), exit: line.loop_exit()? })
}

fn children(op: &mut Op, lines: &mut LineReader<'_>, depth: usize) -> ParseResult<()> {
    if let Op::Switch { arms, .. } = op {
        while let Some(mut line) = lines.next_at(depth) {
            arms.push(arm(lines, &mut line, depth)?);
        }
    } else if let Some(bodies) = op.branches_mut() {
        while let Some(mut line) = lines.next_with(depth, "branch") {
            line.end()?;
            bodies.push(block(lines, depth + 1)?);
        }
    } else {
        op.blocks_mut().try_for_each(|body| block(lines, depth).map(|parsed| *body = parsed))?;
    }
    Ok(())
}

/// `tag 1 (%5 hit: Bytes)`, and its block below.
fn arm(lines: &mut LineReader<'_>, line: &mut Cursor<'_>, depth: usize) -> ParseResult<Arm> {
    let test = test(line)?;
    let payload = if line.sees("(") { line.list("(", ")", binder)? } else { Vec::new() };
    line.end()?;
    Ok(Arm { test, payload, body: block(lines, depth + 1)? })
}

/// `tag 1`, `value "a"`, `otherwise`
pub(super) fn test(line: &mut Cursor<'_>) -> ParseResult<ArmTest> {
    if line.eat("tag") {
        Ok(ArmTest::Tag(line.number("the tag of a variant")?))
    } else if line.eat("value") {
        Ok(ArmTest::Value(value(line)?))
    } else {
        line.expect("otherwise").map_err(|_| line.error("`tag`, `value` or `otherwise`"))?;
        Ok(ArmTest::Otherwise)
    }
}

fn atom(cursor: &mut Cursor<'_>) -> ParseResult<Atom> {
    if cursor.sees("%") {
        Ok(Atom::Var(cursor.var()?))
    } else if cursor.eat("shared") {
        Ok(Atom::Shared(cursor.name("the name of a shared value")?))
    } else {
        let here = cursor.error("a variable, a constant or `shared`");
        let constant = value(cursor);
        // If the inner parser got further, its error is more precise.
        Ok(Atom::Value(constant.map_err(|inner| if inner.column == here.column { here } else { inner })?))
    }
}

/// Parses a primitive with its index; `None` if there is none here.
pub(super) fn prim(cursor: &mut Cursor<'_>) -> ParseResult<Option<Prim>> {
    let Some(prim) = Prim::ALL.into_iter().find(|prim| cursor.eat(prim.name())) else { return Ok(None) };
    if prim.index().is_none() {
        return Ok(Some(prim));
    }
    cursor.expect(".")?;
    Ok(Some(prim.with_index(cursor.number("an index")?)))
}

/// `restores (counter, seen)`, or nothing
pub(super) fn restores(cursor: &mut Cursor<'_>) -> ParseResult<Vec<Text>> {
    if cursor.eat("restores") {
        cursor.list("(", ")", |name| name.name("the name of a shared value"))
    } else {
        Ok(Vec::new())
    }
}

/// `write per session shared carts`
pub(super) fn constraint(cursor: &mut Cursor<'_>) -> ParseResult<Constraint> {
    let mode = mode(cursor)?;
    let per_session = cursor.eat("per session");
    Ok(Constraint { mode, per_session, resource: resource(cursor)? })
}

pub(super) fn mode(cursor: &mut Cursor<'_>) -> ParseResult<Mode> {
    if cursor.eat("read") {
        return Ok(Mode::Read);
    }
    cursor.expect("write").map_err(|_| cursor.error("`read` or `write`"))?;
    Ok(Mode::Write)
}

/// `shared carts`, `world files`
pub(super) fn resource(cursor: &mut Cursor<'_>) -> ParseResult<Resource> {
    type Make = fn(weir_host::Text) -> Resource;
    const SORTS: [(&str, Make); 4] = [
        ("shared", Resource::Shared),
        ("constraint", Resource::Constraint),
        ("world", Resource::World),
        ("state", Resource::State),
    ];
    let sort = SORTS.into_iter().find(|(word, _)| cursor.eat(word));
    let (_, make) = sort.ok_or_else(|| cursor.error("`shared`, `constraint`, `world` or `state`"))?;
    Ok(make(cursor.name("the name of a resource")?))
}
