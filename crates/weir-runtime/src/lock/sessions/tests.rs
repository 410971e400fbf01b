//! Tests of sessions: one value each, made once, retained for a while, and freed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use weir_events::{Event, never};

use super::*;

/// A platform whose time a test sets.
#[derive(Default)]
struct TestPlatform(AtomicU64);

impl Platform for TestPlatform {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn thread(&self, _: &str, _: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle<()>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn random(&self) -> u64 {
        0
    }

    fn at(&self, _: u64) -> Event<()> {
        never()
    }
}

fn keeping(sessions: usize, idle_ns: u64) -> (Arc<TestPlatform>, SessionTable) {
    let clock = Arc::new(TestPlatform::default());
    let limits = SessionLimits { sessions, idle: Duration::from_nanos(idle_ns) };
    (Arc::clone(&clock), SessionTable::keeping(SessionRetention { limits, platform: clock, issued: None }))
}

/// Uses a session once, and returns its value.
fn used(sessions: &SessionTable, key: i64, makes: i64) -> Value {
    let session = sessions.begin_use(&Value::Int(key));
    if session.made().is_none() {
        session.put(Value::Int(makes));
    }
    let value = session.made().expect("it was made").read().clone();
    sessions.end_use(&Value::Int(key), session);
    value
}

#[test]
fn each_session_has_its_own_value_made_once() {
    let (_, sessions) = keeping(10, 100);
    assert_eq!([used(&sessions, 1, 5), used(&sessions, 2, 6)], [Value::Int(5), Value::Int(6)]);
    assert_eq!(used(&sessions, 1, 7), Value::Int(5));
}

#[test]
fn a_value_is_freed_when_no_flow_has_used_its_session_for_long_enough() {
    let (clock, sessions) = keeping(10, 100);
    used(&sessions, 1, 5);
    clock.0.store(99, Ordering::Relaxed);
    assert_eq!(used(&sessions, 1, 6), Value::Int(5));
    clock.0.store(198, Ordering::Relaxed);
    used(&sessions, 2, 0);
    assert_eq!(sessions.len(), 2);
    clock.0.store(199, Ordering::Relaxed);
    assert_eq!(used(&sessions, 1, 7), Value::Int(7), "also if the session itself comes back");
    clock.0.store(299, Ordering::Relaxed);
    used(&sessions, 3, 0);
    assert_eq!((sessions.len(), used(&sessions, 1, 8)), (1, Value::Int(8)));
}

#[test]
fn sessions_that_nobody_comes_back_to_make_room_before_those_that_came_back() {
    let (_, sessions) = keeping(3, 100);
    used(&sessions, 1, 5);
    used(&sessions, 1, 6);
    (100..200).for_each(|made_up| _ = used(&sessions, made_up, 0));
    assert_eq!(used(&sessions, 1, 7), Value::Int(5));
    assert!(sessions.len() <= 3);
}

#[test]
fn sessions_that_the_program_has_issued_are_kept_when_others_are_made_up() {
    let limits = SessionLimits { sessions: 10, idle: Duration::from_mins(1) };
    let issued = IssuedIds::new(|id| id.starts_with("issued"));
    let keeping =
        SessionRetention { limits, platform: Arc::new(TestPlatform::default()), issued: Some(Arc::new(issued)) };
    let sessions = SessionTable::keeping(keeping);
    let used = |key: &Value, makes| {
        let session = sessions.begin_use(key);
        if session.made().is_none() {
            session.put(Value::Int(makes));
        }
        let value = session.made().expect("it was made").read().clone();
        sessions.end_use(key, session);
        value
    };
    let kept: Vec<Value> = (0..8)
        .map(|id| Value::Variant(1, Some([Value::text(&format!("issued {id}"))].into_iter().collect())))
        .collect();
    kept.iter().for_each(|key| _ = used(key, 5));
    // Those that are made up come back as often as they like.
    for made_up in (0..1_000).map(|id| Value::text(&format!("made up {id}"))) {
        (0..3).for_each(|_| _ = used(&made_up, 0));
    }
    assert_eq!(kept.iter().map(|key| used(key, 6)).collect::<Vec<_>>(), [const { Value::Int(5) }; 8]);
    assert!(sessions.len() <= 10);
}

#[test]
fn a_new_session_keeps_its_value_beside_many_that_came_back() {
    let (_, sessions) = keeping(8, 100);
    for _ in 0..3 {
        (0..8).for_each(|key| _ = used(&sessions, key, 5));
    }
    assert_eq!([used(&sessions, 100, 7), used(&sessions, 101, 8)], [Value::Int(7), Value::Int(8)]);
    assert_eq!([used(&sessions, 100, 0), used(&sessions, 101, 0)], [Value::Int(7), Value::Int(8)]);
}

#[test]
fn of_too_many_sessions_the_one_that_was_idle_for_longest_goes() {
    let (_, sessions) = keeping(2, 100);
    used(&sessions, 1, 5);
    used(&sessions, 2, 6);
    used(&sessions, 1, 0);
    used(&sessions, 3, 7);
    assert_eq!(sessions.len(), 2);
    assert_eq!([used(&sessions, 1, 8), used(&sessions, 2, 9)], [Value::Int(5), Value::Int(9)]);
}

#[test]
fn a_session_in_use_is_never_freed() {
    let (clock, sessions) = keeping(1, 100);
    let held = sessions.begin_use(&Value::Int(1));
    held.put(Value::Int(5));
    clock.0.store(1_000, Ordering::Relaxed);
    used(&sessions, 2, 6);
    assert_eq!(used(&sessions, 1, 7), Value::Int(5));
    sessions.end_use(&Value::Int(1), held);
}

#[test]
fn what_could_not_be_made_is_tried_again_and_not_kept() {
    let (_, sessions) = keeping(10, 100);
    let session = sessions.begin_use(&Value::Int(1));
    sessions.end_use(&Value::Int(1), session);
    assert_eq!(sessions.len(), 0);
    assert_eq!(used(&sessions, 1, 5), Value::Int(5));
}
