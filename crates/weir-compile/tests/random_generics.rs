//! Random programs of generic `fn`s and closures. Each is written twice: with generic `fn`s, and with a copy of each `fn`
//! for the types of each call. Both must compile, and the evaluator must compute the same.
//!
//! `WEIR_GENERICS=400..4000` tries other seeds.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use std::collections::BTreeMap;
use std::fmt;

use running::compiled;
use test_support::fixture;
use weir_ir::evaluate::Evaluator;

/// The programs that are tried.
const PROGRAMS: u64 = 300;

/// A type; a parameter is `a` or `b`.
#[derive(Clone, PartialEq)]
enum Shape {
    Int,
    Text,
    Parameter(char),
    List(Box<Shape>),
    Option(Box<Shape>),
    Pair(Box<(Shape, Shape)>),
    Function(Box<(Shape, Shape)>),
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Int => out.write_str("Int"),
            Shape::Text => out.write_str("Text"),
            Shape::Parameter(name) => write!(out, "{name}"),
            Shape::List(part) => write!(out, "List({part})"),
            Shape::Option(part) => write!(out, "Option({part})"),
            Shape::Pair(parts) => write!(out, "({}, {})", parts.0, parts.1),
            Shape::Function(parts) => write!(out, "fn({}) -> {}", parts.0, parts.1),
        }
    }
}

type Types = BTreeMap<char, Shape>;

impl Shape {
    fn with(&self, types: &Types) -> Shape {
        let part = |part: &Shape| Box::new(part.with(types));
        let pair = |parts: &(Shape, Shape)| Box::new((parts.0.with(types), parts.1.with(types)));
        match self {
            Shape::Parameter(name) => types.get(name).unwrap_or(self).clone(),
            Shape::List(inner) => Shape::List(part(inner)),
            Shape::Option(inner) => Shape::Option(part(inner)),
            Shape::Pair(parts) => Shape::Pair(pair(parts)),
            Shape::Function(parts) => Shape::Function(pair(parts)),
            Shape::Int | Shape::Text => self.clone(),
        }
    }
}

/// A part of the text of a program.
#[derive(Clone)]
enum Piece {
    Text(String),
    /// A type, which differs between the two ways to write the program.
    Type(Shape),
    /// The name of a generic `fn`, by its number, with the types of the call.
    Call(usize, Types),
}

#[derive(Clone, Default)]
struct Code(Vec<Piece>);

impl Code {
    fn text(text: impl Into<String>) -> Code {
        Code(vec![Piece::Text(text.into())])
    }

    fn then(mut self, other: Code) -> Code {
        self.0.extend(other.0);
        self
    }

    fn and(self, text: &str) -> Code {
        self.then(Code::text(text))
    }
}

struct Template {
    parameters: Vec<(String, Shape)>,
    result: Shape,
    body: Code,
}

/// A generator of random numbers (xorshift*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

struct Maker {
    random: Random,
    templates: Vec<Template>,
    names: usize,
    /// The calls of generic `fn`s that the current body may still make: each is inlined.
    calls: usize,
}

type Scope = Vec<(String, Shape)>;

impl Maker {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Returns a type of values, with the parameters that are in scope.
    fn shape(&mut self, parameters: &[char], depth: usize) -> Shape {
        match self.random.below(if depth == 0 { 3 } else { 6 }) {
            0 => Shape::Int,
            1 => Shape::Text,
            2 if !parameters.is_empty() => Shape::Parameter(parameters[self.random.below(parameters.len())]),
            3 => Shape::List(Box::new(self.shape(parameters, depth - 1))),
            4 => Shape::Option(Box::new(self.shape(parameters, depth - 1))),
            5 => Shape::Pair(Box::new((self.shape(parameters, depth - 1), self.shape(parameters, depth - 1)))),
            _ => Shape::Int,
        }
    }

    fn template(&mut self) {
        let (values, parameters) = (1 + self.random.below(2), ['a', 'b']);
        let mut scope: Scope = vec![(self.name(), Shape::Parameter('a')), (self.name(), Shape::Parameter('b'))];
        for _ in 0..values {
            let shape = self.shape(&parameters, 2);
            scope.push((self.name(), shape));
        }
        let (from, to) = (self.shape(&parameters, 1), self.shape(&parameters, 1));
        scope.push((self.name(), Shape::Function(Box::new((from, to)))));
        let result = self.shape(&parameters, 2);
        self.calls = 2;
        let body = self.value(&result, &scope, 3);
        self.templates.push(Template { parameters: scope, result, body });
    }

    /// Returns the type of a value in scope.
    fn of_value(&mut self, scope: &Scope) -> Shape {
        let values: Vec<&Shape> =
            scope.iter().map(|(_, shape)| shape).filter(|shape| !matches!(shape, Shape::Function(_))).collect();
        values[self.random.below(values.len())].clone()
    }

