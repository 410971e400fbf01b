//! The functions of the recording library that change data: they replace one element of a list or map, or a number.

use std::sync::Arc;

use weir_host::{
    Call, Effects, Function, FunctionCode, Module, Outcome, Parameter, Passing, Settled, Signature, Type, Value, World,
};

use super::values::texts;

/// Returns the module of these functions.
pub(super) fn module() -> Module {
    let module = Module::new("data", "Changes of data.")
        .function(function("put", texts(), Type::Text, Type::Text, put))
        .function(function("replace", Type::list(Type::Text), Type::Int, Type::Text, replace))
        .function(function("fill", Type::list(Type::Int), Type::Int, Type::Int, replace))
        .function(raise("raise", immediate_raise(false)))
        .function(raise("long_raise", immediate_raise(true)))
        .function(raise("block_raise", blocking_raise()));
    MAPS.iter().fold(module, |module, (name, key, value)| {
        let map = Type::map(key(), value());
        module.function(function(name, map, key(), value(), put))
    })
}

/// A type, which cannot be made in a constant.
type MakeType = fn() -> Type;

/// The functions that put an entry into a map: the name, the type of the keys and that of the values.
pub(super) const MAPS: [(&str, MakeType, MakeType); 6] = [
    ("count", || Type::Text, || Type::Int),
    ("number", || Type::Int, || Type::Int),
    ("sum", || Type::Text, || Type::Float),
    ("group", || Type::Text, || Type::list(Type::Int)),
    ("gather", || Type::Int, || Type::list(Type::Text)),
    ("collect", || Type::Int, || Type::list(Type::Int)),
];

fn put(call: &mut Call<'_>) -> Value {
    let (map, key, value) = (call.value(0), call.value(1), call.value(2));
    let Value::Map(mut map) = map else { panic!("the verifier let {map:?} pass for a map") };
    map.insert(key, value);
    Value::Map(map)
}

fn replace(call: &mut Call<'_>) -> Value {
    let (list, at, value) = (call.value(0), call.value(1), call.value(2));
    let (Value::List(mut list), Value::Int(at)) = (list, at) else { panic!("the verifier has seen a list") };
    if let Some(at) = usize::try_from(at).ok().filter(|at| *at < list.len()) {
        list.set(at, value);
    }
    Value::List(list)
}

/// Returns a function that adds to a number in its place, and returns the sum.
fn raise(name: &str, code: FunctionCode) -> Function {
    let number = |name: &str, passing| Parameter { name: name.into(), ty: Type::Int, passing, default: None };
    let signature = Signature {
        module: "".into(),
        name: name.into(),
        doc: "".into(),
        parameters: vec![number("number", Passing::Change), number("by", Passing::Value)],
        result: Type::Int,
        failure: None,
        effects: Effects {
            world: World::Pure,
            blocking: matches!(code, FunctionCode::Blocking(_)),
            declares_units: name == "long_raise",
            ..Effects::default()
        },
        state: None,
        batch: None,
        internal: false,
    };
    Function { signature, code, words: None, batch: None, types: Vec::new(), location: None }
}

fn raised(call: &mut Call<'_>) -> Value {
    let (Value::Int(number), Value::Int(by)) = (call.value(0), call.value(1)) else {
        panic!("the verifier has seen two numbers")
    };
    Value::Int(number.wrapping_add(by) % 1_000)
}

/// Returns the code of a function that returns at once; if it `is_long`, some arguments take it longer than a short slice.
fn immediate_raise(is_long: bool) -> FunctionCode {
    FunctionCode::Immediate(Arc::new(move |call| {
        let is_even = matches!(call.borrow(1), Value::Int(by) if by % 2 == 0);
        let units = if is_long && is_even { 100 } else { 0 };
        if !call.declare_units(units) {
            return Outcome::ExceedsUnits;
        }
        let sum = raised(call);
        call.restore(0, sum.clone());
        Outcome::Value(sum)
    }))
}

fn blocking_raise() -> FunctionCode {
    FunctionCode::Blocking(Arc::new(|call| {
        let sum = raised(call);
        Ok(Box::new(move || Settled { outcome: Outcome::Value(sum.clone()), restored: vec![(0, sum)] }))
    }))
}

/// Returns a total function of a collection, a key and a value that returns the collection.
fn function(name: &str, collection: Type, key: Type, value: Type, code: fn(&mut Call<'_>) -> Value) -> Function {
    let parameter = |name: &str, ty| Parameter { name: name.into(), ty, passing: Passing::Value, default: None };
    let signature = Signature {
        module: "".into(),
        name: name.into(),
        doc: "".into(),
        parameters: vec![parameter("all", collection.clone()), parameter("key", key), parameter("value", value)],
        result: collection,
        failure: None,
        effects: Effects { world: World::Pure, total: true, replaces_element: true, ..Effects::default() },
        state: None,
        batch: None,
        internal: false,
    };
    let code = FunctionCode::Immediate(Arc::new(move |call| Outcome::Value(code(call))));
    Function { signature, code, words: None, batch: None, types: Vec::new(), location: None }
}
