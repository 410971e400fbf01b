//! The health route of a service, which tells a load balancer whether to send it requests.
//!
//! The server answers it itself: 200 as long as the service runs, and 503 once the program has been told to stop. For
//! `shutdown_delay` the service then still accepts requests, so that load balancers notice before connections are refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Method, StatusCode};
use weir::{Failure, Stop};
use weir_events::{Event, after, from_future_with};

use super::input::normalized_path;
use super::response::Response;

/// The health route of a service.
#[derive(Debug, Default)]
pub(super) struct HealthRoute {
    /// The path, normalized; empty if there is no such route.
    path: String,
    is_draining: AtomicBool,
}

impl HealthRoute {
    /// Returns the route with this path; an empty one stands for none.
    ///
    /// # Errors
    /// Fails if the path does not begin with `/`.
    pub(super) fn new(path: &str) -> Result<Self, Failure> {
        if !path.is_empty() && !path.starts_with('/') {
            return Err(Failure::argument(format!("the path of `health` begins with `/`, and not as in {path:?}")));
        }
        Ok(HealthRoute { path: normalized_path(path).into_owned(), is_draining: AtomicBool::new(false) })
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the answer to a request, if it is for this route.
    pub(super) fn answer(&self, method: &Method, path: &str) -> Option<Response> {
        if self.path.is_empty() || path != self.path {
            return None;
        }
        let allow = HeaderValue::from_static("GET, HEAD, OPTIONS");
        match *method {
            Method::GET | Method::HEAD => {}
            Method::OPTIONS => return Some(Response::options(allow)),
            _ => return Some(Response::not_allowed(allow)),
        }
        let answer = match self.is_draining.load(Ordering::Relaxed) {
            false => Response::plain(StatusCode::OK, "ok"),
            true => Response::plain(StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        };
        Some(answer.with_field(CACHE_CONTROL, HeaderValue::from_static("no-store")))
    }

    fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }
}

/// Returns the event at which a service accepts no more requests: `delay` after the program has been told to stop, which the
/// health route of `policy` tells from then on.
pub(super) fn closing<P: AsRef<HealthRoute> + Send + Sync + 'static>(
    policy: std::sync::Arc<P>,
    stop: &Stop,
    delay: Duration,
) -> Event<()> {
    let stopped = stop.stopped();
    from_future_with(move || {
        let (stopped, policy) = (stopped.synchronise(), std::sync::Arc::clone(&policy));
        async move {
            stopped.await;
            (*policy).as_ref().drain();
            if !delay.is_zero() {
                after(delay).synchronise().await;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_of_the_path_are_answered() {
        let health = HealthRoute::new("/health").unwrap();
        let status = |method: Method, path: &str| health.answer(&method, path).map(|answer| answer.code().as_u16());
        assert_eq!(status(Method::GET, "/health"), Some(200));
        assert_eq!((status(Method::HEAD, "/health"), status(Method::POST, "/health")), (Some(200), Some(405)));
        assert_eq!(status(Method::OPTIONS, "/health"), Some(204));
        assert_eq!((status(Method::GET, "/"), status(Method::GET, "/health/")), (None, None));
        health.drain();
        assert_eq!(status(Method::GET, "/health"), Some(503));
        assert!(HealthRoute::new("").unwrap().answer(&Method::GET, "").is_none());
        assert!(HealthRoute::new("health").is_err());
    }
}
