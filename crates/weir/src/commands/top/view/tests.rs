//! Snapshots of the view of a recorded trace.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::model::tests::recorded;
use super::super::rows::SortOrder;
use super::*;

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
    screen.scroll = [1_000, 1_000];
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
