//! Snapshots of the view of a recorded trace.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::super::model::tests::recorded;
use super::super::rows::SortOrder;
use super::super::screen::Focus;
use super::*;
use crate::trace_socket::message::TraceLine;

const TRACE: &str = include_str!("../recorded.jsonl");

fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, frame)).unwrap();
    terminal.backend().to_string()
}

fn watching() -> Screen {
    let mut screen = Screen::new("web_server");
    screen.model = recorded(TRACE);
    screen
}

#[test]
fn a_program_on_a_wide_terminal() {
    insta::assert_snapshot!(drawn(&mut watching(), 110, 32));
}

#[test]
fn a_program_on_a_small_terminal() {
    insta::assert_snapshot!(drawn(&mut watching(), 60, 14));
}

#[test]
fn a_program_on_a_terminal_that_is_hardly_one() {
    insta::assert_snapshot!(drawn(&mut watching(), 40, 18));
}

#[test]
fn a_program_that_has_ended_sorted_by_rate() {
    let mut screen = watching();
    screen.disconnected = Some("the program has ended".to_owned());
    screen.order = SortOrder::Rate;
    insta::assert_snapshot!(drawn(&mut screen, 100, 24));
}

#[test]
fn the_help_over_a_program_that_has_said_nothing_yet() {
    let mut screen = Screen::new("web_server");
    screen.shows_help = true;
    insta::assert_snapshot!(drawn(&mut screen, 80, 24));
}

#[test]
fn rows_that_do_not_fit_are_counted_and_can_be_reached() {
    let mut screen = watching();
    screen.scroll = [1_000, 1_000, 0];
    let text = drawn(&mut screen, 100, 12);
    assert!(text.contains("of"), "{text}");
    assert!(screen.scroll.iter().all(|first| *first < 100), "what is too much is taken back: {:?}", screen.scroll);
}

#[test]
fn no_size_of_a_terminal_is_too_small() {
    let mut screen = watching();
    for (width, height) in [0, 1, 2, 3, 9, 20, 66, 120].into_iter().flat_map(|w| (0..25).map(move |height| (w, height)))
    {
        screen.shows_help = width % 2 == 0;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(&mut screen, frame)).unwrap();
    }
}

#[test]
fn batches_are_shown_where_a_program_has_some() {
    let sample = |at_ns: u64, batches: u64| {
        let line = format!(
            r#"{{"at_ns":{at_ns},"event":"batches","function":"users[key]","batches":{batches},"calls":{},"in_flight":1,"in_flight_max":8,"queued":2}}"#,
            batches * 40
        );
        TraceLine::read(&line).unwrap()
    };
    let mut screen = watching();
    [sample(0, 0), sample(500_000_000, 100)].into_iter().for_each(|line| screen.model.take(line));
    for (width, height) in [(110, 36), (60, 14), (20, 6), (1, 1)] {
        let drawn = drawn(&mut screen, width, height);
        let row = drawn.lines().find(|line| line.contains("users[key]"));
        let words: Vec<&str> = row.iter().flat_map(|row| row.split_whitespace()).collect();
        match width {
            110 => assert_eq!(words[2..12], ["200", "40", "-", "-", "-", "1", "of", "8", "+", "2"], "{drawn}"),
            60 => assert!(words.contains(&"200"), "{drawn}"),
            _ => {}
        }
    }
    screen.key(KeyCode::Tab.into());
    screen.key(KeyCode::Tab.into());
    assert_eq!(screen.focus, Focus::Batches);
}
