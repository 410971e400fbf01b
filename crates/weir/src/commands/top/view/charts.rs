//! Charts: flows per second, latency and threads over the last minutes.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline};

use super::super::model::{HISTORY_MAX, History, Model};
use super::block;
use crate::humanize::{grouped, short_time};

/// Width of a frame's corners.
const CORNERS: usize = 2;

/// Draws the charts side by side.
pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let parts = Layout::horizontal([Constraint::Fill(1); 3]).split(area);
    let flows = |value: u64| format!("{}/s", grouped(value));
    chart(" flows ", &model.throughput, &flows, Color::Green, frame, parts[0]);
    chart(" p99 ", &model.latency, &short_time, Color::Magenta, frame, parts[1]);
    chart(" threads ", &model.threads, &|value: u64| value.to_string(), Color::Cyan, frame, parts[2]);
}

/// Draws a chart with the newest value at the right.
fn chart(
    title: &'static str,
    history: &History,
    words: &dyn Fn(u64) -> String,
    color: Color,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let values = history.newest((area.width as usize).min(HISTORY_MAX));
    let latest = history.latest().map(words).unwrap_or_default();
    let most = values.iter().copied().max().unwrap_or(0);
    let title = Line::from(vec![title.into(), Span::from(format!("{latest} ")).bold().fg(color)]);
    let highest = Line::from(format!(" max {} ", words(most))).right_aligned().dim();
    // The two titles must not overlap.
    let fits = title.width() + highest.width() + CORNERS <= area.width.into();
    let block = if fits { block(title).title(highest) } else { block(title) };
    // Zero has no bar, and a constant value does not fill the chart.
    let scale = (most + most.div_ceil(8)).max(1);
    let chart = Sparkline::default().data(values).max(scale).direction(RenderDirection::RightToLeft);
    frame.render_widget(chart.fg(color).block(block), area);
}
