//! The lost-update lint against all interleavings of two flows, on generated programs.
//!
//! The oracle: two flows can make changes, or leave values, as in neither serial order. Generated flows change a value
//! by `add` where it depends on nothing and mostly by `set` where it does, because independent changes commute, as the lint
//! assumes, and dependent ones do not, unless they are marked `commutes` as `add` is.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod interleaving;

use std::fmt::Write as _;

use interleaving::{CELLS, Cells, FlowStart, OUTSIDE, is_unserialisable, length, library};
use test_support::generator::Generator;
use weir::Library;
use weir_syntax::{SourceFile, Sources, Style, render};

/// A generator of flows that read, decide by, and change three cells.
struct Flows {
    random: Generator,
    text: String,
    /// The number of variables in scope.
    variables: usize,
    /// The number of them that may be used: within an atomic step, those from before it, as a change that depends on a
    /// read of its own step need not commute.
    usable: Option<usize>,
    /// True if the flow may have ended before, so that later changes depend on a read.
    may_have_ended: bool,
    /// The uses of cells that may still be generated.
    uses: usize,
    /// The cells that may be used here: within an atomic step, those that it holds.
    cells: &'static [usize],
    /// True if the program uses the cell [`OUTSIDE`] by functions that a constraint is bound to, and not as a shared value.
    has_constraint: bool,
}

const ALL_CELLS: &[usize] = &[0, 1, 2];

impl Flows {
    fn program(seed: u64) -> String {
        let mut flows = Flows {
            random: Generator::new(seed),
            text: String::new(),
            variables: 0,
            usable: None,
            may_have_ended: false,
            uses: 0,
            cells: ALL_CELLS,
            has_constraint: false,
        };
        flows.has_constraint = flows.random.below(2) == 0;
        flows.text.push_str("use cell, http\n\n");
        for cell in (0..CELLS).filter(|cell| *cell != OUTSIDE || !flows.has_constraint) {
            writeln!(flows.text, "shared c{cell} = cell.new({cell})").unwrap();
        }
        if flows.has_constraint {
            let bindings = "cell.set_outside, cell.add_outside, read cell.read_outside";
            writeln!(flows.text, "constraint c{OUTSIDE} on {bindings}").unwrap();
        }
        flows
            .text
            .push_str("\nfn few(n: Int) -> Result(Int) {\n  if c0.get() > n { fail(\"many\") }\n  Ok(c1.get())\n}\n");
        let now = flows.get(2);
        writeln!(flows.text, "\nfn least(n: Int) -> Int {{\n  let now = {now}\n  if now < n {{ return n }}\n  now\n}}")
            .unwrap();
        flows.text.push_str("\nservice s on http(port: 1) {\n");
        for route in ["a", "b"] {
            writeln!(flows.text, "  get \"/{route}/{{k}}\" (k: Int) {{").unwrap();
            (flows.variables, flows.may_have_ended) = (0, false);
            flows.uses = 3 + flows.random.below(3);
            flows.block(2, false);
            flows.text.push_str("    http.text(\"\")\n  }\n");
        }
        // Another flow changes every cell, so that no read is of a constant.
        flows.text.push_str("  get \"/all/{k}\" (k: Int) {\natomic c0, c1, c2 {\ncell.begin()\n");
        let adds = ALL_CELLS.iter().map(|cell| flows.change_of(*cell, "add", "k") + "\n").collect::<String>();
        writeln!(flows.text, "{adds}cell.end()\n}}\nhttp.text(\"\")\n}}\n}}").unwrap();
        flows.text
    }

    /// Writes statements; `guarded` ones run under a condition.
    fn block(&mut self, depth: usize, guarded: bool) {
        let outer = self.variables;
        for _ in 0..1 + self.random.below(4) {
            if self.uses > 0 {
                self.statement(depth, guarded);
            }
        }
        self.variables = outer;
    }

    fn statement(&mut self, depth: usize, guarded: bool) {
        let cell = self.cells[self.random.below(self.cells.len())];
        let number = ["k", "k + 1", "3 - k", "k * 2"][self.random.below(4)];
        let outside = self.usable.is_none();
        match (self.random.below(12), self.variable()) {
            (0 | 1, _) => self.bind(&self.get(cell)),
            (2, _) if outside => self.bind(&format!("few({number})?")),
            (3, _) if outside => self.bind(&format!("few({number}) else {{ return http.text(\"\") }}")),
            (4, _) if outside => self.bind(&format!("least({number})")),
            (5, Some(variable)) => self.change_dependent(cell, &format!("{variable} + {number}")),
            (6, Some(variable)) => self.change_dependent(cell, &format!("{variable} * 2")),
            (8, Some(variable)) => self.change(&format!("if {variable} > {number} {{ return http.text(\"\") }}")),
            (9, Some(variable)) if depth > 0 => self.branch(depth, &variable, number),
            (10, _) if depth > 0 => self.repeat(depth, guarded),
            (11, _) if outside && depth > 0 => self.step(depth, guarded),
            _ if guarded || self.may_have_ended => self.change_dependent(cell, number),
            _ => self.change(&self.change_of(cell, "add", number)),
        }
    }

    fn get(&self, cell: usize) -> String {
        if self.is_outside(cell) { "cell.read_outside()".to_owned() } else { format!("c{cell}.get()") }
    }

