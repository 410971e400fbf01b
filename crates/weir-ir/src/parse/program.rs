//! Parsing of the structure that both IRs share: types, shared values, entries, flows and routes.

use weir_host::{Field, ParameterFrom, Text, Type, TypeDefinition, TypeShape, Variant};

use super::cursor::Cursor;
use super::error::ParseResult;
use super::lines::LineReader;
use super::value::{ty, value};
use crate::program::{Entry, Flow, FlowRoute, FormerSite, InlinedCall, Program, RouteParameter, SharedValue, Variable};

/// Reads a body at this depth.
pub(super) type ParseBody<B> = fn(&mut LineReader<'_>, usize) -> ParseResult<B>;

pub(super) fn program<B>(lines: &mut LineReader<'_>, body: ParseBody<B>) -> ParseResult<Program<B>> {
    let mut program = Program::default();
    while let Some(mut line) = lines.next_with(0, "type") {
        program.types.push(type_definition(lines, &mut line)?);
    }
    while let Some(mut line) = lines.next_with(0, "inlined") {
        let number: usize = line.number("the number of a call")?;
        if number != program.inlined_calls.len() {
            return Err(line.error("the numbers of inlined calls in order, from 0"));
        }
        program
            .inlined_calls
            .push(InlinedCall { function: line.name("the name of a `fn`")?, called_at: line.origin()? });
        line.end()?;
    }
    while let Some(mut line) = lines.next_with(0, "shared") {
        program.shared.push(shared(lines, &mut line, body)?);
    }
    while let Some(mut line) = lines.next_with(0, "entry") {
        program.entries.push(entry(lines, &mut line, body)?);
    }
    lines.end("`type`, then `inlined`, then `shared`, then `entry`")?;
    Ok(program)
}

/// `type Shape enum`, and its parts below.
fn type_definition(lines: &mut LineReader<'_>, line: &mut Cursor<'_>) -> ParseResult<TypeDefinition> {
    let name = line.name("the name of a type")?;
    let doc = |lines: &mut LineReader<'_>| match lines.next_with(1, "doc") {
        Some(mut line) => line.quoted().and_then(|doc| line.end().map(|()| doc)),
        None => Ok(Text::default()),
    };
    let (shape, doc) = if line.eat("record") {
        let doc = doc(lines)?;
        (TypeShape::Record(parts(lines, "field", field)?), doc)
    } else if line.eat("enum") {
        let doc = doc(lines)?;
        (TypeShape::Enum(parts(lines, "variant", variant)?), doc)
    } else if line.eat("shareable") {
        (TypeShape::Opaque { shareable: true }, doc(lines)?)
    } else {
        line.expect("moved").map_err(|_| line.error("`record`, `enum`, `shareable` or `moved`"))?;
        (TypeShape::Opaque { shareable: false }, doc(lines)?)
    };
    line.end()?;
    Ok(TypeDefinition { name, doc, shape })
}

