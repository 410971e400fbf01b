//! Tables: routes with rates and latencies, sections with threads and queues, batches with their sizes.

use ratatui::Frame;
use ratatui::layout::Constraint::{self, Length, Max};
use ratatui::layout::{Alignment, Flex, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Padding, Row, Table};

use super::super::model::{History, Model};
use super::super::rows::{self, BatchesRow, RouteRow, SectionRow};
use super::super::screen::{Focus, Screen};
use super::{TABLE_FRAME, block};
use crate::humanize::{grouped, rate, short_time};

/// Minimum width that shows all columns.
const WIDE: u16 = 90;
/// Space between two columns.
const COLUMN_SPACING: u16 = 2;
/// Width of a table's frame and padding.
const TABLE_SIDES: u16 = 4;
/// Minimum width of a column of names.
const NAME_MIN: u16 = 12;
/// Width of a queue's fill bar, in characters.
const BAR: usize = 8;
/// Number of periods shown of a pool's thread count.
const LEVELS: usize = 16;
/// Fill of a queue from which it is yellow, and from which it is red.
const BUSY: f64 = 0.5;
const FULL: f64 = 0.9;

/// A column.
struct Column {
    head: &'static str,
    /// Width in characters; 0 means the width of the longest name.
    width: u16,
    only_wide: bool,
    at: Alignment,
}

const fn column(head: &'static str, width: u16, only_wide: bool, at: Alignment) -> Column {
    Column { head, width, only_wide, at }
}

const ROUTES: [Column; 7] = [
    column("route", 0, false, Alignment::Left),
    column("rate/s", 10, false, Alignment::Right),
    column("mean", 8, true, Alignment::Right),
    column("p50", 8, true, Alignment::Right),
    column("p99", 8, false, Alignment::Right),
    column("running", 9, false, Alignment::Right),
    column("failed", 9, false, Alignment::Right),
];

const SECTIONS: [Column; 7] = [
    column("section", 0, false, Alignment::Left),
    column("engine", 10, true, Alignment::Left),
    column("threads", 8, false, Alignment::Right),
    column("over time", LEVELS as u16, true, Alignment::Left),
    column("queue", BAR as u16, true, Alignment::Left),
    column("waiting", 15, false, Alignment::Right),
    column("rate/s", 10, false, Alignment::Right),
];

const BATCHES: [Column; 7] = [
    column("batches of", 0, false, Alignment::Left),
    column("rate/s", 10, false, Alignment::Right),
    column("calls", 8, false, Alignment::Right),
    column("gathered", 8, true, Alignment::Right),
    column("took", 8, true, Alignment::Right),
    column("p99", 8, false, Alignment::Right),
    column("in flight", 12, false, Alignment::Right),
];

/// Draws the routes.
pub(super) fn routes(screen: &mut Screen, model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let rows = rows::routes(model, screen.order);
    let name = longest(rows.iter().map(|row| row.route.as_str()));
    let cells = rows.iter().map(route).collect();
    table(screen, Focus::Routes, (&ROUTES, name), cells, frame, area);
}

/// Draws the sections.
pub(super) fn sections(screen: &mut Screen, model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let rows = rows::sections(model, screen.order);
    let name = longest(rows.iter().map(|row| row.section.as_str()));
    let cells = rows.iter().map(|row| section(row, model.levels(&row.crew))).collect();
    table(screen, Focus::Sections, (&SECTIONS, name), cells, frame, area);
}

/// Draws the batches.
pub(super) fn batches(screen: &mut Screen, model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let rows = rows::batches(model, screen.order);
    let name = longest(rows.iter().map(|row| row.function.as_str()));
    let cells = rows.iter().map(batches_of).collect();
    table(screen, Focus::Batches, (&BATCHES, name), cells, frame, area);
}

fn time(ns: Option<u64>) -> Cell<'static> {
    Cell::from(right(ns.map_or_else(|| "-".to_owned(), short_time)))
}

fn batches_of(row: &BatchesRow) -> [Cell<'static>; 7] {
    [
        Cell::from(row.function.clone()).bold(),
        Cell::from(right(rate(row.rate))).green(),
        Cell::from(right(row.calls_per_batch.map_or_else(|| "-".to_owned(), rate))),
        time(row.waited_mean_ns),
        time(row.took_mean_ns),
        time(row.took_p99_ns),
        Cell::from(right(row.in_flight())),
    ]
}

fn route(row: &RouteRow) -> [Cell<'static>; 7] {
    let failed = Cell::from(right(grouped(row.failed)));
    let failed = match (row.failed_rate > 0.0, row.failed) {
        (true, _) => failed.red().bold(),
        (false, 1..) => failed.red(),
        (false, 0) => failed.dim(),
    };
    [
        Cell::from(row.route.clone()).bold(),
        Cell::from(right(rate(row.rate))).green(),
        time(row.mean_ns),
        time(row.p50_ns),
        time(row.p99_ns),
        Cell::from(right(grouped(row.running))),
        failed,
    ]
}

