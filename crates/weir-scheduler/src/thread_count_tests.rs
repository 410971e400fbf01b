//! The search for the number of threads on a simulated machine: it finds the number, stays, and follows the load.
//!
//! Everything follows from a seed: the shape of the throughput, its noise, the length of transitions, and the times
//! when other processes take a part of the machine.

use super::*;

/// The number of periods in which the number has to be found if there are at most [`THREADS_FEW`].
const FOUND: usize = 20;
/// The largest number of threads that counts as few.
const THREADS_FEW: usize = 4;
/// The number of periods in which the number has to be found if there may be more threads.
const FOUND_OF_MANY: usize = 40;

/// The number of machines that each test simulates.
const SEEDS: u64 = 1_000;

/// A pseudo-random number generator.
struct TestRandom(u64);

impl TestRandom {
    /// Returns a number from 0 up to 1, exclusively.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    /// Returns a number of an approximate standard normal distribution.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// The shape of throughput as a function of the number of threads.
#[derive(Clone, Copy, Debug)]
enum ThroughputShape {
    /// Rises with each thread up to `best`, and falls by a fraction with each further one.
    Peak { best: usize, loss: f64 },
    /// Rises ever more slowly: a fraction of the work is serial (Amdahl's law).
    Amdahl { serial: f64 },
    /// Queues cost so much more than the work that a second thread changes throughput by this factor.
    Cliff { factor: f64 },
    /// One thread can do everything that arrives.
    Flat,
    /// An item takes `work` on one thread, `queue` more if there are queues, and `each` more for each further thread.
    Work { work: f64, queue: f64, each: f64 },
}

impl ThroughputShape {
    fn at(self, threads: usize) -> f64 {
        let count = threads as f64;
        match self {
            ThroughputShape::Peak { best, loss } => {
                threads.min(best) as f64 * (1.0 - loss * threads.saturating_sub(best) as f64).max(0.1)
            }
            ThroughputShape::Amdahl { serial } => 1.0 / (serial + (1.0 - serial) / count),
            ThroughputShape::Cliff { factor } => {
                if threads == 1 {
                    1.0
                } else {
                    factor
                }
            }
            ThroughputShape::Flat => 1.0,
            ThroughputShape::Work { work, queue, each } => {
                let queue = if threads == 1 { 0.0 } else { queue };
                1.0 / (work / count + queue + each * (count - 1.0))
            }
        }
    }

    fn most(self, threads_max: usize) -> f64 {
        (1..=threads_max).map(|threads| self.at(threads)).fold(0.0, f64::max)
    }

    fn drawn(random: &mut TestRandom, threads_max: usize) -> ThroughputShape {
        match random.below(5) {
            0 | 1 => {
                ThroughputShape::Peak { best: 1 + random.below(threads_max), loss: [0.0, 0.1, 0.3][random.below(3)] }
            }
            2 => ThroughputShape::Amdahl { serial: random.unit() * 0.3 },
            3 => ThroughputShape::Cliff { factor: 0.04 + random.unit() * 0.8 },
            _ => ThroughputShape::Flat,
        }
    }
}

/// A machine under a load.
struct Simulated {
    shape: ThroughputShape,
    scale: f64,
    /// The standard deviation of a period.
    noise: f64,
    /// The fraction of a period after a change that still has the old throughput.
    transition: f64,
    /// The probability that other processes come, and the fraction of the machine that they take.
    others: (f64, f64),
    /// The number of periods for which they stay.
    staying: usize,
    last: f64,
    threads: usize,
    random: TestRandom,
}

impl Simulated {
    fn new(shape: ThroughputShape, seed: u64) -> Self {
        let random = TestRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (noise, transition, others) = (0.01, 0.0, (0.0, 0.0));
        Simulated { shape, scale: 1_000.0, noise, transition, others, staying: 0, last: 0.0, threads: 0, random }
    }

    /// Returns the throughput of a period with this number of threads.
    fn period(&mut self, threads: usize) -> f64 {
        let changed = std::mem::replace(&mut self.threads, threads) != threads;
        let now = self.shape.at(threads) * self.scale;
        let slow = if changed { self.transition } else { 0.0 };
        let mixed = std::mem::replace(&mut self.last, now) * slow + now * (1.0 - slow);
        if self.staying == 0 && self.random.unit() < self.others.0 {
            self.staying = 1 + self.random.below(8);
        }
        let left = if self.staying > 0 { 1.0 - self.others.1 } else { 1.0 };
        self.staying = self.staying.saturating_sub(1);
        mixed * left * (1.0 + self.noise * self.random.normal()).max(0.01)
    }

