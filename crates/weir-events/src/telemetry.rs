//! Reports to `tracing`, with the feature of that name; without it, they are nothing and cost nothing.
//!
//! A subscriber is user code: no report is made under a lock.

pub(crate) use here::{WaitReport, action_panicked, thread_refused};

#[cfg(feature = "tracing")]
mod here {
    use std::io;
    use std::time::Instant;

    /// The report of one synchronisation that had to wait; begun when its offers have been published.
    pub(crate) struct WaitReport {
        /// `None` if nobody wants reports.
        begun: Option<Instant>,
    }

    impl WaitReport {
        pub(crate) fn begin() -> Self {
            let is_wanted = tracing::enabled!(target: "weir_events", tracing::Level::TRACE);
            WaitReport { begun: is_wanted.then(Instant::now) }
        }

        pub(crate) fn committed(&self, branch: usize) {
            if let Some(begun) = self.begun {
                tracing::trace!(target: "weir_events", branch, waited = ?begun.elapsed(), "synchronised");
            }
        }

        pub(crate) fn given_up(&self) {
            if let Some(begun) = self.begun {
                tracing::trace!(target: "weir_events", waited = ?begun.elapsed(), "gave up");
            }
        }
    }

    pub(crate) fn action_panicked() {
        tracing::error!(target: "weir_events", "a post-consumption action panicked");
    }

    pub(crate) fn thread_refused(error: &io::Error) {
        tracing::warn!(target: "weir_events", %error, "the system refuses a thread for post-consumption actions");
    }
}

#[cfg(not(feature = "tracing"))]
mod here {
    use std::io;

    pub(crate) struct WaitReport;

    impl WaitReport {
        #[inline]
        pub(crate) fn begin() -> Self {
            WaitReport
        }

        #[inline]
        pub(crate) fn committed(&self, _branch: usize) {}

        #[inline]
        pub(crate) fn given_up(&self) {}
    }

    #[inline]
    pub(crate) fn action_panicked() {}

    #[inline]
    pub(crate) fn thread_refused(_error: &io::Error) {}
}
