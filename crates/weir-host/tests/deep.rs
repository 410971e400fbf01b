//! Values that nest far deeper than a thread's stack do not overflow it.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::any::Any;
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use weir_host::{Elements, Entries, HostValue, Value};

/// Deep enough that even eleven bytes of stack for each level would exceed [`STACK_BYTES`].
const DEPTH: usize = 200_000;

/// The default stack size of a thread.
const STACK_BYTES: usize = 2 << 20;

fn on_a_stack_of_its_own<R: Send>(test: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, test).unwrap().join().unwrap()
    })
}

/// Every way in which a value can contain a value of its own type.
const WRAPS: [fn(Value) -> Value; 4] = [
    |value| Value::variant(1, [Value::Int(7), value]),
    |value| Value::Record([value, Value::Int(7)].into()),
    |value| Value::Record([Value::list(vec![value])].into()),
    |value| Value::some(Value::Map([(Value::Int(1), value)].into_iter().collect())),
];

fn chain(wrap: fn(Value) -> Value, depth: usize, end: Value) -> Value {
    (0..depth).fold(end, |inner, _| wrap(inner))
}

struct End;

impl HostValue for End {
    fn type_name(&self) -> &'static str {
        "test.End"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn into_any_box(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        self
    }
}

#[test]
fn a_deep_value_is_dropped_to_its_end() {
    on_a_stack_of_its_own(|| {
        let end: Arc<dyn HostValue> = Arc::new(End);
        for wrap in WRAPS {
            let one = chain(wrap, DEPTH, Value::Host(Arc::clone(&end)));
            let tree = Value::list(vec![one, chain(wrap, DEPTH / 10, Value::Host(Arc::clone(&end)))]);
            assert_eq!(Arc::strong_count(&end), 3);
            drop(tree);
            assert_eq!(Arc::strong_count(&end), 1);
        }
    });
}

#[test]
fn a_part_that_another_holds_outlives_a_deep_value() {
    on_a_stack_of_its_own(|| {
        let half = chain(WRAPS[0], DEPTH / 2, Value::Unit);
        let whole = chain(WRAPS[1], DEPTH / 2, half.clone());
        drop(whole);
        assert_eq!(half.walk().count(), DEPTH + 1);
    });
}

#[test]
fn a_wide_value_at_each_depth_is_dropped() {
    on_a_stack_of_its_own(|| {
        let end: Arc<dyn HostValue> = Arc::new(End);
        let leaf = || Value::some(Value::some(Value::Host(Arc::clone(&end))));
        let value = (0..1000).fold(Value::Unit, |inner, _| Value::list(vec![leaf(), inner, leaf(), leaf()]));
        assert_eq!(Arc::strong_count(&end), 3001);
        drop(value);
        assert_eq!(Arc::strong_count(&end), 1);
    });
}

/// Returns a value within a list and a map that share nodes with earlier states.
fn shared_nodes(inner: Value, others: &(Elements, Entries)) -> Value {
    let (mut list, mut map) = others.clone();
    list.set(150, inner.clone());
    map.insert(Value::Int(150), inner);
    Value::Record([Value::List(list), Value::Map(map)].into())
}

#[test]
fn a_value_that_shares_nodes_at_each_depth_is_compared_and_dropped() {
    on_a_stack_of_its_own(|| {
        let end: Arc<dyn HostValue> = Arc::new(End);
        let units =
            (Elements::from(vec![Value::Unit; 300]), (0..300).map(|key| (Value::Int(key), Value::Unit)).collect());
        let Value::Record(others) = shared_nodes(Value::Unit, &units) else { panic!("a record of two") };
        let [Value::List(list), Value::Map(map)] = &*others else { panic!("a list and a map") };
        let others = (list.clone(), map.clone());
        let chain = |end| (0..1_000).fold(end, |inner, _| shared_nodes(inner, &others));
        let (one, other) = (chain(Value::Host(Arc::clone(&end))), chain(Value::Host(Arc::clone(&end))));
        assert!(one == other && one != chain(Value::Unit));
        let state = RandomState::new();
        assert_eq!(state.hash_one(&one), state.hash_one(&other));
        drop((one, other));
        assert_eq!(Arc::strong_count(&end), 1);
    });
}

#[test]
fn deep_values_compare_and_equal_ones_have_one_hash() {
    on_a_stack_of_its_own(|| {
        let state = RandomState::new();
        for wrap in WRAPS {
            let [one, same, more] = [1, 1, 2].map(|end| chain(wrap, DEPTH / 4, Value::Int(end)));
            assert!(one == same);
            assert_eq!(one.cmp(&more), Ordering::Less);
            assert_eq!(more.partial_cmp(&one), Some(Ordering::Greater));
            assert_eq!(state.hash_one(&one), state.hash_one(&same));
            assert_ne!(state.hash_one(&one), state.hash_one(&more));
        }
    });
}

#[test]
fn values_compare_alike_on_both_sides_of_the_recursion_limit() {
    let ends = [Value::list(vec![]), Value::list(vec![Value::Int(1)]), Value::list(vec![Value::Int(1); 2])];
    let others = [Value::none(), Value::some(Value::Unit), Value::some(Value::Int(1)), Value::variant(2, [])];
    let ends: Vec<Value> = ends.into_iter().chain(others).collect();
    for (wrap, depth) in WRAPS.into_iter().flat_map(|wrap| (120..135).map(move |depth| (wrap, depth))) {
        let chains: Vec<Value> = ends.iter().map(|end| chain(wrap, depth, end.clone())).collect();
        for (left, one) in chains.iter().enumerate() {
            for (right, other) in chains.iter().enumerate() {
                assert_eq!(one.cmp(other), left.cmp(&right), "{one} and {other}");
            }
        }
    }
}

#[test]
fn a_deep_value_is_shown_whole() {
    on_a_stack_of_its_own(|| {
        let shown = chain(WRAPS[0], DEPTH, Value::text("end")).to_string();
        assert_eq!(shown, format!("{}\"end\"{}", "#1(7, ".repeat(DEPTH), ")".repeat(DEPTH)));
        let shown = chain(WRAPS[3], DEPTH, Value::none()).to_string();
        assert_eq!(shown, format!("{}#0{}", "#1([1: ".repeat(DEPTH), "])".repeat(DEPTH)));
    });
}

#[test]
fn shared_parts_are_not_compared() {
    let twice = |value: Value| Value::Record([value.clone(), value].into());
    for levels in [100, 1_000] {
        // The number of paths from the top to the bottom is 2 to the power of the levels.
        let shared = (0..levels).fold(Value::Int(7), |value, _| twice(value));
        let [one, other] = [1, 1].map(|tag| Value::variant(tag, [shared.clone()]));
        assert_eq!(one, other);
        let more = Value::Record([shared.clone(), Value::Int(2)].into());
        assert_eq!(Value::Record([shared, Value::Int(1)].into()).cmp(&more), Ordering::Less);
    }
}