    fn run(&mut self, elastic: &mut ThreadCountController, periods: usize) -> Vec<usize> {
        (0..periods)
            .map(|_| {
                let throughput = self.period(elastic.threads());
                elastic.observe(throughput, usize::MAX)
            })
            .collect()
    }
}

fn of(threads_max: usize) -> ThreadCountController {
    ThreadCountController::new(ElasticSettings { threads_min: 1, threads_max, sensitivity: 0.05 })
}

fn changes(thread_counts: &[usize]) -> usize {
    thread_counts.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn the_number_is_found_within_twenty_periods_and_stays() {
    let mut poor = 0;
    for seed in 0..SEEDS {
        let mut random = TestRandom(seed ^ 0x5eed);
        let threads_max = [1, 2, 2, 3, 4, 8, 16][random.below(7)];
        let mut machine = Simulated::new(ThroughputShape::drawn(&mut random, threads_max), seed);
        (machine.noise, machine.transition) = (random.unit() * 0.04, random.unit());
        let (shape, mut elastic) = (machine.shape, of(threads_max));
        let within = if threads_max > THREADS_FEW { FOUND_OF_MANY } else { FOUND };
        let mut thread_counts = machine.run(&mut elastic, within);
        let found = elastic.threads();
        thread_counts.extend(machine.run(&mut elastic, 300));
        assert_eq!(
            changes(&thread_counts[within - 1..]),
            0,
            "{shape:?}, seed {seed}, noise {}: {thread_counts:?}",
            machine.noise
        );
        let (got, most) = (shape.at(found), shape.most(threads_max));
        assert!(got > most * 0.75, "{shape:?}, seed {seed}: {found} has {got} of {most}: {thread_counts:?}");
        poor += u64::from(got < most * 0.9);
    }
    // Noise that is nearly as large as the difference between two numbers may hide it.
    assert!(poor * 50 < SEEDS, "{poor} of {SEEDS} machines are left a tenth below their best threads");
}

#[test]
fn processes_that_take_a_part_of_the_machine_for_a_while_do_not_move_it() {
    let (mut moved, mut periods) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = TestRandom(seed ^ 0x0735);
        let shape =
            [ThroughputShape::Peak { best: 2, loss: 0.0 }, ThroughputShape::Cliff { factor: 0.04 }][random.below(2)];
        let mut machine = Simulated::new(shape, seed);
        machine.others = (0.05, 0.1 + random.unit() * 0.25);
        let mut elastic = of(2);
        machine.run(&mut elastic, FOUND);
        let thread_counts = machine.run(&mut elastic, 300);
        moved += changes(&thread_counts);
        periods += thread_counts.len();
    }
    assert!(moved * 10_000 < periods, "{moved} changes in {periods} periods");
}

#[test]
fn a_noisy_machine_is_not_left_below_its_best_number() {
    for seed in 1..=200 {
        let (mut elastic, mut machine) = (of(2), Simulated::new(ThroughputShape::Peak { best: 2, loss: 0.0 }, seed));
        machine.noise = 0.12;
        machine.run(&mut elastic, FOUND);
        let thread_counts = machine.run(&mut elastic, 200);
        let right = thread_counts.iter().filter(|threads| **threads == 2).count();
        assert!(right > 180, "seed {seed}: {right} of 200 periods in {thread_counts:?}");
    }
}

#[test]
fn it_follows_the_load() {
    for seed in 0..SEEDS {
        let mut random = TestRandom(seed ^ 0x10ad);
        let threads_max = [2, 4, 8][random.below(3)];
        let (work, queue, each) = (0.1 + random.unit() * 10.0, random.unit(), random.unit() * 0.1);
        let mut machine = Simulated::new(ThroughputShape::Work { work, queue, each }, seed);
        machine.noise = random.unit() * 0.02;
        let mut elastic = of(threads_max);
        machine.run(&mut elastic, 30);
        let factor = [0.02, 0.1, 0.3, 3.0, 10.0, 50.0][random.below(6)];
        machine.shape = ThroughputShape::Work { work: work * factor, queue, each };
        let later = machine.run(&mut elastic, DEVIATIONS_MAX + FOUND);
        let (got, most) = (machine.shape.at(elastic.threads()), machine.shape.most(threads_max));
        assert!(got > most * 0.85, "seed {seed}: {got} of {most} after {later:?}");
        assert_eq!(changes(&machine.run(&mut elastic, 100)), 0, "seed {seed}");
    }
}

#[test]
fn one_odd_period_is_no_change_of_load() {
    let (mut elastic, mut machine) = (of(8), Simulated::new(ThroughputShape::Peak { best: 4, loss: 0.2 }, 1));
    machine.run(&mut elastic, 40);
    assert_eq!(elastic.observe(10.0, 8), 4);
    assert_eq!(machine.run(&mut elastic, 20), vec![4; 20]);
}

#[test]
fn a_load_that_comes_back_is_remembered() {
    let [mut first, mut second] = [1, 2].map(|seed| Simulated::new(ThroughputShape::Peak { best: 3, loss: 0.2 }, seed));
    (second.scale, second.shape) = (100.0, ThroughputShape::Cliff { factor: 0.5 });
    let mut elastic = of(8);
    first.run(&mut elastic, 40);
    let between = second.run(&mut elastic, 40);
    assert_eq!(between.last(), Some(&1), "{between:?}");
    let back = first.run(&mut elastic, 20);
    assert_eq!((changes(&back), back.last()), (1, Some(&3)), "with a memory there is nothing to look for: {back:?}");
}

#[test]
fn a_load_that_one_thread_can_do_needs_no_more() {
    let (mut elastic, mut machine) = (of(2), Simulated::new(ThroughputShape::Peak { best: 2, loss: 0.0 }, 1));
    machine.run(&mut elastic, 20);
    assert_eq!(elastic.threads(), 2);
    // Less arrives than one thread can do.
    (machine.shape, machine.scale) = (ThroughputShape::Flat, 800.0);
    let later = machine.run(&mut elastic, 20);
    assert_eq!(later.last(), Some(&1), "{later:?}");
}

#[test]
fn a_busy_machine_is_not_asked_for_more_until_it_has_processors_again() {
    let mut elastic = of(8);
    assert!((1..50).all(|round| elastic.observe(f64::from(round) * 1_000.0, 1) == 1));
    let mut machine = Simulated::new(ThroughputShape::Peak { best: 8, loss: 0.0 }, 1);
    for _ in 0..20 {
        let throughput = machine.period(elastic.threads());
        assert!(elastic.observe(throughput, 3) <= 3);
    }
    assert_eq!(elastic.threads(), 3);
    let thread_counts = machine.run(&mut elastic, 20);
    assert_eq!(thread_counts.last(), Some(&8), "{thread_counts:?}");
}
