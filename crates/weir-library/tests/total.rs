//! Functions that are marked `total` return for all arguments, and those marked `replaces_element` replace an element
//! without reading it. Passes and regions trust both marks.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use weir::{
    Argument, Call, Environment, Function, FunctionCode, Library, Outcome, Passing, Text, Type, TypeShape, Value,
};

/// The number of calls of each function.
const CALLS: u64 = 400;

/// Makes values of types from a seed, the extreme ones often.
struct Values<'l> {
    library: &'l Library,
    state: u64,
    /// The types of the type parameters, the same within one call.
    parameters: BTreeMap<Text, Type>,
}

impl<'l> Values<'l> {
    fn new(library: &'l Library, seed: u64) -> Self {
        Values { library, state: seed.wrapping_mul(2).wrapping_add(1), parameters: BTreeMap::new() }
    }

    fn below(&mut self, limit: u64) -> u64 {
        // The generator of PCG, without its permutation; its high bits are random enough here.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }

    fn int(&mut self) -> i64 {
        match self.below(8) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => -1,
            3 => i64::from(i32::MAX),
            _ => i64::try_from(self.below(7)).unwrap() - 1,
        }
    }

    fn text(&mut self) -> String {
        const PARTS: [&str; 12] = ["", "a", "B", "ü", "→", " ", "\n", "\0", "\"", "7", "{}", "𝄞"];
        (0..self.below(5)).map(|_| PARTS[usize::try_from(self.below(12)).unwrap()]).collect()
    }

    /// Returns a value of the type, `None` if no function that is known here makes one.
    fn of(&mut self, ty: &Type, depth: u32) -> Option<Value> {
        Some(match ty {
            Type::Unit => Value::Unit,
            Type::Bool => Value::Bool(self.below(2) == 0),
            Type::Int => Value::Int(self.int()),
            Type::Float => {
                let choices = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];
                Value::Float(choices[usize::try_from(self.below(8)).unwrap()])
            }
            Type::Text => Value::text(&self.text()),
            Type::Bytes => Value::bytes(self.text().into_bytes()),
            Type::Time => Value::Time(self.int()),
            Type::Duration => Value::Duration(self.int()),
            Type::Size => Value::Size(self.int().unsigned_abs()),
            Type::Failure => Value::Failure(Box::new(weir::Failure::function(self.text()))),
            Type::List(element) => Value::list(self.several(element, depth)?),
            Type::Map(pair) => {
                let (keys, values) = (self.several(&pair.0, depth)?, self.several(&pair.1, depth)?);
                Value::Map(keys.into_iter().zip(values).collect())
            }
            Type::Option(_) if self.below(3) == 0 => Value::none(),
            Type::Option(some) => Value::some(self.of(some, depth)?),
            Type::Result(pair) if self.below(2) == 0 => Value::ok(self.of(&pair.0, depth)?),
            Type::Result(pair) => Value::err(self.of(&pair.1, depth)?),
            Type::Tuple(parts) => Value::Record(self.each(parts.iter(), depth)?.into()),
            Type::Parameter(name) => {
                let choices = [Type::Int, Type::Text, Type::Float, Type::list(Type::Text)];
                let chosen = choices[usize::try_from(self.below(4)).unwrap()].clone();
                let ty = self.parameters.entry(name.clone()).or_insert(chosen).clone();
                self.of(&ty, depth)?
            }
            Type::Named(name) => self.named(name, depth)?,
            Type::Never | Type::Function(_) => return None,
        })
    }

    fn several(&mut self, ty: &Type, depth: u32) -> Option<Vec<Value>> {
        (0..self.below(5)).map(|_| self.of(ty, depth)).collect()
    }

    fn each<'t>(&mut self, types: impl Iterator<Item = &'t Type>, depth: u32) -> Option<Vec<Value>> {
        types.map(|ty| self.of(ty, depth)).collect()
    }

    /// Returns a value of a named type: its fields, a variant, or what some immediate pure function returns.
    fn named(&mut self, name: &Text, depth: u32) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match &self.library.definition(name)?.shape {
            TypeShape::Record(fields) => {
                Some(Value::Record(self.each(fields.iter().map(|field| &field.ty), depth)?.into()))
            }
            TypeShape::Enum(variants) => {
                let tag = self.below(variants.len() as u64);
                let fields = &variants[usize::try_from(tag).unwrap()].fields;
                let payload = self.each(fields.iter().map(|field| &field.ty), depth)?;
                Some(Value::Variant(u32::try_from(tag).unwrap(), (!payload.is_empty()).then(|| payload.into())))
            }
            TypeShape::Opaque { .. } => {
                let makers: Vec<&Function> = self.functions().filter(|function| makes(function, name)).collect();
                let maker = makers.get(usize::try_from(self.below(makers.len().max(1) as u64)).unwrap())?;
                let arguments = self.arguments(maker, depth)?;
                match call(maker, arguments) {
                    Outcome::Value(value) | Outcome::Some(value) => Some(value),
                    _ => self.named(name, depth),
                }
            }
        }
    }

    fn functions(&self) -> impl Iterator<Item = &'l Function> + use<'l> {
        self.library.modules.values().flat_map(|module| module.functions.values())
    }

    fn arguments(&mut self, function: &Function, depth: u32) -> Option<Vec<Value>> {
        self.parameters.clear();
        self.each(function.signature.parameters.iter().map(|parameter| &parameter.ty), depth)
    }
}

