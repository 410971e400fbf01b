//! The measurement of one row, and how it is printed and written.

use bench_harness::median;
use serde_json::json;

use crate::BenchResult;
use crate::contender::{Contender, Runner};
use crate::rows::{Quantity, Row};

/// The figures of one row.
pub(crate) struct RowMeasurement {
    row: &'static Row,
    size: i64,
    /// For each contender its figure in every round: nanoseconds, or bytes in a single round. Empty if the language does
    /// not have the row.
    figures: Vec<Vec<f64>>,
}

impl RowMeasurement {
    /// Measures a row.
    pub(crate) fn new(row: &'static Row, contenders: &[Contender], rounds: usize, scale: f64) -> BenchResult<Self> {
        let size = ((row.size as f64 * scale) as i64).max(1);
        let start = |contender: &Contender| contender.has(row).then(|| contender.start(row, size)).transpose();
        let mut figures = vec![Vec::new(); contenders.len()];
        if row.quantity == Quantity::Memory {
            // One process at a time, so that no data is swapped out.
            for (figures, contender) in figures.iter_mut().zip(contenders) {
                figures.extend(start(contender)?.map(|runner| runner.data_bytes as f64));
            }
        } else {
            let mut runners = contenders.iter().map(start).collect::<BenchResult<Vec<_>>>()?;
            (0..rounds).try_for_each(|round| measure_round(row, round, &mut runners, &mut figures))?;
        }
        Ok(RowMeasurement { row, size, figures })
    }

    /// Prints the head of the table.
    pub(crate) fn print_head(contenders: &[Contender]) {
        print!("{:<16} {:>9} {:>12}", "row", "size", "weir");
        contenders[1..].iter().for_each(|contender| print!(" {:>14}", format!("/ {}", contender.name)));
        println!();
    }

    /// Prints the figure of Weir, and its ratio to each peer.
    pub(crate) fn print(&self, contenders: &[Contender]) {
        let own = median(self.figures[0].clone());
        let own = match self.row.quantity {
            Quantity::Time => format!("{:.1} ms", own / 1e6),
            Quantity::Memory => format!("{:.1} MB", own / 1e6),
        };
        print!("{:<16} {:>9} {own:>12}", self.row.name, self.size);
        for peer in 1..contenders.len() {
            print!(" {:>14}", self.ratio(peer).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")));
        }
        println!();
    }

    /// Returns the figures and ratios of all contenders.
    pub(crate) fn to_json(&self, contenders: &[Contender]) -> serde_json::Value {
        let figures = contenders.iter().zip(&self.figures).enumerate().filter(|(_, (_, figures))| !figures.is_empty());
        let contenders = figures.map(|(index, (contender, figures))| {
            let ratio = if index == 0 { None } else { self.ratio(index) };
            json!({ "name": contender.name, "median": median(figures.clone()), "rounds": figures, "weir_relative": ratio })
        });
        let unit = if self.row.quantity == Quantity::Time { "ns" } else { "bytes" };
        json!({ "row": self.row.name, "size": self.size, "unit": unit, "contenders": contenders.collect::<Vec<_>>() })
    }

    /// Returns the median of the ratios of Weir to a peer, each within a round.
    fn ratio(&self, peer: usize) -> Option<f64> {
        let ratios: Vec<f64> = self.figures[0].iter().zip(&self.figures[peer]).map(|(own, peer)| own / peer).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }
}

/// Runs every contender once, each round beginning with another one.
fn measure_round(row: &Row, round: usize, runners: &mut [Option<Runner>], figures: &mut [Vec<f64>]) -> BenchResult<()> {
    let mut result = None;
    for turn in 0..runners.len() {
        let at = (round + turn) % runners.len();
        let Some(runner) = &mut runners[at] else { continue };
        let measured = runner.round()?;
        figures[at].push(measured.nanos);
        let wanted = result.get_or_insert_with(|| measured.result.clone());
        if *wanted != measured.result {
            return Err(format!("{}: the results {wanted} and {} differ", row.name, measured.result).into());
        }
    }
    Ok(())
}
