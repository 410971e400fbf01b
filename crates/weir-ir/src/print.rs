//! Printing of both IRs, as text that [`crate::parse`] parses back.
//!
//! Indentation by two spaces is nesting. A program is its types, its inlined calls, its shared values and its entries:
//!
//! ```text
//! type Shape enum
//!   variant Circle(radius: Float)
//!   variant Point
//! inlined 0 total @80..92
//! shared hits: count.Counter
//!   %0: count.Counter = call count.new at count.new (0)
//!   yield %0
//! entry images from http.http unordered
//!   arguments
//!     yield (8080,)
//!   flow "get /{name}" (%0 name: Text) -> Int
//!     route GET "/{name}"
//!       parameter name in path
//!     %1 size: Int = length(%0) @12..20 in call 0
//!     yield %1
//! ```
//!
//! Every constant can be printed and parsed back, floats exactly. Values of host types cannot be constants; they print
//! as `<image.Ppm>`, which does not parse. The two submodules describe the format of bodies.

use std::fmt::{self, Display, Write};

use weir_host::{Field, ParameterFrom, Text, TypeDefinition, TypeShape};

use crate::expr::Block;
use crate::graph::Graph;
use crate::program::{Entry, Flow, FlowRoute, FormerSite, LoopExit, Origin, Program, SharedValue, Variable};

mod expr;
mod graph;
mod value;

pub(crate) use graph::{OperandText, UseText};
pub use value::{Constant, NameText, TypeText};
pub(crate) use value::{is_bare, is_type_word};

/// Returns the expression IR of a program as text.
#[must_use]
pub fn expr(program: &Program<Block>) -> String {
    whole(program, expr::block)
}

/// Returns the graphs of a program as text.
#[must_use]
pub fn graph(program: &Program<Graph>) -> String {
    whole(program, graph::graph)
}

/// Returns one block as text.
#[must_use]
pub fn block(block: &Block) -> String {
    let mut page = IndentedText::default();
    expr::block(&mut page, block);
    page.text
}

/// Returns one graph as text.
#[must_use]
pub fn body(graph: &Graph) -> String {
    let mut page = IndentedText::default();
    graph::graph(&mut page, graph);
    page.text
}

/// The text so far, and the depth of its next line.
#[derive(Default)]
struct IndentedText {
    text: String,
    depth: usize,
}

impl IndentedText {
    fn line(&mut self, line: impl Display) {
        // Writing to a `String` cannot fail.
        _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 2);
    }

    fn nested(&mut self, children: impl FnOnce(&mut IndentedText)) {
        self.depth += 1;
        children(self);
        self.depth -= 1;
    }
}

type PrintBody<B> = fn(&mut IndentedText, &B);

fn whole<B>(program: &Program<B>, body: PrintBody<B>) -> String {
    let mut page = IndentedText::default();
    program.types.iter().for_each(|definition| type_definition(&mut page, definition));
    for (index, call) in program.inlined_calls.iter().enumerate() {
        page.line(format_args!("inlined {index} {}{}", NameText(&call.function), OriginText(call.called_at)));
    }
    program.shared.iter().for_each(|value| shared(&mut page, value, body));
    program.entries.iter().for_each(|value| entry(&mut page, value, body));
    page.text
}

fn type_definition(page: &mut IndentedText, definition: &TypeDefinition) {
    let name = NameText(&definition.name);
    match &definition.shape {
        TypeShape::Record(_) => page.line(format_args!("type {name} record")),
        TypeShape::Enum(_) => page.line(format_args!("type {name} enum")),
        TypeShape::Opaque { shareable: true } => page.line(format_args!("type {name} shareable")),
        TypeShape::Opaque { shareable: false } => page.line(format_args!("type {name} moved")),
    }
    page.nested(|page| {
        if !definition.doc.is_empty() {
            page.line(format_args!("doc {}", value::Quoted(&definition.doc)));
        }
        match &definition.shape {
            TypeShape::Record(fields) => fields.iter().for_each(|field| {
                page.line(format_args!("field {}", field_text(field)));
            }),
            TypeShape::Enum(variants) => variants.iter().for_each(|variant| {
                let fields = variant.fields.iter();
                let (fields, external) = (Commas(fields.map(field_text)), external_text(variant.external.as_ref()));
                page.line(format_args!("variant {}({fields}){external}", NameText(&variant.name)));
            }),
            TypeShape::Opaque { .. } => {}
        }
    });
}