    /// Returns an expression of this type.
    fn value(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Code {
        if depth > 0 {
            match self.random.below(8) {
                0 => return self.choice(shape, scope, depth),
                1 => return self.bound(shape, scope, depth),
                2 | 3 => {
                    if let Some(call) = self.call(shape, scope, depth) {
                        return call;
                    }
                }
                4 => return self.folded(shape, scope, depth),
                5 => return self.unwrapped(shape, scope, depth),
                6 => {
                    if let Some(call) = self.called(shape, scope, depth) {
                        return call;
                    }
                }
                _ => {}
            }
        }
        let known: Vec<&String> = scope.iter().filter(|(_, known)| known == shape).map(|(name, _)| name).collect();
        match known.len() {
            0 => self.made(shape, scope, depth),
            count if depth == 0 || self.random.below(3) > 0 => Code::text(known[self.random.below(count)]),
            _ => self.made(shape, scope, depth),
        }
    }

    fn made(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Code {
        let depth = depth.saturating_sub(1);
        match shape {
            Shape::Int if depth > 0 => {
                let one = self.value(&Shape::Int, scope, depth);
                Code::text("(").then(one).and(" % 9 + ").then(self.value(&Shape::Int, scope, 0)).and(" % 9)")
            }
            Shape::Int => Code::text(self.random.below(9).to_string()),
            Shape::Text => Code::text(format!("\"t{}\"", self.random.below(9))),
            Shape::Parameter(_) => {
                Code::text(&scope.iter().find(|(_, known)| known == shape).expect("each parameter has a value").0)
            }
            Shape::List(part) if self.random.below(4) > 0 => {
                let first = self.value(part, scope, depth);
                Code::text("[").then(first).and(", ").then(self.value(part, scope, 0)).and("]")
            }
            Shape::Option(part) if self.random.below(4) > 0 => {
                Code::text("Some(").then(self.value(part, scope, depth)).and(")")
            }
            Shape::List(_) | Shape::Option(_) => {
                let (name, empty) = (self.name(), if matches!(shape, Shape::List(_)) { "[]" } else { "None" });
                let declared = Code::text(format!("{{ let {name}: ")).then(Code(vec![Piece::Type(shape.clone())]));
                declared.and(&format!(" = {empty}; {name} }}"))
            }
            Shape::Pair(parts) => {
                let first = self.value(&parts.0, scope, depth);
                Code::text("(").then(first).and(", ").then(self.value(&parts.1, scope, depth)).and(")")
            }
            Shape::Function(parts) => {
                let name = self.name();
                let mut inner = scope.clone();
                inner.push((name.clone(), parts.0.clone()));
                Code::text(format!("|{name}| ")).then(self.value(&parts.1, &inner, depth))
            }
        }
    }

    fn choice(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Code {
        let compared = scope[self.random.below(2)].1.clone();
        let one = self.value(&compared, scope, 0);
        let other = self.value(&compared, scope, 0);
        let then = self.value(shape, scope, depth - 1);
        let otherwise = self.value(shape, scope, depth - 1);
        let condition = Code::text("(if ").then(one).and(" == ").then(other);
        condition.and(" { ").then(then).and(" } else { ").then(otherwise).and(" })")
    }

    fn bound(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Code {
        let of = self.of_value(scope);
        let (name, value) = (self.name(), self.value(&of, scope, depth - 1));
        let mut inner = scope.clone();
        inner.push((name.clone(), of));
        let body = self.value(shape, &inner, depth - 1);
        Code::text(format!("{{ let {name} = ")).then(value).and("; ").then(body).and(" }")
    }

    fn unwrapped(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Code {
        let option = self.value(&Shape::Option(Box::new(shape.clone())), scope, depth - 1);
        let name = self.name();
        let otherwise = self.value(shape, scope, 0);
        let matched = Code::text("(match ").then(option).and(&format!(" {{ Some({name}) => {name}, None => "));
        matched.then(otherwise).and(" })")
    }

    fn folded(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Code {
        let of = scope[self.random.below(2)].1.clone();
        let items = self.value(&Shape::List(Box::new(of.clone())), scope, depth - 1);
        let first = self.value(shape, scope, 0);
        let (so_far, item) = (self.name(), self.name());
        let mut inner = scope.clone();
        inner.extend([(so_far.clone(), shape.clone()), (item.clone(), of)]);
        let body = self.value(shape, &inner, depth - 1);
        let folded = Code::text(format!("(fold {so_far} = ")).then(first).and(&format!(" for {item} in ")).then(items);
        folded.and(" { ").then(body).and(" })")
    }

    /// Returns a call of a function in scope that returns this type.
    fn called(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Option<Code> {
        let (name, from) = scope.iter().find_map(|(name, known)| match known {
            Shape::Function(parts) if parts.1 == *shape => Some((name.clone(), parts.0.clone())),
            _ => None,
        })?;
        Some(Code::text(format!("{name}(")).then(self.value(&from, scope, depth - 1)).and(")"))
    }

    /// Returns a call of a generic `fn` that returns this type.
    fn call(&mut self, shape: &Shape, scope: &Scope, depth: usize) -> Option<Code> {
        let fits = |template: &Template| matches!(template.result, Shape::Parameter(_)) || template.result == *shape;
        let fitting: Vec<usize> = (0..self.templates.len()).filter(|at| fits(&self.templates[*at])).collect();
        if fitting.is_empty() || self.calls == 0 {
            return None;
        }
        self.calls -= 1;
        let at = fitting[self.random.below(fitting.len())];
        let mut types = Types::new();
        for parameter in ['a', 'b'] {
            types.insert(parameter, self.of_value(scope));
        }
        if let Shape::Parameter(parameter) = self.templates[at].result {
            types.insert(parameter, shape.clone());
        } else if self.templates[at].result.with(&types) != *shape {
            return None;
        }
        let wanted: Vec<Shape> = self.templates[at].parameters.iter().map(|(_, shape)| shape.with(&types)).collect();
        let mut code = Code(vec![Piece::Call(at, types)]).and("(");
        for (position, shape) in wanted.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            let depth = if matches!(shape, Shape::Function(_)) { depth } else { depth - 1 };
            code = code.and(comma).then(match shape {
                Shape::Function(_) => self.made(shape, scope, depth),
                shape => self.value(shape, scope, depth),
            });
        }
        Some(code.and(")"))
    }
}

/// Writes a program: with generic `fn`s, or with a copy for each call.
struct Writer<'m> {
    templates: &'m [Template],
    copies: Option<Vec<String>>,
}

impl Writer<'_> {
    fn code(&mut self, code: &Code, types: &Types) -> String {
        let pieces = code.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Type(shape) => shape.with(types).to_string(),
            Piece::Call(at, of) => match &self.copies {
                None => format!("f{at}"),
                Some(_) => self.copy(*at, of.iter().map(|(name, shape)| (*name, shape.with(types))).collect()),
            },
        });
        pieces.collect()
    }

    /// Adds a copy for these types and returns its name.
    fn copy(&mut self, at: usize, types: Types) -> String {
        let text = self.function(at, "@", &types);
        let copies = self.copies.as_mut().unwrap();
        let name = format!("f{at}_{}", copies.len());
        copies.push(text.replacen('@', &name, 1));
        name
    }

    fn function(&mut self, at: usize, name: &str, types: &Types) -> String {
        let templates = self.templates;
        let template = &templates[at];
        let parameters = template.parameters.iter().map(|(name, shape)| format!("{name}: {}", shape.with(types)));
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let body = self.code(&template.body, types);
        format!("fn {name}({parameters}) -> {} {{ {body} }}\n", template.result.with(types))
    }
}

fn run(text: &str, seed: u64) -> String {
    let (program, library, said, wrong) = compiled(text);
    assert!(!wrong, "seed {seed}: {said}\n{text}");
    let program = program.unwrap();
    let mut evaluator = Evaluator::new(&program, &library).unwrap();
    let answer = evaluator.run(0, 0, Vec::new()).unwrap_or_else(|failure| panic!("seed {seed}: {failure}\n{text}"));
    String::from_utf8(fixture::body_of(&answer).unwrap().to_vec()).unwrap()
}

fn seeds() -> impl Iterator<Item = u64> {
    let said = std::env::var("WEIR_GENERICS").ok();
    let range = said.as_deref().and_then(|said| said.split_once(".."));
    range.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?)).unwrap_or(0..PROGRAMS)
}

