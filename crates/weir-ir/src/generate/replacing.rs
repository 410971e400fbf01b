//! The functions of the recording library that replace one element of a list or map.

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
    Module::new("data", "Replacement of elements.").function(put).function(replace)
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
    };
    let code = FunctionCode::Immediate(Arc::new(move |call| Outcome::Value(code(call))));
    Function { signature, code, batch: None, types: Vec::new(), location: None }
}