fn section(row: &SectionRow, levels: Option<&History>) -> [Cell<'static>; 7] {
    let color = match row.fill() {
        fill if fill >= FULL => Color::Red,
        fill if fill >= BUSY => Color::Yellow,
        _ => Color::Green,
    };
    let waiting = format!("{} of {}", grouped(row.waiting), grouped(row.waiting_max));
    let levels = levels.map(|levels| steps(&levels.newest(LEVELS), row.threads_max)).unwrap_or_default();
    [
        Cell::from(row.section.clone()).bold(),
        Cell::from(row.engine.clone()),
        Cell::from(right(row.threads())),
        Cell::from(levels).cyan(),
        Cell::from(bar(row.fill())).style(Style::new().fg(color)),
        Cell::from(right(waiting)),
        Cell::from(right(rate(row.rate))).green(),
    ]
}

fn table(
    screen: &mut Screen,
    focus: Focus,
    (columns, name_width): (&[Column; 7], u16),
    rows: Vec<[Cell<'static>; 7]>,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let fit = area.height.saturating_sub(TABLE_FRAME) as usize;
    let count = rows.len();
    let first = &mut screen.scroll[focus as usize];
    *first = (*first).min(count.saturating_sub(fit));
    let shown = columns_that_fit(columns, area.width);
    let heads = columns.iter().zip(shown).filter_map(|(column, shown)| shown.then_some(column));
    // Columns of names shrink if there is not enough room.
    let widths = heads.clone().map(|column| if column.width == 0 { Max(name_width) } else { Length(column.width) });
    let widths: Vec<Constraint> = widths.collect();
    let heads = Row::new(heads.map(|column| Text::from(column.head).alignment(column.at))).dim();
    let rows = rows
        .into_iter()
        .skip(*first)
        .take(fit)
        .map(|cells| Row::new(cells.into_iter().zip(shown).filter_map(|(cell, shown)| shown.then_some(cell))));
    let name = match focus {
        Focus::Routes => "routes",
        Focus::Sections => "sections",
        Focus::Batches => "batches",
    };
    let title = match count > fit && fit > 0 {
        true => format!(" {name} {}–{} of {count} ", *first + 1, (*first + fit).min(count)),
        false => format!(" {name} "),
    };
    let title = if screen.focus == focus { title.bold() } else { title.into() };
    let block = block(Line::from(title)).padding(Padding::horizontal(1));
    let table = Table::new(rows, widths).header(heads).column_spacing(COLUMN_SPACING).flex(Flex::Start).block(block);
    frame.render_widget(table, area);
}

/// Returns which columns fit into this width. The rightmost are dropped first, names never.
fn columns_that_fit(columns: &[Column; 7], width: u16) -> [bool; 7] {
    let room = width.saturating_sub(TABLE_SIDES + NAME_MIN);
    let mut taken = 0;
    columns.each_ref().map(|column| {
        if column.width == 0 {
            return true;
        }
        let fits = (width >= WIDE || !column.only_wide) && taken + column.width + COLUMN_SPACING <= room;
        taken += if fits { column.width + COLUMN_SPACING } else { 0 };
        fits
    })
}

/// Returns the width of a column of names.
fn longest<'a>(names: impl Iterator<Item = &'a str>) -> u16 {
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX).max(NAME_MIN)
}

fn right(text: String) -> Text<'static> {
    Text::from(text).alignment(Alignment::Right)
}

/// Formats the fill of a queue in eighths of characters; anything above zero is visible.
fn bar(fill: f64) -> String {
    const EIGHTHS: [char; 8] = ['·', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = ((fill.clamp(0.0, 1.0) * (BAR * 8) as f64).ceil()) as usize;
    let cell = |index: usize| match eighths.saturating_sub(index * 8) {
        8.. => '█',
        part => EIGHTHS[part],
    };
    (0..BAR).map(cell).collect()
}

/// Formats values over time, newest at the right, scaled to `most`.
fn steps(newest: &[u64], most: u64) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let step = |level: &u64| EIGHTHS[(level * 8).div_ceil(most.max(1)).clamp(1, 8) as usize - 1];
    let steps: String = newest.iter().rev().map(step).collect();
    format!("{steps:>LEVELS$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_not_empty() {
        assert_eq!(bar(0.0), "········");
        assert_eq!(bar(0.001), "▏·······");
        assert_eq!(bar(0.5), "████····");
        assert_eq!(bar(7.0), "████████");
    }

    #[test]
    fn levels_rise_to_the_right() {
        assert_eq!(steps(&[8, 4, 1], 8).trim(), "▁▄█");
    }
}