#[test]
fn generic_fns_compute_what_their_copies_compute() {
    let mut calls = 0;
    for seed in seeds() {
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut maker = Maker { random, templates: Vec::new(), names: 0, calls: 0 };
        (0..3).for_each(|_| maker.template());
        let scope: Scope = vec![("n".into(), Shape::Int), ("t".into(), Shape::Text)];
        maker.calls = 6;
        let values: Vec<Code> =
            (0..4).map(|at| maker.value(if at % 2 == 0 { &Shape::Int } else { &Shape::Text }, &scope, 4)).collect();
        let write = |copies: Option<Vec<String>>| {
            let mut writer = Writer { templates: &maker.templates, copies };
            let shown: Vec<String> =
                values.iter().map(|value| format!("  let {{}} = {}\n", writer.code(value, &Types::new()))).collect();
            let lets: String =
                shown.iter().zip(0..).map(|(text, at)| text.replacen("{}", &format!("r{at}"), 1)).collect();
            let functions = match writer.copies.take() {
                Some(copies) => copies.concat(),
                None => {
                    (0..maker.templates.len()).map(|at| writer.function(at, &format!("f{at}"), &Types::new())).collect()
                }
            };
            format!(
                "use http\n{functions}fn main(n: Int, t: Text) -> Text {{\n{lets}  \"{{r0}} {{r1}} {{r2}} {{r3}}\"\n}}\n\
                 service web on http(port: 1) {{ get \"/\" {{ http.text(main(4, \"x\")) }} }}\n"
            )
        };
        let (generic, copied) = (write(None), write(Some(Vec::new())));
        calls += copied.matches("fn f").count();
        assert_eq!(run(&generic, seed), run(&copied, seed), "seed {seed}\n{generic}\n{copied}");
    }
    assert!(calls > 100, "only {calls} generic calls were made");
}
