//! Types and functions that were not carried over.

extern crate weir_host as weir;

struct Unknown;

#[weir::function]
fn by_value(_value: Unknown) {}

fn unmarked() {}

weir::library!(functions: by_value, unmarked);

#[weir::function]
fn not_options(#[options] _style: String) {}

fn main() {}
