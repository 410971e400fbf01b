//! Terminal view of a running program: heading, three charts, routes, sections, batches, and latest failures.
//!
//! Colours are the terminal's own sixteen, and carry no information beyond the text.

mod charts;
mod tables;

use std::ops::RangeInclusive;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};

use super::model::Model;
use super::screen::Screen;
use crate::humanize::{grouped, rounded};

/// Minimum height for the charts, and for the list of failures.
const CHARTS_FROM: u16 = 16;
const FAILURES_FROM: u16 = 16;
/// Minimum and maximum height of a chart.
const CHARTS_HEIGHT: RangeInclusive<u16> = 6..=14;
/// Height of heading and footer.
const FRAME: u16 = 3;
/// Maximum number of failures shown.
const FAILURES_MAX: u16 = 5;
/// Height of a table's border and heading.
const TABLE_FRAME: u16 = 3;

const KEYS: [(&str, &str); 7] = [
    ("q", "quit; the program keeps running"),
    ("s", "sort by rate, slowness, failures, or as in the program"),
    ("p", "pause or resume"),
    ("Tab", "choose the table to scroll"),
    ("↑ ↓", "scroll; also PageUp, PageDown, Home"),
    ("?", "show this help"),
    ("Ctrl-C", "quit"),
];

/// Draws the screen.
pub(super) fn draw(screen: &mut Screen, frame: &mut Frame<'_>) {
    let area = frame.area();
    let model = screen.shown().clone();
    let failures = failures_height(&model, area.height);
    let (charts, routes, batches) = heights(&model, area.height.saturating_sub(FRAME + failures));
    let heights = [Constraint::Length(2), Constraint::Length(charts), Constraint::Length(routes), Constraint::Min(0)];
    let heights = heights.into_iter().chain([batches, failures].map(Constraint::Length)).chain([Constraint::Length(1)]);
    let parts = Layout::vertical(heights).split(area);
    frame.render_widget(heading(screen, &model), parts[0]);
    if charts > 0 {
        charts::draw(&model, frame, parts[1]);
    }
    if model.is_empty() {
        frame.render_widget(Paragraph::new("  waiting for the program …").dim(), parts[2]);
    } else {
        tables::routes(screen, &model, frame, parts[2]);
        tables::sections(screen, &model, frame, parts[3]);
        if batches > 0 {
            tables::batches(screen, &model, frame, parts[4]);
        }
    }
    draw_failures(&model, frame, parts[5]);
    frame.render_widget(foot(screen, &model), parts[6]);
    if screen.shows_help {
        help(frame, area);
    }
}

/// Returns the heights of the charts, of the routes and of the batches; the sections get the rest.
fn heights(model: &Model, left: u16) -> (u16, u16, u16) {
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(TABLE_FRAME);
    let (routes, sections) = (rows(model.routes.len()), rows(model.sections.len()));
    let batches = if model.batches.is_empty() { 0 } else { rows(model.batches.len()) };
    let spare = left.saturating_sub(routes.saturating_add(sections).saturating_add(batches));
    let charts = if left < CHARTS_FROM { 0 } else { spare.clamp(*CHARTS_HEIGHT.start(), *CHARTS_HEIGHT.end()) };
    // At most half of the available height, and a quarter.
    let at_most = |part: u16| ((left - charts) / part).max(TABLE_FRAME + 1);
    (charts, routes.min(at_most(2)), batches.min(at_most(4)))
}

/// Returns a frame with a title.
fn block(title: Line<'_>) -> Block<'_> {
    Block::bordered().border_type(BorderType::Rounded).border_style(Style::new().dim()).title(title)
}

fn heading(screen: &Screen, model: &Model) -> Paragraph<'static> {
    let mut first = vec![Span::from(format!(" {}", screen.name)).bold()];
    let mut second = Vec::new();
    if let Some(hello) = &model.hello {
        first.push(format!("  process {}, engine {}", hello.pid, hello.engine).into());
        first.extend(hello.plan.as_ref().map(|plan| Span::from(format!(", plan {plan}"))));
        second.push(Span::from(format!(" {}", hello.sources.join("  "))).blue());
    }
    let up = rounded(Duration::from_nanos(model.at_ns));
    first.push(Span::from(format!("  up {up}")).dim());
    let state = match (&screen.disconnected, &screen.paused) {
        (Some(why), _) => {
            let line = format!(" {why}; waiting for `{}` to restart, q quits ", screen.name);
            Some(Span::from(line).bold().reversed())
        }
        (None, Some(_)) => Some(" paused ".bold().reversed()),
        (None, None) if model.stopping => Some(" stopping ".bold().reversed()),
        (None, None) => None,
    };
    if let Some(state) = state {
        first.push("  ".into());
        // The reason of the disconnect replaces the addresses.
        if screen.disconnected.is_some() { second = vec![" ".into(), state] } else { first.push(state) }
    }
    Paragraph::new(vec![Line::from(first), Line::from(second)])
}

fn failures_height(model: &Model, height: u16) -> u16 {
    let count = (model.failures.len() as u16).min(FAILURES_MAX);
    if count == 0 || height < FAILURES_FROM { 0 } else { count + 2 }
}

fn draw_failures(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let newest = model.failures.iter().rev().take(FAILURES_MAX.into());
    let lines = newest.map(|failure| {
        let ago = rounded(Duration::from_nanos(model.at_ns.saturating_sub(failure.at_ns)));
        let times = if failure.count > 1 { format!("×{} ", grouped(failure.count)) } else { String::new() };
        Line::from(vec![format!(" {ago:>9} ago  ").dim(), times.red(), failure.text.clone().into()])
    });
    let block = block(Line::from(" latest failures ".red()));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn foot(screen: &Screen, model: &Model) -> Line<'static> {
    let mut spans = Vec::new();
    let pause = if screen.paused.is_some() { "resume" } else { "pause" };
    for (key, does) in [("q", "quit"), ("s", "sort: "), ("p", pause), ("?", "help")] {
        spans.push(Span::from(format!(" {key} ")).bold());
        let order = if key == "s" { screen.order.name() } else { "" };
        spans.push(Span::from(format!("{does}{order} ")).dim());
    }
    if model.refused > 0 {
        spans.push(Span::from(format!("  {} refused", grouped(model.refused))).fg(Color::Yellow));
    }
    if model.lost > 0 {
        spans.push(Span::from(format!("  {} events lost", grouped(model.lost))).fg(Color::Yellow));
    }
    Line::from(spans)
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> =
        KEYS.iter().map(|(key, does)| Line::from(vec![format!(" {key:>7}  ").bold(), (*does).into()])).collect();
    let longest = KEYS.iter().map(|(_, does)| does.chars().count()).max().unwrap_or(0) as u16;
    let (width, height) = ((longest + 13).min(area.width), (lines.len() as u16 + 2).min(area.height));
    let place = Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block(Line::from(" keys ".bold()))), place);
}

#[cfg(test)]
mod tests;
