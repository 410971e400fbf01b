//! Values, failures and libraries as programs and tools see them.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::hash::{BuildHasher, RandomState};

use weir_host::{
    Elements, Entries, Environment, Failure, FailureKind, Library, Module, Shared, Text, Type, Unique, Value,
};

fn samples() -> Vec<Value> {
    vec![
        Value::Unit,
        Value::Bool(false),
        Value::Bool(true),
        Value::Int(-1),
        Value::Int(3),
        Value::Float(f64::NEG_INFINITY),
        Value::Float(-0.0),
        Value::Float(0.0),
        Value::Float(f64::NAN),
        Value::Duration(3),
        Value::Size(3),
        Value::text("a"),
        Value::text("b"),
        Value::list(vec![]),
        Value::list(vec![Value::Int(1)]),
        Value::Map([(Value::Int(1), Value::Unit)].into_iter().collect()),
        Value::none(),
        Value::some(Value::Int(1)),
    ]
}

#[test]
fn values_have_one_order_and_equal_ones_one_hash() {
    let state = RandomState::new();
    for (left, one) in samples().iter().enumerate() {
        for (right, other) in samples().iter().enumerate() {
            assert_eq!(one.cmp(other), left.cmp(&right), "{one} and {other}");
            if left == right {
                assert_eq!(state.hash_one(one), state.hash_one(other), "{one}");
            }
        }
    }
}

/// A record of scalars of all types.
fn record(number: i64) -> Value {
    let scalars = [
        Value::Int(number),
        Value::Float(-0.5 * number as f64),
        Value::Bool(number % 2 == 0),
        Value::Time(number),
        Value::Duration(-number),
        Value::Size(number.unsigned_abs()),
    ];
    Value::Record(scalars.into())
}

#[test]
fn a_program_cannot_tell_packed_records_from_others() {
    let list = |numbers: &[i64]| numbers.iter().map(|number| record(*number)).collect::<Elements>();
    let as_values = |numbers: &[i64]| {
        let mut list: Elements =
            [Value::text("no record")].into_iter().chain(numbers.iter().map(|n| record(*n))).collect();
        list.keep(1, numbers.len() + 1);
        list
    };
    let lists: [&[i64]; 6] = [&[], &[-3], &[-3, 5], &[-3, 6], &[4, 1, 2], &[4, 2]];
    let state = RandomState::new();
    for (one, other) in lists.iter().flat_map(|one| lists.iter().map(move |other| (one, other))) {
        assert!(one.is_empty() || list(one).is_packed() && !as_values(one).is_packed());
        let forms = [list(one), as_values(one)].map(Value::List);
        let others = [list(other), as_values(other)].map(Value::List);
        assert_eq!(forms[0], forms[1]);
        assert_eq!(forms[0].to_string(), forms[1].to_string());
        assert_eq!(state.hash_one(&forms[0]), state.hash_one(&forms[1]));
        assert!(forms[0].walk().eq(forms[1].walk()));
        for (form, other) in forms.iter().flat_map(|form| others.iter().map(move |other| (form, other))) {
            assert_eq!(form.cmp(other), forms[1].cmp(&others[1]), "{form} and {other}");
        }
        let (mut sorted, mut values) = (list(one), as_values(one));
        sorted.sort();
        values.sort();
        sorted.reverse();
        values.reverse();
        assert_eq!((sorted.range(0, one.len() / 2), sorted), (values.range(0, one.len() / 2), values));
    }
    assert_eq!(state.hash_one(Value::List((0..3_000).map(record).collect())), {
        let numbers: Vec<i64> = (0..3_000).collect();
        state.hash_one(Value::List(as_values(&numbers)))
    });
}

#[test]
fn positions_in_ascending_order_are_those_of_a_stable_sort() {
    let text = |number: i64| Value::text(&format!("a common beginning {}", number % 7));
    let record = |number: i64| Value::Record([Value::Int(number % 5), text(number)].into());
    let keys: [fn(i64) -> Value; 6] = [
        |number| Value::Int(number % 11 - 5),
        |number| Value::Float((number % 11 - 5) as f64 / 2.0),
        |number| {
            Value::text(
                ["", "a", "a\0", "ab", "ä", "the same eight bytes", "the same, and others"][number as usize % 7],
            )
        },
        |number| if number % 3 == 0 { Value::none() } else { Value::some(Value::Int(number % 5)) },
        |number| Value::Record([Value::text(if number % 2 == 0 { "x" } else { "" }), Value::Int(number % 3)].into()),
        // Not of one kind.
        |number| if number % 2 == 0 { Value::Int(number % 3) } else { Value::text("text") },
    ];
    let made = (0..200).map(|number| number * 7919 % 997);
    let all = keys.iter().map(|key| made.clone().map(key).collect()).chain([made.clone().map(record).collect()]);
    for values in all {
        let values: Vec<Value> = values;
        let mut positions: Vec<usize> = (0..values.len()).collect();
        positions.sort_by(|one, other| values[*one].cmp(&values[*other]));
        assert_eq!(Value::ascending_positions(&values), positions, "{:?}", &values[..3]);
    }
}

#[test]
fn a_value_is_three_words() {
    assert_eq!(size_of::<Value>(), 24);
}

