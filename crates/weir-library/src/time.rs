//! Time: the clock, calendars, sleeping, and periodic flows.

mod calendar;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{MissedTickBehavior, interval};
use weir::{Failure, HostType, Type, Value};

pub(crate) use calendar::is_out_of_range;
pub use calendar::{Date, date, format, of_date, parse, parse_as, shift, start_of_day};

use crate::stream_source::{Emitter, Stream, StreamDefinition, parameter};

/// Builds the module `time`.
pub(crate) fn time() -> weir::Module {
    let every = StreamDefinition {
        name: "every",
        doc: "Begins a flow immediately and then at each interval; its element is the time. A tick that comes while \
              there is no room for its flow is skipped.",
        parameters: vec![parameter("interval", Type::Duration)],
        element: Type::Time,
        ordered: true,
        open: |arguments| Ok(Ticks(arguments.duration(0, "interval")?)),
    };
    every.within(functions::time())
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// The clock, calendars and time zones, sleeping, and periodic flows.
        pub(crate) time: super::now, super::unix, super::from_unix, super::calendar::parse, super::calendar::parse_as,
            super::calendar::format, super::calendar::date, super::calendar::of_date, super::calendar::shift,
            super::calendar::start_of_day, super::sleep, super::back_off,
            super::wait_for_attempt
    }
}

/// Returns the time of the machine's clock.
#[weir::function(reads)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the whole seconds from the beginning of 1970, in UTC, to the time; negative before it.
#[weir::function(pure)]
pub fn unix(time: SystemTime) -> i64 {
    nanoseconds_of(time).div_euclid(NANOSECONDS)
}

/// Returns the time that is this many seconds after the beginning of 1970, in UTC.
///
/// # Errors
/// Fails if the time is before 1677 or after 2262: a `Time` counts nanoseconds in 64 bits.
#[weir::function(pure)]
pub fn from_unix(seconds: i64) -> Result<SystemTime, Failure> {
    let duration = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { UNIX_EPOCH.checked_sub(duration) } else { UNIX_EPOCH.checked_add(duration) };
    let fits = seconds.checked_mul(NANOSECONDS).is_some();
    time.filter(|_| fits)
        .ok_or_else(|| Failure::argument(format!("{seconds} s from 1970 is outside the range of `Time`")))
}

/// Nanoseconds of a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// Waits for the duration; not at all if it is negative, such as that to a time which has passed. What follows in the text waits
/// with it, except for computations.
#[weir::function(idempotent, barrier)]
pub async fn sleep(duration: SleepTime) {
    tokio::time::sleep(duration.0).await;
}

/// Waits as `retry` does between two attempts: for a random time between half of the duration and all of it, so that
/// flows that failed together do not retry together. It does not wait if the duration is negative. What follows in the text
/// waits with it, except for computations.
#[weir::function(idempotent, barrier)]
pub async fn back_off(duration: SleepTime) {
    weir_events::after_about(duration.0).await;
}

/// The wait of a `retry`, with which only its next attempt waits.
#[weir::function(idempotent, internal)]
pub async fn wait_for_attempt(duration: SleepTime) {
    weir_events::after_about(duration.0).await;
}

/// A duration to wait for: zero instead of a negative one.
pub struct SleepTime(pub Duration);

impl HostType for SleepTime {
    fn ty() -> Type {
        Type::Duration
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        match value {
            Value::Duration(..0) => Ok(SleepTime(Duration::ZERO)),
            value => Duration::from_value(value).map(SleepTime),
        }
    }

    fn into_value(self) -> Result<Value, Failure> {
        self.0.into_value()
    }
}

/// The source `every(100ms)`.
struct Ticks(Duration);

impl Stream for Ticks {
    fn describe(&self) -> String {
        format!("every {:?}", self.0)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut ticks = interval(self.0);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            emitter.emit(Value::Time(nanoseconds_of(SystemTime::now()))).await;
        }
    }
}

/// Converts a time to nanoseconds since 1970, as a `Time` counts them.
fn nanoseconds_of(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    }
}
