//! How much throughput differs from period to period though nothing has changed.
//!
//! The estimate is robust: of the differences between periods that follow each other at one level, the median counts. A
//! burst, a change of level or of load makes a few large ones, and does not move it.

use std::collections::VecDeque;

/// So many differences are kept.
const DIFFERENCES_MAX: usize = 16;
/// With fewer of them, nothing is known.
const DIFFERENCES_MIN: usize = 3;
/// The standard deviation of a normal distribution, to the median of the differences between two draws from it:
/// 1 / (0.6745 √2).
const DEVIATION_TO_MEDIAN: f64 = 1.048;

/// The noise of a throughput.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasurementNoise {
    last: Option<f64>,
    /// Relative to the throughput.
    differences: VecDeque<f64>,
}

impl MeasurementNoise {
    /// Takes the throughput of a period.
    pub(crate) fn record(&mut self, throughput: f64) {
        if let Some(last) = self.last.replace(throughput) {
            self.differences.push_back((throughput - last).abs() * 2.0 / (throughput + last).max(f64::MIN_POSITIVE));
        }
        if self.differences.len() > DIFFERENCES_MAX {
            self.differences.pop_front();
        }
    }

    /// What comes now cannot be compared with what came before.
    pub(crate) fn restart(&mut self) {
        self.last = None;
    }

    /// The standard deviation of a period, relative to its throughput; 0 as long as it is not known.
    pub(crate) fn deviation(&self) -> f64 {
        if self.differences.len() < DIFFERENCES_MIN {
            return 0.0;
        }
        median(self.differences.iter().copied()) * DEVIATION_TO_MEDIAN
    }
}

/// The median; of an even number the upper one, and of none 0.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_no_noise() {
        let mut noise = MeasurementNoise::default();
        for period in 0..16 {
            noise.record(if period == 8 { 10.0 } else { 100.0 + f64::from(period % 2) });
        }
        assert!((0.009..0.012).contains(&noise.deviation()), "{noise:?}");
    }

    #[test]
    fn nothing_is_known_of_two_periods() {
        let mut noise = MeasurementNoise::default();
        [1.0, 2.0, 3.0].into_iter().for_each(|throughput| noise.record(throughput));
        assert_eq!(noise.deviation(), 0.0);
    }

    #[test]
    fn what_is_cut_is_not_compared() {
        let mut noise = MeasurementNoise::default();
        for throughput in [1.0, 2.0, 4.0, 8.0, 16.0] {
            noise.record(throughput);
            noise.restart();
        }
        assert_eq!(noise.deviation(), 0.0);
    }
}