fn makes(function: &Function, name: &Text) -> bool {
    let signature = &function.signature;
    let is_plain =
        signature.parameters.iter().all(|parameter| matches!(parameter.passing, Passing::Value | Passing::Borrow));
    signature.effects.world == weir::World::Pure
        && signature.result == Type::Named(name.clone())
        && is_plain
        && matches!(function.code, FunctionCode::Immediate(_))
}

/// Calls a function that returns at once, with arguments in slots of their own.
fn call(function: &Function, mut slots: Vec<Value>) -> Outcome {
    let FunctionCode::Immediate(code) = &function.code else { panic!("{} waits", function.signature.path()) };
    let parameters = function.signature.parameters.iter().zip(0..);
    let arguments: Vec<Argument> =
        parameters.map(|(parameter, index)| Argument::Slot { index, last: parameter.passing.takes() }).collect();
    let environment = Environment::default();
    code(&mut Call {
        slots: &mut slots,
        constants: &[],
        shared: &[],
        state: None,
        arguments: &arguments,
        out: None,
        environment: &environment,
        units: weir::UnitBudget::UNLIMITED,
        awaited: None,
    })
}

#[test]
fn a_total_function_returns_for_all_arguments() {
    let library = weir_library::library();
    let mut untested = Vec::new();
    let mut tested = 0;
    let all = library.modules.values().flat_map(|module| module.functions.values());
    for function in all.filter(|function| function.signature.effects.total) {
        let path = function.signature.path();
        let is_typed = function.signature.parameters.iter().any(|parameter| parameter.passing == Passing::Typed);
        let mut calls = 0;
        for seed in 0..CALLS {
            let mut values = Values::new(&library, seed);
            let Some(arguments) = values.arguments(function, 4).filter(|_| !is_typed) else { continue };
            let shown = format!("{path} of {arguments:?}");
            match catch_unwind(AssertUnwindSafe(|| call(function, arguments))) {
                Ok(Outcome::Fault(failure)) => panic!("{shown} faults: {failure}"),
                Ok(_) => calls += 1,
                Err(_) => panic!("{shown} panics"),
            }
        }
        if calls < CALLS / 4 {
            untested.push(path);
        } else {
            tested += 1;
        }
    }
    assert!(untested.is_empty(), "nothing makes arguments of {untested:?}");
    assert!(tested > 30, "only {tested} functions are total");
}

#[test]
fn a_function_that_replaces_an_element_does_not_read_it() {
    let library = weir_library::library();
    let all = library.modules.values().flat_map(|module| module.functions.values());
    let mut replaced = 0;
    for function in all.filter(|function| function.signature.effects.replaces_element) {
        for seed in 0..4 * CALLS {
            let mut values = Values::new(&library, seed);
            values.parameters.extend(["a", "v"].map(|name| (name.into(), Type::Text)));
            let parameters: Vec<Type> =
                function.signature.parameters.iter().map(|parameter| parameter.ty.clone()).collect();
            let arguments = values.each(parameters.iter(), 4).unwrap();
            let wanted = call(function, arguments.clone()).returned();
            if let Some(whole) = with_element(&arguments) {
                assert_eq!(wanted, Ok(Ok(whole)), "{} of {arguments:?}", function.signature.path());
            }
            let Some(with_hole) = without_element(&arguments[0], &arguments[1]) else { continue };
            let found = call(function, vec![with_hole, arguments[1].clone(), arguments[2].clone()]).returned();
            assert_eq!(format!("{found:?}"), format!("{wanted:?}"), "{} of {arguments:?}", function.signature.path());
            replaced += 1;
        }
    }
    assert!(replaced > 100, "only {replaced} elements were replaced");
}

/// Returns the list or map with the element replaced, as regions do without a call; `None` for a list that has no such
/// element.
fn with_element(arguments: &[Value]) -> Option<Value> {
    match (arguments[0].clone(), &arguments[1], arguments[2].clone()) {
        (Value::List(mut list), Value::Int(at), element) => {
            let at = usize::try_from(*at).ok().filter(|at| *at < list.len())?;
            list.set(at, element);
            Some(Value::List(list))
        }
        (Value::Map(mut map), key, value) => {
            map.insert(key.clone(), value);
            Some(Value::Map(map))
        }
        _ => None,
    }
}

/// Returns the list or map with an empty place at the position or key; `None` if it has no such element.
fn without_element(whole: &Value, key: &Value) -> Option<Value> {
    match (whole.clone(), key) {
        (Value::List(mut list), Value::Int(at)) => {
            let at = usize::try_from(*at).ok().filter(|at| *at < list.len())?;
            list.set(at, Value::Absent);
            Some(Value::List(list))
        }
        (Value::Map(mut map), key) => {
            map.get(key)?;
            map.insert(key.clone(), Value::Absent);
            Some(Value::Map(map))
        }
        _ => None,
    }
}
