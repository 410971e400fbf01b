//! Graph families of the Streams paper, and the work of an operator.

use std::hint::black_box;

use crate::BenchResult;

/// The number of operators of a graph, without source and sink.
pub(crate) const OPERATORS: usize = 1_000;

/// A tuple of 64 bytes.
#[derive(Clone)]
pub(crate) struct Tuple {
    /// The index of the parallel branch that it takes.
    pub(crate) branch: usize,
    /// The number that operators compute with.
    pub(crate) value: f64,
    /// Padding to 64 bytes.
    pub(crate) payload: [u64; 6],
}

impl Tuple {
    pub(crate) fn new(number: u64, branches: usize) -> Self {
        Tuple { branch: number as usize % branches, value: number as f64, payload: [number; 6] }
    }
}

/// The shape of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// A chain of 1,000.
    Pipeline,
    /// A split into 1,000, and a sink that joins them.
    Parallel,
    /// A split into 10 chains of 100, and a sink that joins them.
    Mixed,
}

impl Family {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::Pipeline => "pipeline",
            Family::Parallel => "parallel",
            Family::Mixed => "mixed",
        }
    }

    pub(crate) fn named(name: &str) -> BenchResult<Family> {
        let all = [Family::Pipeline, Family::Parallel, Family::Mixed];
        let found = all.into_iter().find(|family| family.name() == name);
        Ok(found.ok_or_else(|| format!("no family is called {name}: pipeline, parallel or mixed"))?)
    }

    /// Returns the number of branches of the split.
    pub(crate) fn branches(self) -> usize {
        match self {
            Family::Pipeline => 1,
            Family::Parallel => OPERATORS,
            Family::Mixed => 10,
        }
    }

    /// Returns the number of operators that a tuple passes.
    pub(crate) fn depth(self) -> usize {
        OPERATORS / self.branches()
    }
}

/// A graph and the cost of its operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GraphCase {
    pub(crate) family: Family,
    /// Floating-point operations for each tuple and operator.
    pub(crate) cost: u32,
}

impl GraphCase {
    /// Returns the cases of the paper's Figures 9 and 10.
    pub(crate) fn all() -> impl Iterator<Item = GraphCase> {
        let of = |family, costs: &'static [u32]| costs.iter().map(move |&cost| GraphCase { family, cost });
        of(Family::Pipeline, &[1, 100, 1_000])
            .chain(of(Family::Parallel, &[1, 10_000, 100_000]))
            .chain(of(Family::Mixed, &[1, 100, 1_000]))
    }
}

/// Runs one operator on one tuple.
#[inline(never)]
pub(crate) fn operate(tuple: &mut Tuple, cost: u32) {
    tuple.value = spin(tuple.value, cost);
}

/// Executes `cost` floating-point operations, each of which depends on the one before.
#[inline]
pub(crate) fn spin(mut value: f64, cost: u32) -> f64 {
    for _ in 0..cost {
        value = black_box(value) * 1.000_000_1;
    }
    value
}
