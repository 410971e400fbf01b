//! Measurement noise: the deviation of the throughput between periods in which nothing has changed.
//!
//! The estimate is robust: it is based on the median of the differences between consecutive periods with the same
//! number of threads. A burst, a change of the load or of the number of threads makes a few large differences, which do
//! not move the median.

use std::collections::VecDeque;

/// The number of differences that are kept. Chosen by judgement: the median of fewer would itself be noisy, of more it
/// would follow a change of the noise too slowly.
const DIFFERENCES_MAX: usize = 16;
/// The minimum number of differences for an estimate. Chosen by judgement: the smallest number whose median ignores one
/// outlier.
const DIFFERENCES_MIN: usize = 3;
/// The standard deviation of a normal distribution in units of the median difference between two samples: 1 / (0.6745
/// √2).
const DEVIATION_TO_MEDIAN: f64 = 1.048;

/// Estimate of the noise of one throughput.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasurementNoise {
    /// The throughput of the last period, unless the next one is not comparable with it.
    last: Option<f64>,
    /// Absolute differences of consecutive periods, relative to their mean.
    differences: VecDeque<f64>,
}

impl MeasurementNoise {
    /// Records the throughput of a period.
    pub(crate) fn record(&mut self, throughput: f64) {
        if let Some(last) = self.last.replace(throughput) {
            self.differences.push_back((throughput - last).abs() * 2.0 / (throughput + last).max(f64::MIN_POSITIVE));
        }
        if self.differences.len() > DIFFERENCES_MAX {
            self.differences.pop_front();
        }
    }

    /// Starts a new series: the next period is not compared with the last one.
    pub(crate) fn restart(&mut self) {
        self.last = None;
    }

    /// Returns the standard deviation of a period relative to its throughput, or 0 while it is unknown.
    pub(crate) fn deviation(&self) -> f64 {
        if self.differences.len() < DIFFERENCES_MIN {
            return 0.0;
        }
        median(self.differences.iter().copied()) * DEVIATION_TO_MEDIAN
    }
}

/// Returns the median: the upper one of an even number of values, 0 of none.
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
    fn a_new_series_is_not_compared_with_the_last() {
        let mut noise = MeasurementNoise::default();
        for throughput in [1.0, 2.0, 4.0, 8.0, 16.0] {
            noise.record(throughput);
            noise.restart();
        }
        assert_eq!(noise.deviation(), 0.0);
    }
}