/// `title: Text`, `title: Text as "headline" = ""`.
fn field_text(field: &Field) -> String {
    let default = field.default.as_ref().map_or(String::new(), |value| format!(" = {}", Constant(value)));
    let external = external_text(field.external.as_ref());
    format!("{}: {}{external}{default}", NameText(&field.name), TypeText(&field.ty))
}

fn external_text(name: Option<&Text>) -> String {
    name.map_or(String::new(), |name| format!(" as {}", value::Quoted(name)))
}

fn shared<B>(page: &mut IndentedText, shared: &SharedValue<B>, body: PrintBody<B>) {
    let scope = if shared.per_session { " per session" } else { "" };
    page.line(format_args!("shared {}: {}{scope}", NameText(&shared.name), TypeText(&shared.ty)));
    page.nested(|page| body(page, &shared.init));
}

fn entry<B>(page: &mut IndentedText, entry: &Entry<B>, body: PrintBody<B>) {
    let order = if entry.ordered { "ordered" } else { "unordered" };
    page.line(format_args!("entry {} from {} {order}", NameText(&entry.name), NameText(&entry.source)));
    page.nested(|page| {
        page.line("arguments");
        page.nested(|page| body(page, &entry.arguments));
        entry.flows.iter().for_each(|value| flow(page, value, body));
    });
}

fn flow<B>(page: &mut IndentedText, flow: &Flow<B>, body: PrintBody<B>) {
    let parameters = Commas(flow.parameters.iter().map(Binder));
    page.line(format_args!("flow {} ({parameters}) -> {}", NameText(&flow.name), TypeText(&flow.result)));
    page.nested(|page| {
        flow.route.iter().for_each(|value| route(page, value));
        flow.former_sites.iter().for_each(|value| former_site(page, value));
        body(page, &flow.body);
    });
}

/// `former files.read#2 now files.read`
fn former_site(page: &mut IndentedText, former: &FormerSite) {
    let now = former.now.as_ref().map_or(String::new(), |now| format!(" now {}", NameText(now)));
    page.line(format_args!("former {}{now}", NameText(&former.site)));
}

fn route(page: &mut IndentedText, route: &FlowRoute) {
    page.line(format_args!("route {} {}", NameText(&route.method), value::Quoted(&route.pattern)));
    page.nested(|page| {
        for parameter in &route.parameters {
            let from = match parameter.from {
                ParameterFrom::Path => "path",
                ParameterFrom::Query => "query",
                ParameterFrom::Body => "body",
                ParameterFrom::Header => "header",
                ParameterFrom::Cookie => "cookie",
                ParameterFrom::UnprefixedCookie => "unprefixed_cookie",
                ParameterFrom::EncryptedCookie => "encrypted_cookie",
                ParameterFrom::Form => "form",
            };
            let default = parameter.default.as_ref().map_or(String::new(), |value| format!(" = {}", Constant(value)));
            page.line(format_args!("parameter {} in {from}{default}", NameText(&parameter.name)));
        }
    });
}

/// `%3 name: Type`.
struct Binder<'a>(&'a Variable);

impl Display for Binder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}{}: {}", self.0.var.0, NameHint(&self.0.name), TypeText(&self.0.ty))
    }
}

/// The name of a variable behind its number; nothing if it is empty.
struct NameHint<'a>(&'a Text);

impl Display for NameHint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " {}", NameText(self.0)) }
    }
}

/// ` @12..20`; nothing for an empty origin.
struct OriginText(Origin);

impl Display for OriginText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Origin::default() {
            return Ok(());
        }
        write!(f, " @{}..{}", self.0.start, self.0.end)?;
        self.0.inlined_call.map_or(Ok(()), |call| write!(f, " in call {}", call.0))
    }
}

/// ` left by failure (@12..20)`; nothing if a loop is not left.
struct LoopExitText(LoopExit);

impl Display for LoopExitText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, at) = match self.0 {
            LoopExit::Never => return Ok(()),
            LoopExit::Failure(at) => ("failure", at),
            LoopExit::Return(at) => ("return", at),
        };
        write!(f, " left by {word} ({})", OriginText(at).to_string().trim_start())
    }
}

/// Items with `, ` between them.
pub(crate) struct Commas<I>(pub(crate) I);

impl<I: Iterator<Item: Display> + Clone> Display for Commas<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.clone().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")?;
        }
        Ok(())
    }
}
