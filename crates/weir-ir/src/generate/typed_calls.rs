//! Functions with typed entry points, of which one refuses some arguments, and loops whose rounds only call one of them.

use std::sync::Arc;

use weir_host::{
    Call, Effects, Failure, Function, FunctionCode, Module, Outcome, Parameter, Passing, Signature, Type, Value,
    WordCode, World,
};

use super::functions::{int, mix};
use super::program::Generator;
use crate::expr::{Atom, Block, Op};

/// The functions, with the numbers of their parameters and the types of their results.
const FUNCTIONS: [(&str, usize, Type); 3] =
    [("mixed", 2, Type::Int), ("is_odd", 1, Type::Bool), ("strict", 2, Type::Int)];

/// Adds the functions to a module.
pub(super) fn add_typed(module: Module) -> Module {
    let codes: [WordCode; FUNCTIONS.len()] = [
        |words| Ok(mixed(words).cast_unsigned()),
        |words| Ok(u64::from(words[0] % 2 == 1)),
        |words| strict(words).map(i64::cast_unsigned),
    ];
    FUNCTIONS.into_iter().zip(codes).fold(module, |module, (of, code)| module.function(typed(of, code)))
}

fn mixed(words: &[u64]) -> i64 {
    mix(words[0].cast_signed().wrapping_add(words[1].cast_signed().wrapping_mul(5)))
}

/// Refuses about one pair of arguments in 23: a fault, which ends the flow.
fn strict(words: &[u64]) -> Result<i64, Box<Failure>> {
    let sum = words[0].wrapping_add(words[1]);
    if sum.is_multiple_of(23) {
        return Err(Box::new(Failure::argument(format!("{sum} can be divided by 23"))));
    }
    Ok(mixed(words))
}

/// Returns a function of integers with a typed entry point.
fn typed((name, parameters, result): (&str, usize, Type), words: WordCode) -> Function {
    let parameter =
        |name: &&str| Parameter { name: (*name).into(), ty: Type::Int, passing: Passing::Value, default: None };
    let signature = Signature {
        module: "".into(),
        name: name.into(),
        doc: "".into(),
        parameters: ["x", "by"][..parameters].iter().map(parameter).collect(),
        result: result.clone(),
        failure: None,
        effects: Effects { world: World::Pure, total: name != "strict", ..Effects::default() },
        state: None,
        batch: None,
        internal: false,
    };
    let code = move |call: &mut Call<'_>| {
        let arguments: Vec<u64> = (0..parameters).map(|index| int(&call.value(index)).cast_unsigned()).collect();
        match words(&arguments) {
            Ok(word) if result == Type::Bool => Outcome::Value(Value::Bool(word == 1)),
            Ok(word) => Outcome::Value(Value::Int(word.cast_signed())),
            Err(failure) => Outcome::Fault(failure),
        }
    };
    let code = FunctionCode::Immediate(Arc::new(code));
    Function { signature, code, words: Some(words), batch: None, types: Vec::new(), location: None }
}

impl Generator {
    /// Returns a `for` over this list whose results are those of one typed call each, with the element most often among the
    /// arguments; and the type of its results.
    pub(super) fn rounds_of_calls(&mut self, list: Atom) -> (Type, Op) {
        let (name, parameters, result) = self.random.pick(&FUNCTIONS).clone();
        let element = self.variable(Type::Int);
        let arguments = (0..parameters).map(|_| match self.random.chance(70) {
            true => Atom::Var(element.var),
            false => self.any_operand(&Type::Int),
        });
        let arguments = arguments.collect();
        let call = self.call_of(&format!("data.{name}"), arguments);
        let mut lets = Vec::new();
        let (scope, answer) = (self.scope.len(), self.bind(result.clone(), call, &mut lets));
        self.scope.truncate(scope);
        let body = Block { lets, result: Atom::Var(answer) };
        (Type::list(result), Op::Map { list, element, body })
    }
}
