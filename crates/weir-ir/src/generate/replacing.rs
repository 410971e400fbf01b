//! The functions of the recording library that change data: they replace one element of a list or map, or a number.

use std::sync::Arc;

use weir_host::{
    Call, Effects, Function, FunctionCode, Module, Outcome, Parameter, Passing, Signature, Type, Value, World,
};

use super::values::texts;

/// Returns the module of these functions.
pub(super) fn module() -> Module {
    let put = function("put", texts(), Type::Text, |call| {
        let (map, key, value) = (call.value(0), call.value(1), call.value(2));
        let Value::Map(mut map) = map else { panic!("the verifier let {map:?} pass for a map") };
        map.insert(key, value);
        Value::Map(map)
    });
    let replace = function("replace", Type::list(Type::Text), Type::Int, |call| {
        let (list, at, value) = (call.value(0), call.value(1), call.value(2));
        let (Value::List(mut list), Value::Int(at)) = (list, at) else { panic!("the verifier has seen a list") };
        if let Some(at) = usize::try_from(at).ok().filter(|at| *at < list.len()) {
            list.set(at, value);
        }
        Value::List(list)
    });
    Module::new("data", "Changes of data.").function(put).function(replace).function(raise())
}

/// Returns a function that adds to a number in its place, and returns the sum.
fn raise() -> Function {
    let number = |name: &str, passing| Parameter { name: name.into(), ty: Type::Int, passing, default: None };
    let signature = Signature {
        module: "".into(),
        name: "raise".into(),
        doc: "".into(),
        parameters: vec![number("number", Passing::Change), number("by", Passing::Value)],
        result: Type::Int,
        failure: None,
        effects: Effects { world: World::Pure, ..Effects::default() },
        state: None,
        batch: None,
        internal: false,
    };
    let code = FunctionCode::Immediate(Arc::new(|call| {
        let (Value::Int(number), Value::Int(by)) = (call.value(0), call.value(1)) else {
            panic!("the verifier has seen two numbers")
        };
        let sum = Value::Int(number.wrapping_add(by) % 1_000);
        call.restore(0, sum.clone());
        Outcome::Value(sum)
    }));
    Function { signature, code, words: None, batch: None, types: Vec::new(), location: None }
}

/// Returns a total function of a collection, a key and a text that returns the collection.
fn function(name: &str, collection: Type, key: Type, code: fn(&mut Call<'_>) -> Value) -> Function {
    let parameter = |name: &str, ty| Parameter { name: name.into(), ty, passing: Passing::Value, default: None };
    let signature = Signature {
        module: "".into(),
        name: name.into(),
        doc: "".into(),
        parameters: vec![parameter("all", collection.clone()), parameter("key", key), parameter("value", Type::Text)],
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
