//! Time: the clock, and a flow at every tick.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{MissedTickBehavior, interval};
use weir::{
    Failure, Flows, LocalFuture, Opened, Parameter, Passing, Route, Source, SourceSignature, Stop, Type, Value,
};

use crate::feed::feed;

/// The module `time`.
pub(crate) fn time() -> weir::Module {
    functions::time().source(signature(), Arc::new(Every))
}

mod functions {
    //! The functions of the module, apart so that the module made of them can be named as it is.

    weir::library! {
        /// The clock, and flows that begin at its ticks.
        pub(crate) time: super::now
    }
}

/// The time by the machine's clock.
#[weir::function(reads)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

fn signature() -> SourceSignature {
    SourceSignature {
        module: "time".into(),
        name: "every".into(),
        doc: "Begins a flow at once and then each time the interval has passed; its element is the time. A tick that \
              comes while there is no room for its flow is left out."
            .into(),
        parameters: vec![Parameter {
            name: "interval".into(),
            ty: Type::Duration,
            passing: Passing::Value,
            default: None,
        }],
        element: Some(Type::Time),
        answer: None,
        ordered: true,
    }
}

/// `every(100ms)`.
struct Every;

impl Source for Every {
    fn open(&self, arguments: Vec<Value>, _routes: Arc<[Route]>) -> Result<Arc<dyn Opened>, Failure> {
        match arguments.first() {
            Some(Value::Duration(nanos @ 1..)) => Ok(Arc::new(Ticks(Duration::from_nanos(nanos.unsigned_abs())))),
            _ => Err(Failure::argument("`interval` must be longer than nothing")),
        }
    }
}

struct Ticks(Duration);

impl Opened for Ticks {
    fn describe(&self) -> String {
        format!("every {:?}", self.0)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let mut ticks = interval(self.0);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            feed(flows, stop, async || {
                ticks.tick().await;
                Some(Value::Time(nanoseconds_of(SystemTime::now())))
            })
            .await;
            Ok(())
        })
    }
}

/// Nanoseconds since 1970, as a `Time` counts them.
fn nanoseconds_of(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
