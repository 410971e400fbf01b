//! `#[weir::function]`: how calls are passed to the function, and how their results are returned.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use common::{Frame, fault, given, ready, slot, value};
use weir::{Argument, Bytes, Failure, Outcome, Shared, Text, Value};

#[weir::function(pure)]
fn add(left: i64, right: u8) -> i64 {
    left + i64::from(right)
}

/// Parameters may have the names that the adaptor itself uses.
#[weir::function]
fn call(call: &str, returned: Text, state: &[u8], outcome: &[i64]) -> String {
    format!("{call}{returned}{state:?}{outcome:?}")
}

#[weir::function]
fn same_text(text: &str, place: u64) -> bool {
    std::ptr::from_ref(text).addr() as u64 == place
}

#[weir::function]
fn parse(text: &str) -> Result<i64, std::num::ParseIntError> {
    text.parse()
}

#[derive(weir::Type, Debug)]
enum Refusal {
    TooLong { most: i64 },
}

#[weir::function]
fn shorten(text: String) -> Result<String, Refusal> {
    if text.len() > 3 { Err(Refusal::TooLong { most: 3 }) } else { Ok(text) }
}

#[weir::function]
fn described(text: &str) -> Result<(), Box<dyn std::error::Error>> {
    Err(text.into())
}

#[weir::function]
fn read_file(text: &str) -> std::io::Result<String> {
    Err(std::io::Error::other(text.to_owned()))
}

#[weir::function]
fn count_up(count: &mut i64, by: &i64) -> i64 {
    *count += by;
    *count
}

#[weir::function]
fn push(list: &mut Vec<i64>, element: i64) -> Result<(), Failure> {
    list.push(element);
    if element < 0 { Err(Failure::function("negative")) } else { Ok(()) }
}

#[derive(weir::Type)]
#[weir(opaque, unique)]
struct Connection(Vec<String>);

#[weir::function]
fn send(to: &mut Connection, text: &str) {
    assert!(text != "panic", "as asked");
    to.0.push(text.to_owned());
}

#[weir::function]
fn exchange(one: &mut Connection, by: &i64, other: &mut Connection) {
    assert!(*by > 0, "as asked");
    std::mem::swap(&mut one.0, &mut other.0);
}

#[weir::function]
async fn send_later(to: &mut Connection, text: &str) -> Result<i64, Failure> {
    assert!(text != "panic", "as asked");
    if text == "forever" {
        std::future::pending::<()>().await;
    }
    to.0.push(text.to_owned());
    Ok(1)
}

#[weir::function]
async fn sent_later(to: &Connection) -> usize {
    to.0.len()
}

#[weir::function(blocking)]
fn send_held(to: &mut Connection, text: String, again: u8) -> usize {
    assert!(text != "panic", "as asked");
    to.0.extend(std::iter::repeat_n(text, again.into()));
    to.0.len()
}

#[weir::function]
fn rooted(#[environment] root: &String, name: &str) -> String {
    format!("{root}/{name}")
}

#[weir::function(at_once = known_folder(number, root))]
async fn folder(number: i64, #[environment] root: &String) -> Result<String, Failure> {
    std::future::pending::<()>().await;
    Ok(format!("{root}/{number}"))
}

fn known_folder(number: &Value, environment: &weir::Environment) -> Option<Result<String, Failure>> {
    match number {
        Value::Int(0) => environment.get::<String>().map(|root| Ok(root.to_string())),
        Value::Int(1) => Some(Err(Failure::function("there is none"))),
        _ => None,
    }
}

#[derive(weir::FunctionOptions)]
struct Style {
    #[default("-")]
    fill: Text,
    /// Width in characters.
    #[default(4)]
    width: u8,
    r#type: bool,
}

