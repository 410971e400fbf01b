//! Vectors: calls of several flows together, each call for all of them before the next one (Boncz, Zukowski and Nes,
//! "MonetDB/X100", CIDR 2005).
//!
//! A processor overlaps instructions that do not depend on each other, within a few hundred of them. The calls of one flow
//! mostly depend on each other; those of different flows do not. Where flows wait in the queue of a port, the thread that takes
//! them therefore makes their first calls together ([`VectorCode`]), [`LANES`] flows at a time, and then runs each flow alone
//! from there on.
//!
//! Only calls on scalars take part that have no effect and use nothing but their arguments, so that nothing can be seen of
//! their order, and no memory is left to be charged. A failure or panic ends its flow only.
//!
//! It pays for some functions and not for others: measured, a chain of a hundred dependent multiplications takes two thirds of
//! the time, and a call of a few instructions a third (`benches/operators`). So both ways are timed for each port, again and
//! again. A flow that somebody awaits takes no part, because its answer would be later.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::job::{FlowJob, PooledJob};
use super::partition::FlowSegments;
use super::vector_code::{LANES, VectorCode};
use crate::instance::ProgramInstance;
use crate::platform::Platform;

/// The time after which no further vector of a batch begins. Other ports wait for the batch.
const BATCH_NS_MAX: u64 = 200_000;
/// The number of batches from one trial to the next. With [`TRIAL`], trials take some hundredths of the time.
const PERIOD: u32 = 256;
/// The number of batches of a trial, half of them in each way.
const TRIAL: u32 = 8;

/// Measured times of the vectors of one port. All accesses are relaxed: one thread at a time runs the port, and what it reads
/// only decides between two ways that have the same results.
pub(super) struct CallVectors {
    /// The number of batches that could be run together.
    batches: AtomicU32,
    /// The least time of a thousand calls in the latest trial, made for one flow after the other.
    alone_ns: AtomicU64,
    /// The same, made together.
    together_ns: AtomicU64,
}

impl Default for CallVectors {
    fn default() -> Self {
        let unknown = || AtomicU64::new(u64::MAX);
        CallVectors { batches: AtomicU32::new(0), alone_ns: unknown(), together_ns: unknown() }
    }
}

/// The program whose flows are in a batch.
#[derive(Clone, Copy)]
pub(super) struct VectorScene<'a> {
    pub(super) instance: &'a ProgramInstance,
    pub(super) segments: &'a FlowSegments,
    pub(super) platform: &'a dyn Platform,
}

/// The way in which the calls of a batch are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the same code, one flow after the other, to measure it.
    Alone,
    /// Together.
    Together,
    /// Not ahead, but when each flow runs.
    Later,
}

impl CallVectors {
    /// Makes calls of the flows at the beginning of a batch ahead, if it pays; returns the number of flows for which it did.
    #[inline]
    pub(super) fn run_ahead(&self, items: &mut [Box<PooledJob>], scene: VectorScene<'_>) -> Option<NonZeroUsize> {
        if items.len() < LANES {
            return None;
        }
        let code = vector_of(items.first_mut()?, scene.segments)?;
        let way = self.next_way();
        if way == Way::Later { None } else { self.run_batch(way, items, code, scene) }
    }

    #[cold]
    #[inline(never)]
    fn run_batch(
        &self,
        way: Way,
        items: &mut [Box<PooledJob>],
        code: &Arc<VectorCode>,
        scene: VectorScene<'_>,
    ) -> Option<NonZeroUsize> {
        let belongs =
            |item: &mut Box<PooledJob>| vector_of(item, scene.segments).is_some_and(|other| Arc::ptr_eq(other, code));
        let ready = items.iter_mut().map(belongs).take_while(|belongs| *belongs).count() / LANES * LANES;
        let body = &scene.instance.flow(items[0].job().flow.key()).body;
        let (platform, width) = (scene.platform, if way == Way::Together { LANES } else { 1 });
        let (began_ns, mut took_ns, mut made, mut done) = (platform.now_ns(), 0, 0, 0);
        while done < ready && took_ns < BATCH_NS_MAX {
            let flows = items[done..done + LANES].chunks_mut(width);
            made += flows.map(|flows| code.run(flows, body, platform)).sum::<usize>();
            done += LANES;
            took_ns = platform.now_ns().saturating_sub(began_ns);
        }
        if made > 0 {
            self.note(way, took_ns.saturating_mul(1_000) / made as u64);
        }
        NonZeroUsize::new(done)
    }

    /// Returns the way for the next batch.
    fn next_way(&self) -> Way {
        let batch = self.batches.load(Ordering::Relaxed);
        self.batches.store(batch.wrapping_add(1), Ordering::Relaxed);
        let (alone_ns, together_ns) = (self.alone_ns.load(Ordering::Relaxed), self.together_ns.load(Ordering::Relaxed));
        match batch % PERIOD {
            0 => {
                [&self.alone_ns, &self.together_ns].iter().for_each(|least| least.store(u64::MAX, Ordering::Relaxed));
                Way::Together
            }
            in_trial @ 1..TRIAL if in_trial % 2 == 0 => Way::Together,
            1..TRIAL => Way::Alone,
            // A tenth is more than noise, and than what the detour through this module costs.
            _ if together_ns < alone_ns - alone_ns / 10 => Way::Together,
            _ => Way::Later,
        }
    }

    /// Notes the time of a thousand calls.
    fn note(&self, way: Way, took_ns: u64) {
        let least = if way == Way::Alone { &self.alone_ns } else { &self.together_ns };
        least.store(least.load(Ordering::Relaxed).min(took_ns), Ordering::Relaxed);
    }
}

/// Returns the code of the calls with which this job's flow goes on, if they may be made together with those of other flows.
#[inline]
fn vector_of<'s>(item: &mut PooledJob, segments: &'s FlowSegments) -> Option<&'s Arc<VectorCode>> {
    let PooledJob::Flow(FlowJob { flow, segment, has_yielded: false, task: None, .. }) = item else { return None };
    let key = flow.key();
    let code = segments[key.entry as usize][key.route as usize][*segment].vector.as_ref()?;
    (!flow.is_watched() && flow.frame_before(code.steps.start).is_some()).then_some(code)
}