    fn change_of(&self, cell: usize, verb: &str, number: &str) -> String {
        if self.is_outside(cell) {
            format!("cell.{verb}_outside({number})")
        } else {
            format!("c{cell}.{verb}({number})")
        }
    }

    /// Writes a change that depends on a read: mostly one that does not commute. Functions without a shared value are not marked.
    fn change_dependent(&mut self, cell: usize, number: &str) {
        let adds = self.random.below(3) == 0 && !self.is_outside(cell);
        self.change(&self.change_of(cell, if adds { "add" } else { "set" }, number));
    }

    fn is_outside(&self, cell: usize) -> bool {
        self.has_constraint && cell == OUTSIDE
    }

    fn variable(&mut self) -> Option<String> {
        let usable = self.usable.unwrap_or(self.variables);
        (usable > 0).then(|| format!("v{}", self.random.below(usable)))
    }

    fn bind(&mut self, value: &str) {
        self.may_have_ended |= value.starts_with("few");
        writeln!(self.text, "let v{} = {value}", self.variables).unwrap();
        self.variables += 1;
        self.uses = self.uses.saturating_sub(1);
    }

    fn change(&mut self, call: &str) {
        self.may_have_ended |= call.starts_with("if");
        writeln!(self.text, "{call}").unwrap();
        self.uses = self.uses.saturating_sub(1);
    }

    fn branch(&mut self, depth: usize, variable: &str, number: &str) {
        let (begin, middle, end) = match self.random.below(2) {
            0 => (format!("if {variable} > {number} {{\n"), "()\n} else {\n", "()\n}\n"),
            _ => (format!("match {variable} > {number} {{\ntrue => {{\n"), "()\n}\nfalse => {\n", "()\n}\n}\n"),
        };
        self.text.push_str(&begin);
        self.block(depth - 1, true);
        self.text.push_str(middle);
        self.block(depth - 1, true);
        self.text.push_str(end);
    }

    fn repeat(&mut self, depth: usize, guarded: bool) {
        self.text.push_str("for x in [1, 2] {\n");
        self.block(depth - 1, guarded);
        self.text.push_str("()\n}\n");
    }

    fn step(&mut self, depth: usize, guarded: bool) {
        let held: &[usize] = [&[0, 1][..], &[1, 2], &[2], ALL_CELLS][self.random.below(4)];
        let names: Vec<String> = held.iter().map(|cell| format!("c{cell}")).collect();
        writeln!(self.text, "atomic {} {{\ncell.begin()", names.join(", ")).unwrap();
        let outer = std::mem::replace(&mut self.cells, held);
        self.usable = Some(self.variables);
        self.block(depth - 1, guarded);
        (self.cells, self.usable) = (outer, None);
        self.text.push_str("cell.end()\n}\n");
    }
}

/// Returns the program and its rendered warnings.
fn compiled(text: &str, library: &Library) -> (weir_ir::expr::Program, String) {
    let mut sources = Sources::new();
    let file = SourceFile::new("case.weir", text);
    let source = sources.add(file.clone());
    let compiled = weir_compile::compile(source, &file, library);
    let drawn: Vec<_> = compiled.diagnostics.iter().map(|found| render(&sources, found, Style::Plain)).collect();
    let program = compiled.expr.unwrap_or_else(|| panic!("{}\n{text}", drawn.join("\n")));
    (program, drawn.join("\n\n"))
}

/// The largest number of calls of a flow: more have too many interleavings for a test.
const STEPS_MAX: usize = 5;

/// The values that the cells begin with.
const BEGINNINGS: [Cells; 4] = [[0, 0, 0], [1, 2, 3], [3, 1, 2], [2, 3, 1]];

/// The numbers of the two requests.
const NUMBERS: [[i64; 2]; 4] = [[1, 2], [3, 1], [0, 2], [2, 2]];

/// Returns all pairs of flows and what the cells begin with.
fn cases() -> impl Iterator<Item = ([FlowStart; 2], Cells)> {
    let routes = [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]];
    let numbered = routes.into_iter().flat_map(|routes| NUMBERS.map(|numbers| (routes, numbers)));
    let flows = numbered.map(|(routes, numbers)| [0, 1].map(|of| FlowStart { route: routes[of], number: numbers[of] }));
    flows.flat_map(|flows| BEGINNINGS.map(|cells| (flows, cells)))
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn the_lint_warns_of_every_fault_that_an_interleaving_shows_and_of_little_else() {
    let library = library();
    let (mut warned, mut faulty, mut false_alarms) = (0, 0, Vec::new());
    let from = number("WEIR_SEED", 0);
    for seed in from..from + number("WEIR_PROGRAMS", 100) {
        let text = Flows::program(seed);
        let (program, said) = compiled(&text, &library);
        if cases().any(|(flows, cells)| length(&program, &library, flows, cells) > STEPS_MAX) {
            continue;
        }
        let (warns, fault) =
            (said.contains("W0703"), cases().any(|(flows, cells)| is_unserialisable(&program, &library, flows, cells)));
        assert!(warns || !fault, "seed {seed}: no warning of\n{text}");
        warned += usize::from(warns);
        faulty += usize::from(fault);
        if warns && !fault {
            false_alarms.push(seed);
        }
    }
    println!("{warned} programs with warnings, {faulty} with faults, false alarms: {false_alarms:?}");
    assert!(false_alarms.len() * 10 <= warned, "{} false alarms of {warned}: {false_alarms:?}", false_alarms.len());
}
