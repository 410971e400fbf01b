//! The number of threads and the throughput over time, as in the paper's Figure 11, drawn as SVG.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use weir_scheduler::{Scheduler, Work};

use crate::Outcome;
use crate::family::Case;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 40.0;
/// How often a sample is taken.
const EVERY: Duration = Duration::from_millis(50);

/// What was seen at one time.
struct Sample {
    seconds: f64,
    threads: usize,
    throughput: f64,
}

/// What was seen over time.
pub(crate) struct Samples {
    begin: Instant,
    samples: Vec<Sample>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Samples { begin: Instant::now(), samples: Vec::new() }
    }

    /// Takes samples for a while.
    pub(crate) fn watch<W: Work>(&mut self, scheduler: &Scheduler<W>, count: impl Fn(&W) -> u64, span: Duration) {
        let end = Instant::now() + span;
        let mut last = (Instant::now(), count(scheduler.work()));
        while Instant::now() < end {
            std::thread::park_timeout(EVERY.min(end - Instant::now()));
            let now = (Instant::now(), count(scheduler.work()));
            let elapsed = (now.0 - last.0).as_secs_f64();
            self.samples.push(Sample {
                seconds: self.begin.elapsed().as_secs_f64(),
                threads: scheduler.snapshot().iter().map(|crew| crew.threads).sum(),
                throughput: (now.1 - last.1) as f64 / elapsed,
            });
            last = now;
        }
    }

    /// Writes the picture.
    pub(crate) fn write(&self, case: Case) -> Outcome<()> {
        let path = format!("target/bench-operators-elastic-{}-{}.svg", case.family.name(), case.cost);
        fs::write(path, self.svg(case)?)?;
        Ok(())
    }

    fn svg(&self, case: Case) -> Result<String, std::fmt::Error> {
        let mut svg = String::new();
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(svg, r#"<rect width="100%" height="100%" fill="white"/>"#)?;
        writeln!(
            svg,
            r##"<text x="{MARGIN}" y="20">{} at cost {}: tuples/s (blue) and threads (orange) over {:.1} s</text>"##,
            case.family.name(),
            case.cost,
            self.samples.last().map_or(0.0, |sample| sample.seconds)
        )?;
        let throughput_max = self.samples.iter().map(|sample| sample.throughput).fold(1.0, f64::max);
        let threads_max = self.samples.iter().map(|sample| sample.threads).max().unwrap_or(1) as f64 + 0.5;
        self.line(&mut svg, "#2b6cb0", |sample| sample.throughput / throughput_max)?;
        self.line(&mut svg, "#dd6b20", |sample| sample.threads as f64 / threads_max)?;
        writeln!(
            svg,
            r##"<path d="M{MARGIN} {MARGIN}V{}H{}" fill="none" stroke="#555"/>"##,
            HEIGHT - MARGIN,
            WIDTH - MARGIN
        )?;
        writeln!(svg, "</svg>")?;
        Ok(svg)
    }

    fn line(&self, svg: &mut String, colour: &str, share: impl Fn(&Sample) -> f64) -> std::fmt::Result {
        let end = self.samples.last().map_or(1.0, |sample| sample.seconds);
        write!(svg, r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points=""#)?;
        for sample in &self.samples {
            let x = MARGIN + sample.seconds / end * (WIDTH - 2.0 * MARGIN);
            let y = HEIGHT - MARGIN - share(sample) * (HEIGHT - 2.0 * MARGIN);
            write!(svg, "{x:.1},{y:.1} ")?;
        }
        writeln!(svg, r#""/>"#)
    }
}
