//! Signatures that no call could follow.

extern crate weir_host as weir;

#[weir::function]
fn generic<T>(_value: T) {}

#[weir::function]
fn hidden(_value: impl Into<String>) {}

#[weir::function]
fn lent(_value: &'static str) {}

#[weir::function]
fn lends(_value: &str) -> &str {
    _value
}

#[weir::function]
fn nameless((_, _): (i64, i64)) {}

#[weir::function]
fn owned_environment(#[environment] _root: String) {}

#[weir::function]
fn changed_default(#[default(1)] _count: &mut i64) {}

#[derive(weir::FunctionOptions)]
struct Style {
    fill: String,
}

#[weir::function]
fn options_first(#[options] _style: Style, _text: &str) {}

#[weir::function]
fn borrowed_options(#[options] _style: &Style) {}

#[derive(weir::FunctionOptions)]
struct Unnamed(String);

#[derive(weir::FunctionOptions)]
struct Lent<'a> {
    fill: &'a str,
}

#[weir::function]
const LIMIT: i64 = 3;

#[derive(Default)]
struct Counter;

#[weir::function]
impl Counter {
    fn consume(self) {}

    #[weir::function(pure)]
    fn count(&mut self) {}
}

#[weir::function]
impl Clone for Counter {
    fn clone(&self) -> Self {
        Counter
    }
}

weir::library!(twice: nameless, nameless);

fn main() {}
