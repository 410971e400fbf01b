//! All interleavings of two flows, by replay: one flow at a time runs on the evaluator up to its next atomic step, with
//! the results of its earlier steps replayed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use test_support::fixture;
use weir::{Library, Value};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::Program;

/// The number of shared cells.
pub(crate) const CELLS: usize = 3;

/// The cell that functions without a shared value use, which the program holds by a constraint.
pub(crate) const OUTSIDE: usize = 2;

/// The values of the cells.
pub(crate) type Cells = [i64; CELLS];

pub(crate) mod cell {
    use super::{OUTSIDE, RUN, Run};

    weir::library! {
        /// Shared numbers that the test holds, and marks around atomic steps.
        pub cell: new, get, set, add, read_outside, set_outside, add_outside, begin, end
    }
    #[derive(weir::Type)]
    #[weir(opaque, unique, name = "cell.Cell")]
    pub(crate) struct Cell(usize);
    #[weir::function(reads)]
    pub(crate) fn new(index: usize) -> Cell {
        Cell(index)
    }
    #[weir::function(reads)]
    pub(crate) fn get(cell: &Cell) -> i64 {
        step(cell.0, None, |_| ())
    }
    #[weir::function(reads)]
    pub(crate) fn set(cell: &mut Cell, to: i64) {
        step(cell.0, Some(to), |value| *value = to);
    }
    #[weir::function(reads, commutes)]
    pub(crate) fn add(cell: &mut Cell, by: i64) {
        step(cell.0, Some(by), |value| *value += by);
    }
    #[weir::function(reads)]
    pub(crate) fn read_outside() -> i64 {
        step(OUTSIDE, None, |_| ())
    }
    #[weir::function]
    pub(crate) fn set_outside(to: i64) {
        step(OUTSIDE, Some(to), |value| *value = to);
    }
    #[weir::function]
    pub(crate) fn add_outside(by: i64) {
        step(OUTSIDE, Some(by), |value| *value += by);
    }
    #[weir::function]
    pub(crate) fn begin() {
        RUN.with_borrow_mut(|run| run.begin());
    }
    #[weir::function]
    pub(crate) fn end() {
        RUN.with_borrow_mut(|run| run.depth -= 1);
    }

    fn step(cell: usize, by: Option<i64>, change: impl FnOnce(&mut i64)) -> i64 {
        RUN.with_borrow_mut(|run: &mut Run| run.step(cell, by, change))
    }
}

thread_local! {
    static RUN: RefCell<Run> = RefCell::new(Run::default());
}

/// One run of a flow from its beginning to the end of its next step.
#[derive(Default)]
struct Run {
    cells: Cells,
    /// The results of the flow's calls so far.
    results: Vec<i64>,
    replayed: usize,
    /// The changes that the flow has made: each cell and the argument.
    changes: Changes,
    /// The number of atomic steps around the current call.
    depth: usize,
    has_stepped: bool,
    is_stopped: bool,
}

impl Run {
    fn begin(&mut self) {
        self.stop_between_steps();
        self.depth += 1;
    }

    fn step(&mut self, cell: usize, by: Option<i64>, change: impl FnOnce(&mut i64)) -> i64 {
        if self.replayed == self.results.len() {
            self.stop_between_steps();
            self.has_stepped = true;
            change(&mut self.cells[cell]);
            self.results.push(self.cells[cell]);
        }
        self.replayed += 1;
        self.changes.extend(by.map(|by| (cell, by)));
        self.results[self.replayed - 1]
    }

    fn stop_between_steps(&mut self) {
        if self.is_stopped || (self.depth == 0 && self.has_stepped) {
            self.is_stopped = true;
            std::panic::resume_unwind(Box::new("the next step is another run's"));
        }
    }
}

/// A route and the number that the request has in its path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowStart {
    pub(crate) route: usize,
    pub(crate) number: i64,
}

/// The changes of one flow, in order: each cell and the argument of the call.
type Changes = Vec<(usize, i64)>;

/// The cells at the end and the changes that each flow has made.
type Ending = (Cells, [Changes; 2]);

/// A flow that has made some of its steps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Progress {
    flow: FlowStart,
    results: Vec<i64>,
    changes: Changes,
    is_done: bool,
}

impl Progress {
    fn new(flow: FlowStart) -> Progress {
        Progress { flow, results: Vec::new(), changes: Vec::new(), is_done: false }
    }

    /// Runs the flow's next step.
    fn step(&mut self, program: &Program, library: &Library, cells: &mut Cells) {
        let results = std::mem::take(&mut self.results);
        RUN.set(Run { cells: *cells, results, ..Run::default() });
        let mut evaluator = Evaluator::new(program, library).expect("the cells can be made");
        let _ = evaluator.run(0, self.flow.route, vec![Value::Int(self.flow.number)]);
        let run = RUN.take();
        (self.results, self.changes, *cells) = (run.results, run.changes, run.cells);
        self.is_done = !run.is_stopped;
    }
}

/// Returns the largest number of calls on cells that one of the flows makes alone.
pub(crate) fn length(program: &Program, library: &Library, flows: [FlowStart; 2], cells: Cells) -> usize {
    let lengths = flows.map(|flow| {
        let (mut cells, mut flow) = (cells, Progress::new(flow));
        while !flow.is_done {
            flow.step(program, library, &mut cells);
        }
        flow.results.len()
    });
    lengths.into_iter().max().unwrap_or_default()
}

/// Returns whether two flows can end as in neither serial order.
pub(crate) fn is_unserialisable(program: &Program, library: &Library, flows: [FlowStart; 2], cells: Cells) -> bool {
    let serial = [[0, 1], [1, 0]].map(|order| {
        let (mut cells, mut flows) = (cells, flows.map(Progress::new));
        for index in order {
            while !flows[index].is_done {
                flows[index].step(program, library, &mut cells);
            }
        }
        (cells, flows.map(|flow| flow.changes))
    });
    !endings(program, library, flows, cells).is_subset(&BTreeSet::from(serial))
}

fn endings(program: &Program, library: &Library, flows: [FlowStart; 2], cells: Cells) -> BTreeSet<Ending> {
    let mut endings = BTreeSet::new();
    let mut open = vec![(cells, flows.map(Progress::new))];
    let mut seen = BTreeSet::new();
    while let Some((cells, flows)) = open.pop() {
        if flows.iter().all(|flow| flow.is_done) {
            endings.insert((cells, flows.clone().map(|flow| flow.changes)));
        }
        for index in (0..2).filter(|index| !flows[*index].is_done) {
            let (mut cells, mut flows) = (cells, flows.clone());
            flows[index].step(program, library, &mut cells);
            if seen.insert((cells, flows.clone())) {
                open.push((cells, flows));
            }
        }
    }
    endings
}

/// Returns the fixture's library with the cells.
pub(crate) fn library() -> Library {
    let mut library = fixture::library();
    library.add(cell::cell()).expect("no other module is called `cell`");
    library
}
