//! `#[weir::batched]`: a single call of Rust answers many calls of Weir individually.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod common;

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use common::{Frame, given};
use weir::{Batch, BatchAnswers, Environment, Failure, Function, Outcome, Type, Value};

/// The sizes of the batches that the function received.
#[derive(Default)]
struct Seen(Mutex<Vec<usize>>);

/// Doubles small numbers.
#[weir::batched(at_most = 3, reads, fresh = "1s")]
async fn doubled(numbers: &[u8], #[environment] seen: &Seen) -> Vec<Result<i64, Failure>> {
    seen.0.lock().unwrap().push(numbers.len());
    let double = |number: &u8| match number {
        13 => Err(Failure::function("unlucky")),
        number => Ok(i64::from(*number) * 2),
    };
    numbers.iter().map(double).collect()
}

#[weir::batched(at_most = 10, each = "query")]
async fn forgetful(queries: &[String]) -> Vec<String> {
    queries.iter().skip(1).cloned().collect()
}

weir::library!(pub(crate) numbers: doubled, forgetful, scaled);

/// Multiplies by a factor that all calls of a batch have in common; as a whole it fails if one number is 13.
#[weir::batched(at_most = 10, in_flight = 2, pure)]
async fn scaled(factor: i64, numbers: &[i64]) -> Result<Vec<i64>, Failure> {
    if numbers.contains(&13) {
        return Err(Failure::function("unlucky"));
    }
    Ok(numbers.iter().map(|number| number * factor).collect())
}

fn run(function: &Function, arguments: Vec<Value>, environment: &Environment) -> Vec<Outcome> {
    answers(function, arguments, &[], environment).answers
}

fn answers(function: &Function, arguments: Vec<Value>, common: &[Value], environment: &Environment) -> BatchAnswers {
    let mut pending = function.batch.as_ref().unwrap()(arguments, common, environment).unwrap();
    match pending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answers) => answers,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn watched() -> Environment {
    let mut environment = Environment::default();
    environment.insert(Seen::default());
    environment
}

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().map(|number| Value::Int(*number)).collect()
}

#[test]
fn callers_see_the_function_of_one_element() {
    let signature = &numbers().functions["doubled"].signature;
    assert_eq!(signature.parameters[0].name.as_str(), "number");
    assert_eq!(signature.parameters[0].ty, Type::Int);
    assert_eq!(signature.call_type().to_string(), "Result(Int, Failure)");
    assert_eq!(signature.batch, Some(Batch { at_most: 3, in_flight: Batch::IN_FLIGHT, gathered: 0 }));
    assert_eq!(signature.effects.fresh_ns, Some(1_000_000_000));
    assert_eq!(numbers().functions["forgetful"].signature.parameters[0].name.as_str(), "query");
}

#[test]
fn one_call_is_a_batch_of_one() {
    let mut frame = Frame { environment: watched(), ..Frame::of([Value::Int(4)]) };
    assert_eq!(given(frame.run(&numbers().functions["doubled"])), Value::Int(8));
    assert_eq!(*frame.environment.get::<Seen>().unwrap().0.lock().unwrap(), [1]);
}

#[test]
fn each_call_gets_its_own_answer_and_no_batch_is_above_its_limit() {
    let environment = watched();
    let answers = run(&numbers().functions["doubled"], ints(&[1, 13, 300, 2, 3]), &environment);
    let shown: Vec<String> = answers
        .into_iter()
        .map(|answer| match answer.returned() {
            Ok(Ok(value)) => value.to_string(),
            Ok(Err(error)) => format!("error {error}"),
            Err(fault) => format!("fault {fault}"),
        })
        .collect();
    let expected = ["2", r#"error failure("unlucky")"#, "fault argument `number`: must be 0 to 255, not 300", "4", "6"];
    assert_eq!(shown, expected);
    assert_eq!(*environment.get::<Seen>().unwrap().0.lock().unwrap(), [3, 1]);
}

#[test]
fn a_wrong_number_of_answers_fails_all_calls() {
    let arguments = vec![Value::text("a"), Value::text("b")];
    let answers = run(&numbers().functions["forgetful"], arguments, &Environment::default());
    let fault = Outcome::Fault(Box::new(Failure::function("the function returned 1 answers for 2 calls")));
    assert_eq!(answers, [fault.clone(), fault]);
}

#[test]
fn calls_of_a_batch_share_all_other_arguments_and_a_failure_of_the_whole() {
    let function = &numbers().functions["scaled"];
    assert_eq!(function.signature.batch, Some(Batch { at_most: 10, in_flight: 2, gathered: 1 }));
    assert_eq!(function.signature.call_type().to_string(), "Result(Int, Failure)");
    let scaled = |arguments: &[i64]| answers(function, ints(arguments), &[Value::Int(3)], &Environment::default());
    let expected = vec![Outcome::Value(Value::Int(6)), Outcome::Value(Value::Int(12))];
    assert_eq!(scaled(&[2, 4]), BatchAnswers { answers: expected, failed_as_a_whole: false });
    let failure = Outcome::Error(Value::Failure(Box::new(Failure::function("unlucky"))));
    assert_eq!(scaled(&[2, 13]), BatchAnswers { answers: vec![failure.clone(), failure], failed_as_a_whole: true });
    let mut frame = Frame::of([Value::Int(5), Value::Int(7)]);
    assert_eq!(given(frame.run(function)), Value::Int(35));
}
