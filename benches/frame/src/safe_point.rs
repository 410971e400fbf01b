//! Safe points at back edges: counted units, an epoch that another thread raises, and a clock reading.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::Row;
use crate::bytecode::{Typed, expect, interpret};
use crate::program::{Op, Stop, code};

/// Units of one slice.
const SLICE: i64 = 4_000;

/// The rows of this module.
pub(crate) fn rows(rounds: u64) -> Vec<Row> {
    let row = |name, check: Check| {
        let code = code();
        Row::new(name, rounds, move || {
            let mut registers = [0; 256];
            registers[2] = rounds;
            let mut at = 0;
            loop {
                match check.run(&code, &mut registers, at) {
                    Stop::Yielded(next) => at = next,
                    stop => return expect(stop, rounds),
                }
            }
        })
    };
    vec![
        row("safe point: counted units, a yield every 4,000", Check::Units),
        row("safe point: an epoch loaded and compared", Check::Epoch(Arc::default())),
        row("safe point: the clock read each time", Check::Clock(Cell::new(None))),
    ]
}

/// A check that a back edge makes.
enum Check {
    Units,
    Epoch(Arc<AtomicU64>),
    Clock(Cell<Option<Instant>>),
}

impl Check {
    #[inline(never)]
    fn run(&self, code: &[Op], registers: &mut Typed, at: usize) -> Stop {
        match self {
            Check::Units => {
                let mut units = SLICE;
                interpret(code, registers, at, || {
                    units -= 1;
                    units < 0
                })
            }
            Check::Epoch(epoch) => {
                let began = epoch.load(Ordering::Relaxed);
                interpret(code, registers, at, || epoch.load(Ordering::Relaxed) != began)
            }
            Check::Clock(due) => {
                due.set(Some(Instant::now() + std::time::Duration::from_secs(60)));
                interpret(code, registers, at, || due.get().is_some_and(|due| Instant::now() >= due))
            }
        }
    }
}
