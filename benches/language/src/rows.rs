//! The rows of the benchmark: a program in all languages, and the size of its data.

use crate::BenchResult;

/// A program in all languages.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The program in Weir.
    pub(crate) program: &'static str,
    /// The number of elements, iterations or the like.
    pub(crate) size: i64,
    /// Quantity that the row measures.
    pub(crate) quantity: Quantity,
}

/// Quantity that a row measures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// The time of a round.
    Time,
    /// The resident memory of the data.
    Memory,
}

/// Defines the table of all rows.
macro_rules! rows {
    ($($quantity:ident $name:ident $size:literal;)+) => {
        pub(crate) const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            program: include_str!(concat!("../rows/", stringify!($name), ".weir")),
            size: $size,
            quantity: Quantity::$quantity,
        }),+];
    };
}

rows! {
    Time group 1_000_000;
    Time build_list 1_000_000;
    Time build_text 1_000_000;
    Time build_map 1_000_000;
    Time words 300_000;
    Time group_by 300_000;
    Time sort 200_000;
    Time json 30_000;
    Time csv 50_000;
    Time template 50_000;
    Time integer_loop 1_000_000;
    Time collatz 10_000;
    Time sieve 1_000_000;
    Time n_body 5_000;
    Time spectral_norm 100;
    Time mandelbrot 150;
    Time matrix 120;
    Time levenshtein 600;
    Memory memory_records 1_000_000;
    Memory memory_points 1_000_000;
    Memory memory_ints 1_000_000;
}

impl Row {
    /// Returns the row of this name.
    pub(crate) fn named(name: &str) -> BenchResult<&'static Row> {
        let names = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        let found = ROWS.iter().find(|row| row.name == name);
        found.ok_or_else(|| format!("there is no row {name:?}; the rows are {}", names()).into())
    }
}
