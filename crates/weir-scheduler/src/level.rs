//! How many threads: the trust-and-trend algorithm of the Streams paper (§4.2, Figures 7 and 8), with a memory.
//!
//! A *level* is a number of threads. After every period the throughput is recorded for the level at which it was seen.
//! A *trend* is a difference of more than the sensitivity between neighbouring levels, and a record is *trusted* until
//! the load changes. The level rises while that pays, falls while that costs nothing, and thus settles on the lowest one
//! that does better than the one below it and no worse than the one above.
//!
//! Differences to the paper:
//! * *Memory*, which it leaves as future work. When the load changes, what was learned is not thrown away but put aside;
//!   when a load comes back, which shows in the throughput of the current level, so does what was learned.
//! * *Noise*. The paper compares single periods, by a sensitivity of 5 %. Here a level's record is the mean of its periods;
//!   the noisier they are, the more of them it takes until it is trusted, and a trend is more than the sensitivity and more
//!   than what noise leaves open. Only the fourth period in a row that deviates is a change in load. A fixed threshold
//!   takes the noise of a small shared machine for an endless change of load, and a wide one stops below the best level.

/// How the number of threads is found.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The lowest level.
    pub level_min: usize,
    /// The highest level: at most the number of processors.
    pub level_max: usize,
    /// Relative differences of throughput up to this one are no trend, 0 to 1. The paper's SENS, 0.05.
    pub sensitivity: f64,
}

/// Several times the usual deviation is a deviation that means something.
const NOISE_FACTOR: f64 = 3.0;
/// The difference of two means is a trend beyond so many times what noise leaves open.
const TREND_FACTOR: f64 = 1.5;
/// However noisy it is, a record of so many periods is trusted.
const TRUSTED_MAX: u32 = 4;
/// A record is the mean of about so many periods.
const MEAN_PERIODS: u32 = 8;
/// How much of the estimate of the noise a new deviation makes up.
const NOISE_WEIGHT: f64 = 0.1;
/// However noisy it is, a difference of this much is a trend.
const SENSITIVITY_MAX: f64 = 0.25;
/// A deviation is a change of load when it is seen so many periods in a row: others on a shared machine take its processors
/// for some tenths of a second, and to look for the level anew takes longer than that.
const DEVIATIONS_MAX: u32 = 4;
/// So many loads are remembered.
const MEMORY_MAX: usize = 8;

/// What is known of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Record {
    /// The mean of its periods.
    throughput: f64,
    /// How many, up to [`MEAN_PERIODS`].
    periods: u32,
}

/// Finds the number of threads from the throughput of each period.
#[derive(Clone, Debug)]
pub struct Elasticity {
    settings: Settings,
    /// By level; the first is not used.
    records: Vec<Record>,
    level: usize,
    /// The usual relative deviation between two periods at one level.
    noise: f64,
    deviations: u32,
    memory: Vec<Vec<Record>>,
}

impl Elasticity {
    /// Begins at the lowest level.
    ///
    /// # Panics
    /// Panics where the levels are not `1 <= level_min <= level_max`.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        assert!(1 <= settings.level_min && settings.level_min <= settings.level_max, "levels of {settings:?}");
        let records = vec![Record::default(); settings.level_max + 2];
        Elasticity { level: settings.level_min, settings, records, noise: 0.0, deviations: 0, memory: Vec::new() }
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> usize {
        self.level
    }

    /// Takes the throughput of the period that has just ended, in any unit, and gives the level of the next one.
    /// `may_raise` is false where the machine has no processor to spare (the paper's `isCPUUsageAcceptable`).
    pub fn next(&mut self, throughput: f64, may_raise: bool) -> usize {
        if self.deviates(throughput) {
            self.deviations += 1;
            if self.deviations < DEVIATIONS_MAX {
                return self.level;
            }
            self.change_load(throughput);
        }
        self.deviations = 0;
        self.record(throughput);
        if !self.trusts(self.level) {
            return self.level;
        }
        let (below, above) = (self.trend(self.level - 1, self.level), self.trend(self.level, self.level + 1));
        let unknown_above = self.level < self.settings.level_max && !self.trusts(self.level + 1);
        let rise = above || (unknown_above && (below || self.level == self.settings.level_min));
        if rise {
            self.level += usize::from(may_raise);
        } else if !below {
            self.level = (self.level - 1).max(self.settings.level_min);
        }
        self.level
    }

    fn sensitivity(&self) -> f64 {
        (self.noise * NOISE_FACTOR).clamp(self.settings.sensitivity, SENSITIVITY_MAX)
    }

    fn deviates(&self, throughput: f64) -> bool {
        let record = self.records[self.level];
        self.trusts(self.level) && relative(throughput, record.throughput) > self.sensitivity()
    }

    /// Puts what is known aside, and takes up what fits the new load.
    fn change_load(&mut self, throughput: f64) {
        let known = std::mem::replace(&mut self.records, vec![Record::default(); self.settings.level_max + 2]);
        let (level, sensitivity) = (self.level, self.sensitivity());
        let fits = |records: &Vec<Record>| {
            records[level].periods > 0 && relative(throughput, records[level].throughput) <= sensitivity
        };
        if let Some(at) = self.memory.iter().position(fits) {
            self.records = self.memory.remove(at);
        }
        if known.iter().filter(|record| record.periods > 0).count() > 1 {
            self.memory.push(known);
        }
        if self.memory.len() > MEMORY_MAX {
            self.memory.remove(0);
        }
    }

