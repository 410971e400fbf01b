//! Reports to `tracing`, with the feature of that name.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::until;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use weir_events::*;

/// A subscriber that keeps the messages, with the branch that took effect.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "weir_events"
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.push_str(&format!("{value:?}")),
            "branch" => self.0.push_str(&format!(" {value:?}")),
            _ => {}
        }
    }
}

#[test]
fn waits_and_panics_of_actions_are_reported() {
    let messages = Messages::default();
    tracing::subscriber::set_global_default(messages.clone()).unwrap();
    let lines = || messages.0.lock().unwrap().clone();

    let channel = Channel::rendezvous();
    assert_eq!(channel.recv().sync_timeout(Duration::ZERO), None);
    assert_eq!(lines(), ["gave up"]);
    let soon = after(Duration::from_millis(1)).wrap(|()| Err(Closed));
    assert_eq!(choose([channel.recv(), soon]).sync(), Err(Closed));
    assert_eq!(lines(), ["gave up", "synchronised 1"]);
    channel.post(1).unwrap();
    assert_eq!(channel.recv().sync(), Ok(1));
    assert_eq!(lines().len(), 2, "nothing is reported without a wait");

    a_send(&channel, 2).a_wrap(|_| std::panic::resume_unwind(Box::new("by design"))).a_sync();
    assert_eq!(channel.recv().sync(), Ok(2));
    until(|| lines().len() > 2);
    assert_eq!(lines()[2], "a post-consumption action panicked");
}
