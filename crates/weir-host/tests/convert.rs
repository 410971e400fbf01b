//! Conversions between Rust types and values: round trips, and values out of range.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indexmap::IndexMap;
use weir_host::{Borrowable, BorrowedArgumentMut, Bytes, Failure, Generic, HostType, Size, Text, Value};

#[track_caller]
fn carried<T: HostType + Clone + PartialEq + Debug>(rust: T, ty: &str, shown: &str) {
    assert_eq!(T::ty().to_string(), ty);
    let value = rust.clone().into_value().unwrap();
    assert_eq!(value.to_string(), shown);
    assert_eq!(T::from_value(value.clone()).unwrap(), rust);
    assert_eq!(T::from_value(rust.clone().into_value().unwrap()).unwrap(), rust, "held by nobody else");
    assert!(T::copied(&value).is_none_or(|copy| copy == rust));
    assert_eq!(*T::borrow_from(&value).unwrap(), rust);
}

#[track_caller]
fn refused<T: HostType + Debug>(value: Value, message: &str) {
    assert!(T::copied(&value).is_none());
    assert_eq!(T::from_value(value).unwrap_err().to_string(), message);
}

#[test]
fn scalars() {
    carried((), "()", "()");
    carried(true, "Bool", "true");
    carried(i64::MIN, "Int", "-9223372036854775808");
    carried(-128_i8, "Int", "-128");
    carried(u16::MAX, "Int", "65535");
    carried(7_usize, "Int", "7");
    carried(0.5_f64, "Float", "0.5");
    carried(0.5_f32, "Float", "0.5");
    carried(Size::mb(64), "Size", "64mb");
    carried(Duration::from_millis(1500), "Duration", "1500ms");
    carried(UNIX_EPOCH + Duration::from_nanos(9), "Time", "1970-01-01T00:00:00.000000009Z");
    carried(UNIX_EPOCH - Duration::from_nanos(9), "Time", "1969-12-31T23:59:59.999999991Z");
}

#[test]
fn texts_bytes_and_failures() {
    carried(Text::from("a\"b"), "Text", "a\"b");
    carried(String::from("a"), "Text", "a");
    carried(Bytes::from("abc"), "Bytes", "bytes(3)");
    carried(vec![1_u8, 2], "Bytes", "bytes(2)");
    carried(Failure::function("no"), "Failure", "failure(\"no\")");
}

#[test]
fn collections() {
    carried(vec![1_i64, 2], "List(Int)", "[1, 2]");
    carried(vec![vec![1_u8], vec![]], "List(Bytes)", "[bytes(1), bytes(0)]");
    carried(Some(String::from("a")), "Option(Text)", "#1(\"a\")");
    carried(None::<i64>, "Option(Int)", "#0");
    carried(Ok::<i64, String>(1), "Result(Int, Text)", "#0(1)");
    carried(Err::<i64, String>("a".into()), "Result(Int, Text)", "#1(\"a\")");
    carried((1_i64, true), "(Int, Bool)", "(1, true)");
    carried((1_i64, true, 0.5_f64, Size(3)), "(Int, Bool, Float, Size)", "(1, true, 0.5, 3b)");
    carried(IndexMap::from([(Text::from("b"), 1_i64), (Text::from("a"), 2)]), "Map(Text, Int)", "[\"b\": 1, \"a\": 2]");
    carried(BTreeMap::from([(2_i64, 1.5_f64)]), "Map(Int, Float)", "[2: 1.5]");
    carried(Box::new(3_i64), "Int", "3");
    carried(Value::Int(3), "a", "3");
    carried(Generic::<'K'>(Value::Unit), "K", "()");
}

#[test]
fn numbers_outside_their_range() {
    refused::<u8>(Value::Int(300), "must be 0 to 255, not 300");
    refused::<i8>(Value::Int(-129), "must be -128 to 127, not -129");
    refused::<u64>(Value::Int(-1), "must be 0 to 18446744073709551615, not -1");
    refused::<f32>(Value::Float(1e300), "must be -3.4028235e38 to 3.4028235e38, not 1e300");
    refused::<Duration>(Value::Duration(-1_000_000), "must not be negative, but is -1ms");
    assert!(f32::from_value(Value::Float(f64::INFINITY)).unwrap().is_infinite());
}

#[test]
fn values_of_another_type() {
    refused::<u8>(Value::text("a"), "must be Int, not a");
    refused::<i64>(Value::Float(1.0), "must be Int, not 1.0");
    refused::<Vec<i64>>(Value::Unit, "must be List(Int), not ()");
    refused::<Vec<i64>>(Value::list(vec![Value::Int(1), Value::Unit]), "element 1: must be Int, not ()");
    refused::<(i64, i64)>(Value::Record([Value::Int(1)].into()), "must be Int, but was moved or is in use");
    refused::<Option<i64>>(Value::Variant(7, None), "must be Option(Int), not #7");
    let map = [(Value::Int(1), Value::Int(300))].into_iter().collect();
    refused::<BTreeMap<i64, u8>>(Value::Map(map), "entry 1: must be 0 to 255, not 300");
}

#[test]
fn results_that_no_value_can_hold() {
    let message = |failure: Failure| failure.to_string();
    let above = u64::MAX.into_value().map_err(message).unwrap_err();
    assert_eq!(above, "18446744073709551615 is above 9223372036854775807, the largest Int");
    assert!(Duration::MAX.into_value().is_err());
    assert!((UNIX_EPOCH + Duration::from_secs(20_000_000_000)).into_value().is_err());
    assert!(vec![u64::MAX].into_value().is_err(), "within a list too");
}

#[test]
fn rust_representations_are_borrowed_in_place() {
    let text = Value::text("water");
    let Value::Text(inside) = &text else { panic!("{text}") };
    assert!(std::ptr::eq(<str as Borrowable>::borrow_from(&text).unwrap(), inside.as_str()));
    let bytes = Value::bytes(&b"abc"[..]);
    assert!(std::ptr::eq(&*<[u8]>::borrow_from(&bytes).unwrap(), &*<[u8]>::borrow_from(&bytes).unwrap()));
    let texts = Value::list(vec![text.clone()]);
    assert!(std::ptr::eq(&*<[Value]>::borrow_from(&texts).unwrap(), &*<[Value]>::borrow_from(&texts).unwrap()));
    let ints = Value::list(vec![Value::Int(1)]);
    assert!(std::ptr::eq(&*<[i64]>::borrow_from(&ints).unwrap(), &*<[i64]>::borrow_from(&ints).unwrap()));
    assert_eq!(*<[Value]>::borrow_from(&ints).unwrap(), [Value::Int(1)], "a temporary");
    assert_eq!(*<[i32]>::borrow_from(&ints).unwrap(), [1], "a temporary");
}

#[test]
fn a_change_that_cannot_be_written_back_leaves_the_value_as_it_was() {
    let mut value = Value::Int(1);
    let mut changing = BorrowedArgumentMut::<u64>::new(&mut value).unwrap();
    *changing = u64::MAX;
    changing.finish().unwrap_err();
    assert_eq!(value, Value::Int(1));
    let mut changing = BorrowedArgumentMut::<u64>::new(&mut value).unwrap();
    *changing = 5;
    changing.finish().unwrap();
    assert_eq!(value, Value::Int(5));
}

#[test]
fn a_time_is_that_of_the_clock() {
    let now = SystemTime::now();
    let Value::Time(nanos) = now.into_value().unwrap() else { panic!("not a time") };
    assert_eq!(u128::try_from(nanos).unwrap(), now.duration_since(UNIX_EPOCH).unwrap().as_nanos());
}
