//! Chart of the number of threads and the throughput over time, as in the paper's Figure 11, as SVG.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use bench_harness::results;
use weir_scheduler::{Scheduler, Work};

use crate::BenchResult;
use crate::family::GraphCase;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// The margins of the plot, with room for the title and the axis labels.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 56.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 48.0;
/// The number of parts of the throughput axis.
const PARTS: u32 = 4;
const BLUE: &str = "#2b6cb0";
const ORANGE: &str = "#c05621";
/// The time between two samples.
const EVERY: Duration = Duration::from_millis(50);

/// One sample.
struct ChartSample {
    seconds: f64,
    threads: usize,
    throughput: f64,
}

/// The samples of one run.
pub(crate) struct Samples {
    begin: Instant,
    /// The time by which the number of threads had to be found.
    settled: f64,
    samples: Vec<ChartSample>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Samples { begin: Instant::now(), settled: 0.0, samples: Vec::new() }
    }

    /// Takes samples for a while. `ports` is the number of ports that a tuple passes.
    pub(crate) fn watch<W: Work>(&mut self, scheduler: &Scheduler<W>, ports: usize, span: Duration) {
        let end = Instant::now() + span;
        // Tuples reach the sink in bursts, so that they are counted at every port.
        let tuples = || scheduler.pool_snapshots().iter().map(|pool| pool.items).sum::<u64>() as f64 / ports as f64;
        let mut last = (Instant::now(), tuples());
        while Instant::now() < end {
            std::thread::park_timeout(EVERY.min(end - Instant::now()));
            let now = (Instant::now(), tuples());
            let elapsed = (now.0 - last.0).as_secs_f64();
            self.samples.push(ChartSample {
                seconds: self.begin.elapsed().as_secs_f64(),
                threads: scheduler.pool_snapshots().iter().map(|pool| pool.threads).sum(),
                throughput: (now.1 - last.1) / elapsed,
            });
            last = now;
        }
    }

    /// Marks the time from which on the number of threads should stay.
    pub(crate) fn settled(&mut self) {
        self.settled = self.begin.elapsed().as_secs_f64();
    }

    /// Writes the chart.
    pub(crate) fn write(&self, case: GraphCase) -> BenchResult<()> {
        let name = format!("bench-operators-elastic-{}-{}.svg", case.family.name(), case.cost);
        fs::write(results::file(&name)?, self.svg(case)?)?;
        Ok(())
    }

    fn svg(&self, case: GraphCase) -> Result<String, std::fmt::Error> {
        let scale = Scale::of(&self.samples);
        let mut svg = String::new();
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(svg, r#"<rect width="100%" height="100%" fill="white"/>"#)?;
        let title = format!("{} of 1,000 operators at cost {}, elastic", case.family.name(), case.cost);
        writeln!(svg, r##"<text x="{LEFT}" y="22" font-size="14" fill="#222">{title}</text>"##)?;
        scale.axes(&mut svg)?;
        self.mark_settled(&mut svg, &scale)?;
        self.throughput(&mut svg, &scale)?;
        self.threads(&mut svg, &scale)?;
        writeln!(svg, "</svg>")?;
        Ok(svg)
    }

    fn mark_settled(&self, svg: &mut String, scale: &Scale) -> std::fmt::Result {
        let (x, y) = (scale.x(self.settled), HEIGHT - BOTTOM);
        writeln!(svg, r##"<path d="M{x:.1} {TOP}V{y}" stroke="#888" stroke-dasharray="4 3"/>"##)?;
        writeln!(svg, r##"<text x="{:.1}" y="{}" fill="#666">20 periods</text>"##, x + 4.0, TOP + 12.0)
    }

    fn throughput(&self, svg: &mut String, scale: &Scale) -> std::fmt::Result {
        write!(svg, r#"<polyline fill="none" stroke="{BLUE}" stroke-width="2" points=""#)?;
        for sample in &self.samples {
            write!(svg, "{:.1},{:.1} ", scale.x(sample.seconds), scale.y(sample.throughput / scale.throughput))?;
        }
        writeln!(svg, r#""/>"#)
    }

    /// Draws the threads as steps, because their number changes at once.
    fn threads(&self, svg: &mut String, scale: &Scale) -> std::fmt::Result {
        let y = |sample: &ChartSample| scale.y(sample.threads as f64 / scale.threads);
        let Some(first) = self.samples.first() else { return Ok(()) };
        write!(svg, r#"<path fill="none" stroke="{ORANGE}" stroke-width="2" d="M{LEFT} {:.1}"#, y(first))?;
        for sample in &self.samples {
            write!(svg, "V{:.1}H{:.1}", y(sample), scale.x(sample.seconds))?;
        }
        writeln!(svg, r#""/>"#)
    }
}

/// The values at the ends of the axes.
struct Scale {
    seconds: f64,
    throughput: f64,
    threads: f64,
}

impl Scale {
    fn of(samples: &[ChartSample]) -> Scale {
        Scale {
            seconds: samples.last().map_or(1.0, |sample| sample.seconds),
            throughput: round_up(samples.iter().map(|sample| sample.throughput).fold(1.0, f64::max)),
            threads: samples.iter().map(|sample| sample.threads).max().unwrap_or(0) as f64 + 1.0,
        }
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / self.seconds * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, share: f64) -> f64 {
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, svg: &mut String) -> std::fmt::Result {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for part in 0..=PARTS {
            let share = f64::from(part) / f64::from(PARTS);
            let (y, label) = (self.y(share), short(self.throughput * share));
            writeln!(svg, r##"<path d="M{LEFT} {y:.1}H{right}" stroke="#ddd"/>"##)?;
            writeln!(
                svg,
                r#"<text x="{}" y="{:.1}" text-anchor="end" fill="{BLUE}">{label}</text>"#,
                LEFT - 8.0,
                y + 4.0
            )?;
        }
        for threads in 0..=self.threads as usize {
            let y = self.y(threads as f64 / self.threads) + 4.0;
            writeln!(svg, r#"<text x="{}" y="{y:.1}" fill="{ORANGE}">{threads}</text>"#, right + 8.0)?;
        }
        for second in 0..=self.seconds as usize {
            let x = self.x(second as f64);
            writeln!(svg, r##"<path d="M{x:.1} {bottom}v5" stroke="#555"/>"##)?;
            writeln!(
                svg,
                r##"<text x="{x:.1}" y="{}" text-anchor="middle" fill="#555">{second} s</text>"##,
                bottom + 20.0
            )?;
        }
        writeln!(svg, r##"<path d="M{LEFT} {TOP}V{bottom}H{right}V{TOP}" fill="none" stroke="#555"/>"##)?;
        writeln!(svg, r#"<text x="{LEFT}" y="{}" fill="{BLUE}">tuples per second</text>"#, TOP - 8.0)?;
        writeln!(svg, r#"<text x="{right}" y="{}" text-anchor="end" fill="{ORANGE}">threads</text>"#, TOP - 8.0)
    }
}

/// Returns the next larger round number with four round parts.
fn round_up(number: f64) -> f64 {
    let power = 10f64.powf(number.log10().floor());
    let round = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0].map(|factor| factor * power);
    round.into_iter().find(|round| *round >= number).unwrap_or(number)
}

/// Formats a number in as few characters as possible.
fn short(number: f64) -> String {
    match number {
        1_000_000.0.. => format!("{} M", number / 1_000_000.0),
        1_000.0.. => format!("{} k", number / 1_000.0),
        _ => number.to_string(),
    }
}