#[weir::function]
fn padded(text: &str, #[environment] root: &String, #[options] style: Style) -> String {
    let fill = style.fill.as_str().repeat(usize::from(style.width).saturating_sub(text.len()));
    format!("{root}{fill}{text}{}", style.r#type)
}

#[weir::function(reads)]
async fn padded_later(text: Text, #[options] style: Style) -> String {
    format!("{text}{}{}{}", style.fill, style.width, style.r#type)
}

#[derive(Default)]
struct Counter(i64);

#[weir::function]
impl Counter {
    fn count(&mut self, by: &i64) -> i64 {
        self.0 += by;
        self.0
    }

    async fn count_later(&mut self, by: i64) -> i64 {
        self.0 += by;
        self.0
    }

    fn now(&self) -> i64 {
        self.0
    }

    fn zero() -> i64 {
        0
    }
}

struct Limit(i64);

impl Limit {
    fn of_three() -> Self {
        Limit(3)
    }

    #[weir::function(new = Self::of_three)]
    fn left(&mut self) -> Option<i64> {
        self.0 -= 1;
        (self.0 >= 0).then_some(self.0)
    }
}

struct Ruler {
    unit: Text,
    length: u8,
}

#[weir::function]
impl Ruler {
    /// Not a host function itself.
    #[new]
    fn of(unit: &str, #[default(3)] length: u8) -> Result<Self, Failure> {
        match length {
            0 => Err(Failure::function("a ruler has a length")),
            255 => panic!("too long to hold"),
            _ => Ok(Ruler { unit: unit.into(), length }),
        }
    }

    fn measure(&self, times: i64) -> String {
        format!("{} {}", i64::from(self.length) * times, self.unit)
    }
}

fn ruler(unit: Value, length: Value) -> Result<Value, Failure> {
    let state = Ruler::__weir_function_measure().signature.state.unwrap();
    (state.make)(&[unit, length]).map_err(|failure| *failure)
}

#[test]
fn a_constructor_creates_the_state_from_constant_arguments() {
    let function = Ruler::__weir_function_measure();
    let parameters = function.signature.parameters.iter();
    let parameters = parameters.map(|each| format!("{:?} {}: {} {:?}", each.passing, each.name, each.ty, each.default));
    assert_eq!(
        parameters.collect::<Vec<_>>(),
        ["Value times: Int None", "Start unit: Text None", "Start length: Int Some(3)"]
    );
    let mut frame = Frame::of([value(5_i64)]);
    frame.state = Some(Shared::new(ruler(Value::text("cm"), Value::Int(20)).unwrap()));
    assert_eq!(given(frame.run(&function)), Value::text("100 cm"));
}

#[test]
fn fields_of_options_are_the_last_parameters() {
    let function = __weir_function_padded();
    let parameters = function.signature.parameters.iter();
    let parameters = parameters.map(|each| format!("{:?} {}: {} {:?}", each.passing, each.name, each.ty, each.default));
    assert_eq!(
        parameters.collect::<Vec<_>>(),
        ["Borrow text: Text None", "Value fill: Text Some(-)", "Value width: Int Some(4)", "Value type: Bool None"]
    );
    let arguments = || [value(Text::from("ab")), value(Text::from(".")), value(5_u8), value(true)];
    let mut frame = Frame::of(arguments());
    frame.environment.insert(String::from(">"));
    assert_eq!(given(frame.run(&function)), Value::text(">...abtrue"));
    assert_eq!(given(Frame::of(arguments()).run(&__weir_function_padded_later())), Value::text("ab.5true"));
    let mut frame = Frame::of([value(Text::from("ab")), value(Text::from(".")), value(300_i64), value(true)]);
    frame.environment.insert(String::new());
    assert_eq!(fault(frame.run(&function)), "argument `width`: must be 0 to 255, not 300");
}

#[test]
fn a_constructor_may_fail_panic_or_get_an_invalid_argument() {
    let said = |length| ruler(Value::text("cm"), Value::Int(length)).unwrap_err().message.to_string();
    assert_eq!(said(0), "a ruler has a length");
    assert_eq!(said(255), "the function panicked: too long to hold");
    assert_eq!(said(256), "argument `length`: must be 0 to 255, not 256");
}

#[test]
fn the_function_stays_callable_from_rust() {
    assert_eq!(add(1, 2), 3);
    assert_eq!(Counter(5).now(), 5);
}

#[test]
fn scalars_are_read_in_their_slots() {
    let mut frame = Frame::of([value(1_i64), value(2_i64)]);
    assert_eq!(given(frame.run(&__weir_function_add())), Value::Int(3));
}

#[test]
fn an_argument_out_of_range_is_a_fault_that_names_the_parameter() {
    let mut frame = Frame::of([value(1_i64), value(300_i64)]);
    assert_eq!(fault(frame.run(&__weir_function_add())), "argument `right`: must be 0 to 255, not 300");
}

#[test]
fn a_value_that_was_moved_is_a_fault() {
    let mut frame = Frame::of([value(1_i64), Value::Absent]);
    let message = fault(frame.run(&__weir_function_add()));
    assert_eq!(message, "argument `right`: must be Int, but was moved or is in use");
}

#[test]
fn parameters_may_have_any_name() {
    let slots = [value(Text::from("a")), value(Text::from("b")), value(Bytes::from("c")), value(vec![4_i64])];
    assert_eq!(given(Frame::of(slots).run(&__weir_function_call())), Value::text("ab[99][4]"));
}

#[test]
fn a_text_is_borrowed_in_place() {
    // Short texts are stored inline.
    let text = Text::from("water under the bridge");
    let place = i64::try_from(text.as_str().as_ptr().addr()).unwrap();
    let mut frame = Frame::of([value(text), value(place)]);
    assert_eq!(given(frame.run(&__weir_function_same_text())), Value::Bool(true));
    assert_eq!(frame.slots[0], Value::text("water under the bridge"), "and stays there");
}

#[test]
fn an_answer_is_written_directly_to_the_named_slot() {
    let mut frame = Frame::of([value(40_i64), value(2_i64), Value::Absent]);
    assert_eq!(frame.run_into(2, &__weir_function_add(), &[slot(0), slot(1)]), Outcome::Filled);
    assert_eq!(frame.slots[2], Value::Int(42));
    let outcome = frame.run_into(2, &__weir_function_parse(), &[slot(0)]);
    assert!(matches!(outcome, Outcome::Fault(_)), "a fault is no answer: {outcome:?}");
    assert_eq!(frame.slots[2], Value::Int(42), "and fills nothing");
}

#[test]
fn an_error_of_rust_is_a_failure() {
    let mut frame = Frame::of([value(Text::from("x"))]);
    let outcome = frame.run(&__weir_function_parse());
    assert_eq!(outcome, Outcome::Error(value(Failure::function("invalid digit found in string"))));
    assert_eq!(frame.run(&__weir_function_read_file()), Outcome::Error(value(Failure::function("x"))));
    assert_eq!(frame.run(&__weir_function_described()), Outcome::Error(value(Failure::function("x"))));
}

#[test]
fn an_error_that_is_a_type_of_weir_stays_what_it_is() {
    let mut frame = Frame::of([value(Text::from("long"))]);
    let outcome = frame.run(&__weir_function_shorten());
    assert_eq!(outcome, Outcome::Error(Value::variant(0, [Value::Int(3)])));
}

#[test]
fn a_change_is_put_back_into_its_slot() {
    let mut frame = Frame::of([value(1_i64), value(2_i64)]);
    assert_eq!(given(frame.run(&__weir_function_count_up())), Value::Int(3));
    assert_eq!(frame.slots[0], Value::Int(3));
}

#[test]
fn a_change_is_put_back_also_when_the_function_fails() {
    let mut frame = Frame::of([value(vec![1_i64]), value(-2_i64)]);
    assert!(matches!(frame.run(&__weir_function_push()), Outcome::Error(_)));
    assert_eq!(frame.slots[0], value(vec![1_i64, -2]));
}

#[test]
fn a_shared_value_is_changed_in_place() {
    let mut frame = Frame::sharing(value(vec![1_i64]));
    frame.slots.push(value(2_i64));
    given(frame.run_with(&__weir_function_push(), &[Argument::Shared(0), slot(0)]));
    assert_eq!(*frame.shared[0].read(), value(vec![1_i64, 2]));
}

#[test]
fn two_readers_of_one_shared_value_in_one_call_are_fine_and_a_writer_beside_is_not() {
    let mut frame = Frame::sharing(value(2_i64));
    let message = fault(frame.run_with(&__weir_function_count_up(), &[Argument::Shared(0), Argument::Shared(0)]));
    assert_eq!(message, "`count` is changed by the call and must not be passed as `by` as well");
    frame.shared.push(Shared::new(value(3_i64)));
    let outcome = frame.run_with(&__weir_function_count_up(), &[Argument::Shared(0), Argument::Shared(1)]);
    assert_eq!(given(outcome), Value::Int(5));
}

#[test]
fn a_panic_loses_neither_what_was_taken_out_nor_a_lock() {
    let mut frame = Frame::of([value(Connection(vec![])), value(Text::from("panic"))]);
    frame.shared.push(Shared::new(value(Connection(vec![]))));
    let function = __weir_function_send();
    catch_unwind(AssertUnwindSafe(|| frame.run(&function))).unwrap_err();
    assert_eq!(frame.slots[0].to_string(), "<Connection>");
    catch_unwind(AssertUnwindSafe(|| frame.run_with(&function, &[Argument::Shared(0), slot(1)]))).unwrap_err();
    assert_eq!(frame.shared[0].write().to_string(), "<Connection>");
    frame.slots[1] = value(Text::from("fine"));
    given(frame.run(&function));
}

#[test]
fn several_arguments_can_be_changed_and_come_back_from_a_panic() {
    let function = __weir_function_exchange();
    let full = || value(Connection(vec!["a".into()]));
    let mut frame = Frame::of([full(), value(1_i64), value(Connection(vec![]))]);
    given(frame.run(&function));
    assert_eq!(given(frame.run_with(&__weir_function_sent_later(), &[slot(2)])), Value::Int(1));
    frame.slots[1] = value(-1_i64);
    catch_unwind(AssertUnwindSafe(|| frame.run(&function))).unwrap_err();
    assert_eq!(given(frame.run_with(&__weir_function_sent_later(), &[slot(2)])), Value::Int(1));
    assert_eq!(given(frame.run_with(&__weir_function_sent_later(), &[slot(0)])), Value::Int(0));
    frame.shared.push(Shared::new(full()));
    frame.slots[1] = value(1_i64);
    given(frame.run_with(&function, &[slot(0), slot(1), Argument::Shared(0)]));
    assert_eq!(given(frame.run_with(&__weir_function_sent_later(), &[slot(0)])), Value::Int(1));
}

#[test]
fn slots_on_both_sides_of_a_mutable_one_can_be_read() {
    let mut frame = Frame::of([value(1_i64), value(10_i64), value(100_i64)]);
    let function = __weir_function_count_up();
    assert_eq!(given(frame.run_with(&function, &[slot(1), slot(0)])), Value::Int(11));
    assert_eq!(given(frame.run_with(&function, &[slot(1), slot(2)])), Value::Int(111));
}

#[test]
fn a_call_that_waits_returns_what_it_borrowed() {
    let mut frame = Frame::of([value(Connection(vec![])), value(Text::from("a"))]);
    assert_eq!(given(frame.run(&__weir_function_send_later())), Value::Int(1));
    assert_eq!(given(frame.run_with(&__weir_function_sent_later(), &[slot(0)])), Value::Int(1));
    frame.slots[1] = value(Text::from("b"));
    frame.slots.push(value(2_i64));
    assert_eq!(given(frame.run(&__weir_function_send_held())), Value::Int(3));
    assert_eq!(frame.slots[0].to_string(), "<Connection>");
}

#[test]
fn a_call_that_waits_returns_what_it_borrowed_also_when_it_panics() {
    let mut frame = Frame::of([value(Connection(vec![])), value(Text::from("panic"))]);
    assert_eq!(fault(frame.run(&__weir_function_send_later())), "the function panicked: as asked");
    frame.slots[1] = value(Text::from("panic"));
    frame.slots.push(value(2_i64));
    assert_eq!(fault(frame.run(&__weir_function_send_held())), "the function panicked: as asked");
    assert_eq!(frame.slots[0].to_string(), "<Connection>");
}

#[test]
fn a_call_that_waits_keeps_its_lock_until_it_settles_or_is_given_up() {
    let mut frame = Frame::sharing(value(Connection(vec![])));
    frame.slots.push(value(Text::from("forever")));
    let pending = frame.begin(&__weir_function_send_later(), &[Argument::Shared(0), slot(0)]);
    assert!(!frame.shared[0].is_free());
    assert!(ready(pending).is_none(), "it waits, and being dropped gives it up");
    assert!(frame.shared[0].is_free());
}

#[test]
fn a_call_that_need_not_wait_has_its_outcome_at_once() {
    let function = __weir_function_folder();
    let mut frame = Frame::of([value(0_i64)]);
    frame.environment.insert(String::from("pictures"));
    assert_eq!(given(frame.run(&function)), Value::text("pictures"));
    frame.slots[0] = value(1_i64);
    let Outcome::Error(error) = frame.run(&function) else { panic!("it fails") };
    assert_eq!(error, Value::Failure(Box::new(Failure::function("there is none"))));
    frame.slots[0] = value(2_i64);
    assert!(ready(frame.begin(&function, &[slot(0)])).is_none(), "it waits");
}

#[test]
fn the_environment_provides_its_parameters() {
    let mut frame = Frame::of([value(Text::from("a"))]);
    let function = __weir_function_rooted();
    assert_eq!(fault(frame.run(&function)), "the environment of this program has no `alloc::string::String`");
    frame.environment.insert(String::from("pictures"));
    assert_eq!(given(frame.run(&function)), Value::text("pictures/a"));
}

#[test]
fn each_call_site_has_its_own_state() {
    let mut frame = Frame::of([value(2_i64)]);
    let function = Counter::__weir_function_count();
    assert_eq!(given(frame.run(&function)), Value::Int(2));
    assert_eq!(given(frame.run(&function)), Value::Int(4));
    assert_eq!(given(frame.run(&Counter::__weir_function_count_later())), Value::Int(6));
    assert_eq!(given(frame.run_with(&Counter::__weir_function_now(), &[])), Value::Int(6));
    assert_eq!(given(Frame::of([value(2_i64)]).run(&function)), Value::Int(2), "another site begins anew");
}

#[test]
fn a_state_may_be_made_by_a_function_of_its_own() {
    let mut frame = Frame::default();
    assert_eq!(given(frame.run(&Limit::__weir_function_left())), Value::some(Value::Int(2)));
}

#[test]
fn the_state_of_another_function_is_a_fault() {
    let mut frame = Frame { state: Some(Shared::new(Value::Int(1))), ..Frame::default() };
    let message = fault(frame.run(&Counter::__weir_function_now()));
    assert!(message.starts_with("the state of the call site is not a"), "{message}");
}

#[test]
fn a_function_is_shared_by_threads() {
    let function = Arc::new(__weir_function_add());
    let threads: Vec<_> = (0..2)
        .map(|left| {
            let function = function.clone();
            std::thread::spawn(move || given(Frame::of([value(left), value(1_u8)]).run(&function)))
        })
        .collect();
    let sums: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(sums, [Value::Int(1), Value::Int(2)]);
}