    fn record(&mut self, throughput: f64) {
        let record = &mut self.records[self.level];
        if record.periods > 0 {
            let deviation = relative(throughput, record.throughput);
            self.noise += NOISE_WEIGHT * (deviation - self.noise);
        }
        record.periods = (record.periods + 1).min(MEAN_PERIODS);
        record.throughput += (throughput - record.throughput) / f64::from(record.periods);
    }

    /// Whether a level's record has so many periods that what noise leaves open is no more than the sensitivity.
    fn trusts(&self, level: usize) -> bool {
        let within = (self.settings.level_min..=self.settings.level_max).contains(&level);
        let open = self.noise * TREND_FACTOR / self.settings.sensitivity.max(f64::EPSILON);
        within && f64::from(self.records[level].periods) >= (open * open).clamp(1.0, f64::from(TRUSTED_MAX))
    }

    /// Whether throughput rises from one level to the other.
    fn trend(&self, from: usize, to: usize) -> bool {
        if !self.trusts(from) || !self.trusts(to) {
            return false;
        }
        let (from, to) = (self.records[from], self.records[to]);
        let open = (1.0 / f64::from(from.periods) + 1.0 / f64::from(to.periods)).sqrt();
        let threshold = (self.noise * TREND_FACTOR * open).max(self.settings.sensitivity);
        to.throughput > from.throughput * (1.0 + threshold)
    }
}

fn relative(a: f64, b: f64) -> f64 {
    if b == 0.0 { if a == 0.0 { 0.0 } else { f64::INFINITY } } else { (a - b).abs() / b }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose throughput rises up to `best` and then falls by `loss` for each level.
    struct Curve {
        best: usize,
        loss: f64,
        scale: f64,
        noise: f64,
        random: u64,
    }

    impl Curve {
        fn new(best: usize, loss: f64) -> Self {
            Curve { best, loss, scale: 1_000.0, noise: 0.02, random: 1 }
        }

        fn at(&mut self, level: usize) -> f64 {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (self.random >> 33) as f64 / (1u64 << 31) as f64 * 2.0 - 1.0;
            let gain = level.min(self.best) as f64;
            let lost = 1.0 - self.loss * level.saturating_sub(self.best) as f64;
            gain * lost.max(0.1) * self.scale * (1.0 + self.noise * uniform)
        }
    }

    fn levels(elasticity: &mut Elasticity, curve: &mut Curve, periods: usize) -> Vec<usize> {
        (0..periods)
            .map(|_| {
                let throughput = curve.at(elasticity.level());
                elasticity.next(throughput, true)
            })
            .collect()
    }

    fn of(level_max: usize) -> Elasticity {
        Elasticity::new(Settings { level_min: 1, level_max, sensitivity: 0.05 })
    }

    #[test]
    fn it_finds_the_best_level_within_twenty_periods_and_stays() {
        for best in 1..=8 {
            for loss in [0.0, 0.1, 0.3] {
                let (mut elasticity, mut curve) = (of(16), Curve::new(best, loss));
                levels(&mut elasticity, &mut curve, 20);
                let later = levels(&mut elasticity, &mut curve, 200);
                let off = later.iter().filter(|level| level.abs_diff(best) > 1).count();
                let right = later.iter().filter(|&&level| level == best).count();
                assert!(off == 0 && right > 180, "best {best}, loss {loss}: {later:?}");
            }
        }
    }

    #[test]
    fn a_noisy_machine_is_not_left_below_its_best_level() {
        for seed in 1..=20 {
            let (mut elasticity, mut curve) = (of(2), Curve::new(2, 0.0));
            (curve.random, curve.noise) = (seed, 0.2);
            let levels = levels(&mut elasticity, &mut curve, 200);
            let right = levels[20..].iter().filter(|&&level| level == 2).count();
            assert!(right > 150, "seed {seed}: {right} of 180 periods in {levels:?}");
        }
    }

    #[test]
    fn one_odd_period_is_no_change_of_load() {
        let (mut elasticity, mut curve) = (of(8), Curve::new(4, 0.2));
        levels(&mut elasticity, &mut curve, 40);
        assert_eq!(elasticity.next(10.0, true), 4);
        assert_eq!(levels(&mut elasticity, &mut curve, 20), vec![4; 20]);
    }

    #[test]
    fn another_load_is_explored_anew() {
        let (mut elasticity, mut first, mut second) = (of(8), Curve::new(6, 0.2), Curve::new(2, 0.2));
        second.scale = 300.0;
        levels(&mut elasticity, &mut first, 40);
        let later = levels(&mut elasticity, &mut second, 40);
        assert_eq!(later.last(), Some(&2), "{later:?}");
    }

    #[test]
    fn a_load_that_comes_back_is_remembered() {
        let (mut elasticity, mut first, mut second) = (of(8), Curve::new(3, 0.2), Curve::new(3, 0.2));
        second.scale = 300.0;
        levels(&mut elasticity, &mut first, 40);
        levels(&mut elasticity, &mut second, 40);
        let back = levels(&mut elasticity, &mut first, 20);
        assert_eq!(back, vec![3; 20], "with a memory there is nothing to explore");
    }

    #[test]
    fn a_busy_machine_is_not_asked_for_more() {
        let mut elasticity = of(8);
        assert!((1..50).all(|round| elasticity.next(f64::from(round) * 1_000.0, false) == 1));
    }
}