fn parts<T>(
    lines: &mut LineReader<'_>,
    word: &str,
    part: fn(&mut Cursor<'_>) -> ParseResult<T>,
) -> ParseResult<Vec<T>> {
    let mut parts = Vec::new();
    while let Some(mut line) = lines.next_with(1, word) {
        parts.push(part(&mut line)?);
        line.end()?;
    }
    Ok(parts)
}

/// `title: Text`, `title: Text as "headline" = ""`
fn field(cursor: &mut Cursor<'_>) -> ParseResult<Field> {
    let name = cursor.name("the name of a field")?;
    let (ty, external) = (colon_type(cursor)?, external(cursor)?);
    let default = if cursor.eat("=") { Some(value(cursor)?) } else { None };
    Ok(Field { name, ty, external, default })
}

/// `Circle(radius: Float)`, `Circle(radius: Float) as "circle"`
fn variant(cursor: &mut Cursor<'_>) -> ParseResult<Variant> {
    let name = cursor.name("the name of a variant")?;
    let fields = cursor.list("(", ")", field)?;
    Ok(Variant { name, fields, external: external(cursor)? })
}

/// `as "title"`, or nothing.
fn external(cursor: &mut Cursor<'_>) -> ParseResult<Option<Text>> {
    if cursor.eat("as") { cursor.quoted().map(Some) } else { Ok(None) }
}

fn colon_type(cursor: &mut Cursor<'_>) -> ParseResult<Type> {
    cursor.expect(":")?;
    ty(cursor)
}

/// `%3 name: Type`, whose name may be missing.
pub(super) fn binder(cursor: &mut Cursor<'_>) -> ParseResult<Variable> {
    let var = cursor.var()?;
    let name = if cursor.sees(":") { Text::default() } else { cursor.name("a name or `:`")? };
    Ok(Variable { var, name, ty: colon_type(cursor)? })
}

/// `shared hits: count.Counter`, `shared carts: shop.Cart per session`, and the body that computes it below.
fn shared<B>(lines: &mut LineReader<'_>, line: &mut Cursor<'_>, body: ParseBody<B>) -> ParseResult<SharedValue<B>> {
    let name = line.name("the name of a shared value")?;
    let ty = colon_type(line)?;
    let per_session = line.eat("per session");
    line.end()?;
    Ok(SharedValue { name, ty, per_session, init: body(lines, 1)? })
}

/// `entry images from http.http unordered`, its arguments and its flows below.
fn entry<B>(lines: &mut LineReader<'_>, line: &mut Cursor<'_>, body: ParseBody<B>) -> ParseResult<Entry<B>> {
    let name = line.name("the name of an entry")?;
    line.expect("from")?;
    let source = line.name("the path of a source")?;
    let ordered = line.eat("ordered");
    if !ordered && !line.eat("unordered") {
        return Err(line.error("`ordered` or `unordered`"));
    }
    line.end()?;
    let mut heading = lines.expect_at(1, "`arguments`")?;
    heading.expect("arguments")?;
    heading.end()?;
    let arguments = body(lines, 2)?;
    let mut flows = Vec::new();
    while let Some(mut line) = lines.next_with(1, "flow") {
        flows.push(flow(lines, &mut line, body)?);
    }
    Ok(Entry { name, source, arguments, ordered, flows })
}

/// `flow "get /{name}" (%0 name: Text) -> Int`, its route and its body below.
fn flow<B>(lines: &mut LineReader<'_>, line: &mut Cursor<'_>, body: ParseBody<B>) -> ParseResult<Flow<B>> {
    let name = line.name("the name of a flow")?;
    let parameters = line.list("(", ")", binder)?;
    line.expect("->")?;
    let result = ty(line)?;
    line.end()?;
    let route = lines.next_with(2, "route").map(|mut line| route(lines, &mut line)).transpose()?;
    let mut former_sites = Vec::new();
    while let Some(mut line) = lines.next_with(2, "former") {
        former_sites.push(former_site(&mut line)?);
        line.end()?;
    }
    Ok(Flow { name, route, parameters, result, body: body(lines, 2)?, former_sites })
}

/// `former files.read#2 now files.read`
fn former_site(line: &mut Cursor<'_>) -> ParseResult<FormerSite> {
    let site = line.name("the name of a call site")?;
    let now = if line.eat("now") { Some(line.name("the name of a call site")?) } else { None };
    Ok(FormerSite { site, now })
}

/// `route GET "/{name}"`, and its parameters below.
fn route(lines: &mut LineReader<'_>, line: &mut Cursor<'_>) -> ParseResult<FlowRoute> {
    let method = line.name("a method")?;
    let pattern = line.quoted()?;
    line.end()?;
    let mut parameters = Vec::new();
    while let Some(mut line) = lines.next_with(3, "parameter") {
        parameters.push(route_parameter(&mut line)?);
        line.end()?;
    }
    Ok(FlowRoute { method, pattern, parameters })
}

/// `scale in query = 8`
fn route_parameter(line: &mut Cursor<'_>) -> ParseResult<RouteParameter> {
    const PLACES: [(&str, ParameterFrom); 8] = [
        ("path", ParameterFrom::Path),
        ("query", ParameterFrom::Query),
        ("header", ParameterFrom::Header),
        ("cookie", ParameterFrom::Cookie),
        ("unprefixed_cookie", ParameterFrom::UnprefixedCookie),
        ("encrypted_cookie", ParameterFrom::EncryptedCookie),
        ("form", ParameterFrom::Form),
        ("body", ParameterFrom::Body),
    ];
    let name = line.name("the name of a parameter")?;
    line.expect("in")?;
    let from = PLACES.into_iter().find(|(word, _)| line.eat(word));
    let (_, from) = from.ok_or_else(|| line.error("the part of a request, such as `path` or `body`"))?;
    let default = if line.eat("=") { Some(value(line)?) } else { None };
    Ok(RouteParameter { name, from, default })
}
