//! Overload control: refuses a request before it begins, if work that has begun already waits too long for a thread.
//!
//! The signal is *queueing delay*: the time from the moment when a flow or a call could run until it does. Time that a
//! flow spends waiting for something else (a timer, a peer, a lock) is none, so that slow clients, long polls and
//! `time.sleep` never count as load. DAGOR (Zhou et al., Overload Control for Scaling WeChat Microservices, SoCC 2018, §3.1)
//! chose the same signal, because response times rise for many other reasons.
//!
//! 1. Each queue for threads measures its own delay ([`QueueDelay`]). The control law is CoDel's (Nichols and Jacobson,
//!    RFC 8289) in the form for servers (Maurer, Fail at Scale, ACM Queue 13(8), 2015): a burst may wait for long, a
//!    delay that has been too long for a while may not go on.
//! 2. Unlike there, nothing is dropped from a queue: what has begun is completed, and may have had effects. New work is
//!    refused at its arrival while the delay is too long, as the server of Breakwater does (Cho et al., OSDI 2020, §4),
//!    before its body is read. A refusal costs a small part of the work.
//! 3. A route is refused only for queues that its flows pass: [`PassedQueues`] notes which. So a slow route does not
//!    close the others.
//! 4. Flows that compute take turns in a queue with several levels ([`MultilevelQueue`]), so that long flows delay
//!    neither short ones nor their admission. The delay of a level is that of all turns that a flow has at this level and at
//!    those before it ([`FlowDelays`], [`FlowTurns`]): a flow of some milliseconds has dozens.
//! 5. The queue in front of an event loop is in the kernel; a probe measures how late the loop is ([`loop_probe`]).
//!
//! All of it is a hint: counters are read and written with relaxed ordering, and a stale value admits or refuses a request
//! too many.

mod flow_delays;
mod flow_turns;
mod loop_probe;
mod multilevel_queue;
mod passed_queues;
mod queue_delay;

pub(crate) use flow_delays::FlowDelays;
pub(crate) use flow_turns::FlowTurns;
pub(crate) use loop_probe::{note_beginning, probe_loop};
pub(crate) use multilevel_queue::MultilevelQueue;
pub(crate) use passed_queues::{PassedQueues, ThreadQueue};
pub(crate) use queue_delay::QueueDelay;