#[test]
fn sizes_and_durations_use_the_largest_unit_that_divides_them() {
    let shown: Vec<String> = [0, 999, 1_000, 1_500_000, 2_000_000_000, 60_000_000_000, -3_600_000_000_000]
        .map(|nanos| Value::Duration(nanos).to_string())
        .to_vec();
    assert_eq!(shown, ["0ns", "999ns", "1us", "1500us", "2s", "1m", "-1h"]);
    let shown: Vec<String> = [0, 1000, 1024, 1536 << 10, 1 << 40].map(|bytes| Value::Size(bytes).to_string()).to_vec();
    assert_eq!(shown, ["0b", "1000b", "1kb", "1536kb", "1tb"]);
}

#[test]
fn a_text_alone_is_bare_and_within_others_quoted() {
    assert_eq!(Value::text("a").to_string(), "a");
    assert_eq!(Value::list(vec![Value::text("a")]).to_string(), "[\"a\"]");
    assert_eq!(Value::Map(Entries::default()).to_string(), "[:]");
}

#[test]
fn an_error_of_rust_brings_its_sources() {
    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("line 3")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let failure = Failure::from(Outer("x".parse::<i64>().unwrap_err()));
    assert_eq!(failure.to_string(), "line 3: invalid digit found in string");
    assert_eq!(failure.kind, FailureKind::Function);
}

#[test]
fn types_read_as_they_are_written() {
    let ty = Type::map(Type::Text, Type::list(Type::option(Type::named("image.Ppm"))));
    let function = Type::Function((vec![ty, Type::tuple(vec![Type::Int, Type::Size])], Type::Unit).into());
    assert_eq!(function.to_string(), "fn(Map(Text, List(Option(image.Ppm))), (Int, Size)) -> ()");
}

#[test]
fn two_modules_of_one_name_are_refused() {
    let mut library = Library::default();
    library.add(Module::new("image", "Pictures.")).unwrap();
    let error = library.add(Module::new("image", "")).unwrap_err();
    assert_eq!(error.to_string(), "two modules are named `image`");
    assert!(library.function("image.scale").is_none());
    assert!(library.function("image").is_none());
}

#[test]
fn the_environment_holds_one_value_of_each_type() {
    let mut environment = Environment::default();
    environment.insert(1_i64);
    environment.insert(Text::from("root"));
    environment.insert(2_i64);
    assert_eq!(environment.get::<i64>().as_deref(), Some(&2));
    assert_eq!(environment.get::<u8>(), None);
}

#[test]
fn many_read_a_shared_value_or_one_writes_it() {
    let shared = Shared::new(Value::Int(1));
    let (one, other) = (shared.read(), shared.read_owned());
    assert_eq!(*one, *other);
    assert!(!shared.is_free());
    drop((one, other));
    *shared.write_owned() = Value::Int(2);
    assert!(shared.is_free());
    assert_eq!(*shared.clone().read(), Value::Int(2), "a clone is the same value");
}

#[test]
fn the_clone_of_a_unique_value_is_empty() {
    assert!(Unique::clone(&weir_unique()).get().is_none());
    assert!(weir_unique().get().is_some());
}

fn weir_unique() -> Unique {
    match weir_host::macros::make_state(|| Ok(1_i64)) {
        Ok(Value::Unique(unique)) => unique,
        other => panic!("{other:?}"),
    }
}

#[test]
fn times_are_shown_as_rfc_3339_has_them() {
    let second = 1_000_000_000;
    let cases = [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_400 * second, "2000-02-29T00:00:00Z"),
        (1_709_251_199 * second + 500_000_000, "2024-02-29T23:59:59.5Z"),
        (4_107_542_400 * second, "2100-03-01T00:00:00Z"),
        (-2_208_988_800 * second, "1900-01-01T00:00:00Z"),
        (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
    ];
    for (nanos, shown) in cases {
        assert_eq!(Value::Time(nanos).to_string(), shown);
    }
}

/// A value whose number of parts doubles at each of 40 levels, in 41 places of memory.
fn doubling(bottom: Value, wrap: fn(Value, Value) -> Value) -> Value {
    (0..40).fold(bottom, |value, _| wrap(value.clone(), value))
}

#[test]
fn values_that_share_their_parts_are_compared_and_hashed_in_little_time() {
    let wraps: [fn(Value, Value) -> Value; 4] = [
        |one, other| Value::Record([one, other].into()),
        |one, other| Value::list(vec![one, other]),
        |one, other| Value::variant(1, [one, other]),
        |one, other| Value::Map([(Value::Int(0), one), (Value::Int(1), other)].into_iter().collect()),
    ];
    let state = RandomState::new();
    for wrap in wraps {
        let (one, other) = (doubling(Value::Int(1), wrap), doubling(Value::Int(1), wrap));
        let greater = doubling(Value::Int(2), wrap);
        assert!(one == other && one < greater && greater > other);
        assert_eq!(state.hash_one(&one), state.hash_one(&other));
    }
}

#[test]
fn a_value_that_shares_its_parts_equals_one_that_does_not() {
    let shared = (0..14).fold(Value::Int(1), |value, _| Value::list(vec![value.clone(), value]));
    fn apart(depth: u32) -> Value {
        if depth == 0 { Value::Int(1) } else { Value::list(vec![apart(depth - 1), apart(depth - 1)]) }
    }
    let state = RandomState::new();
    assert_eq!(shared, apart(14));
    assert_eq!(state.hash_one(&shared), state.hash_one(apart(14)));
}
