//! Random programs whose inputs are replaced where a flow needs nothing of them: it answers and does the same.
//!
//! `WEIR_NEEDED_PROGRAMS` says how many programs of each kind are tried, and `WEIR_NEEDED_FROM` from which seed on.

use std::cell::Cell;

use weir_host::{Type, Value};
use weir_ir::expr::{Atom, Program, Var, Variable};
use weir_ir::generate::{Case, case, evaluate, find_in, rewritable_case, updating_case};
use weir_ir::needed_parts::{NeededParts, ValuePart, VariableNeeds};
use weir_ir::parse;

/// Returns a value that agrees with this one in what is needed of it.
fn replaced(value: &Value, needed: &NeededParts) -> Value {
    match (value, needed) {
        (_, NeededParts::All) => value.clone(),
        (Value::Int(number), NeededParts::Nothing | NeededParts::Parts(_)) => Value::Int(number ^ 1),
        (Value::Bool(bool), NeededParts::Nothing | NeededParts::Parts(_)) => Value::Bool(!bool),
        (Value::Text(_), NeededParts::Nothing) => Value::text("not needed"),
        (Value::List(_), NeededParts::Nothing) => Value::list(Vec::new()),
        (Value::List(elements), needed) => {
            Value::list(elements.iter().map(|element| replaced(&element, &needed.part(ValuePart::Element))).collect())
        }
        (Value::Record(parts), needed) => Value::Record(each(parts, needed, ValuePart::Field).into()),
        (Value::Variant(tag, Some(parts)), needed) => {
            Value::Variant(*tag, Some(each(parts, needed, |at| ValuePart::Payload(*tag, at)).into()))
        }
        _ => value.clone(),
    }
}

fn each(parts: &[Value], needed: &NeededParts, place: impl Fn(u32) -> ValuePart) -> Vec<Value> {
    parts.iter().zip(0..).map(|(part, at)| replaced(part, &needed.part(place(at)))).collect()
}

/// Returns the case with its constants as inputs: each is used once, so that it is seen what an operation needs of it.
fn with_constants_as_inputs(case: &Case) -> Case {
    let mut case = case.clone();
    let flow = &mut case.program.entries[0].flows[0];
    let mut last = flow.parameters.len() as u32;
    flow.body.each_binding(&mut |binding| {
        let inner = binding.op.binders().map(|variable| variable.var.0);
        last = inner.chain([binding.bound.var.0, last]).max().unwrap_or(last);
    });
    flow.body.each_operand_mut(&mut |operand| {
        if let Atom::Value(value) = operand {
            last += 1;
            flow.parameters.push(Variable { var: Var(last), name: "".into(), ty: Type::Unit });
            case.inputs.iter_mut().for_each(|row| row.push(value.clone()));
            *operand = Atom::Var(Var(last));
        }
    });
    case
}

/// Replaces what is not needed in the inputs of a case.
fn without_the_rest(case: &Case) -> Case {
    let flow = &case.program.entries[0].flows[0];
    let needs = VariableNeeds::of(&flow.body, &|_, _| NeededParts::All);
    let mut other = case.clone();
    for row in &mut other.inputs {
        for (value, parameter) in row.iter_mut().zip(&flow.parameters) {
            *value = replaced(value, &needs.of_variable(parameter.var));
        }
    }
    other
}

#[test]
fn a_flow_does_the_same_with_inputs_that_agree_in_what_it_needs() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let from = number("WEIR_NEEDED_FROM").unwrap_or(0);
    let changed = Cell::new(0_u64);
    let programs = number("WEIR_NEEDED_PROGRAMS").unwrap_or(300);
    for seed in from..from + programs {
        for kind in [case, rewritable_case, updating_case] {
            let found = find_in(kind(seed), |case| {
                let case = &with_constants_as_inputs(case);
                let other = without_the_rest(case);
                changed.set(changed.get() + u64::from(other.inputs != case.inputs));
                let wanted = evaluate(case, 0).map_err(|failure| failure.to_string())?;
                let found = evaluate(&other, 0).map_err(|failure| failure.to_string())?;
                if found == wanted {
                    return Ok(());
                }
                Err(format!("with {:?} instead\n{found:#?} and not\n{wanted:#?}", other.inputs))
            });
            if let Some(found) = found {
                panic!("seed {seed}: {found}");
            }
        }
    }
    assert!(changed.get() * 20 > programs, "inputs of {} of {programs} programs were replaced", changed.get());
}

/// Returns what a flow needs of its parameter.
fn needed(parameter: &str, result: &str, body: &str) -> NeededParts {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "type Pair record\n  field left: Int\n  field right: Text\n\
         entry test from a.elements ordered\n  arguments\n    yield (7,)\n  flow f (%0: {parameter}) -> {result}\n{body}"
    );
    let program: Program = parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    VariableNeeds::of(&program.entries[0].flows[0].body, &|_, _| NeededParts::All).of_variable(Var(0))
}

fn only(part: ValuePart, needed: NeededParts) -> NeededParts {
    NeededParts::Parts([(part, needed)].into())
}

#[test]
fn fields_are_needed_through_lists_options_updates_and_states() {
    let body = "%1: List(Text) = for %2: Option(Pair) in %0\n  %3: Text = switch %2\n    tag 1 (%4: Pair)\n      \
                %5: Pair = with_field.0(%4, 3)\n      %6: Text = field.1(%5)\n      yield %6\n    tag 0\n      yield \"\"\n  \
                yield %3\nyield %1";
    let row = only(ValuePart::Payload(1, 0), only(ValuePart::Field(1), NeededParts::All));
    assert_eq!(needed("List(Option(Pair))", "List(Text)", body), only(ValuePart::Element, row));
    let body = "%1: List(Pair) = fold %0 from [] as %2: List(Pair), %3: Pair\n  %4: List(Pair) = list(%3)\n  \
                %5: List(Pair) = add(%2, %4)\n  yield %5\n%6: List(Int) = for %7: Pair in %1\n  %8: Int = field.0(%7)\n  \
                yield %8\nyield %6";
    let row = only(ValuePart::Field(0), NeededParts::All);
    assert_eq!(needed("List(Pair)", "List(Int)", body), only(ValuePart::Element, row));
    let length = "%1: Int = length(%0)\nyield %1";
    assert_eq!(needed("List(Pair)", "Int", length), NeededParts::Parts([].into()));
    assert_eq!(needed("Pair", "Pair", "yield %0"), NeededParts::All);
    let absent = "%1: Bool = equal(%0, #0)\nyield %1";
    assert_eq!(needed("Option(Pair)", "Bool", absent), NeededParts::Parts([].into()));
    assert_eq!(needed("Pair", "Int", "yield 1"), NeededParts::Nothing);
    // Nothing reads the sum, which may fail.
    assert_eq!(needed("Int", "Int", "%1: Int = add(%0, 1)\nyield 1"), NeededParts::All);
    let update = "%1: Pair = record(1, \"a\")\n%2: Pair = with_field.0(%1, %0)\nyield %2";
    assert_eq!(needed("Int", "Pair", update), NeededParts::All);
}
