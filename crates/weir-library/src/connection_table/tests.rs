//! The choice of the connection to close.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::time::Duration;

use super::*;

/// A connection with a task that ends when the table closes it.
struct Open {
    place: TablePlace,
    task: tokio::task::JoinHandle<()>,
}

impl Open {
    fn is_closed(&self) -> bool {
        let state = self.place.table.state.lock();
        !state.addresses.get(&self.place.address).is_some_and(|order| order.contains_key(&self.place.key()))
    }

    fn note(&self, after_ms: u64, is_busy: bool) {
        self.place.entry.note(self.place.table.started + Duration::from_millis(after_ms), is_busy);
    }
}

fn open(table: &Arc<ConnectionTable>, address: &str, at_ms: u64) -> Option<Open> {
    let address = address.parse().unwrap();
    let place = match table.enter(address, table.started + Duration::from_millis(at_ms)) {
        Entering::Entered(place) | Entering::Instead(place) => place,
        Entering::Refused => return None,
    };
    let task = tokio::spawn(std::future::pending());
    let handle = task.abort_handle();
    attach(table, address, &place.entry, Box::new(move || handle.abort()));
    Some(Open { place, task })
}

/// Opens connections that are as old as their index, in milliseconds.
fn open_all(table: &Arc<ConnectionTable>, addresses: &[&str]) -> Vec<Open> {
    addresses.iter().zip(0..).map(|(address, at)| open(table, address, at).unwrap()).collect()
}

fn closed(connections: &[Open]) -> Vec<usize> {
    (0..connections.len()).filter(|index| connections[*index].is_closed()).collect()
}

#[tokio::test]
async fn the_longest_waiting_connection_of_the_address_with_most_is_closed() {
    let table = ConnectionTable::new(5);
    let all = open_all(&table, &["10.0.0.2", "10.0.0.9", "10.0.0.9", "10.0.0.9", "10.0.0.2"]);
    all[1].note(100, false);
    let new = open(&table, "10.0.0.3", 150).unwrap();
    assert_eq!(closed(&all), [2]);
    all[1].note(150, true);
    all[3].note(200, false);
    let newest = open(&table, "10.0.0.9", 300).unwrap();
    let newer = open(&table, "10.0.0.9", 300).unwrap();
    assert_eq!(closed(&all), [0, 2, 3]);
    for (index, connection) in all.into_iter().enumerate() {
        let Open { place, task } = connection;
        drop(place);
        tokio::task::yield_now().await;
        assert_eq!(task.is_finished(), [0, 2, 3].contains(&index));
    }
    drop((new, newer, newest));
    assert_eq!(table.state.lock().count, 0);
    assert!(table.state.lock().by_count.is_empty() && table.state.lock().addresses.is_empty());
}

#[tokio::test]
async fn a_busy_connection_is_closed_only_for_an_address_that_has_fewer() {
    let table = ConnectionTable::new(3);
    let all = open_all(&table, &["10.0.0.1", "10.0.0.1", "10.0.0.1"]);
    all.iter().for_each(|connection| connection.note(50, true));
    assert!(open(&table, "10.0.0.1", 300).is_none());
    assert!(!table.close_waiting(table.started + Duration::from_millis(300)));
    let other = open(&table, "10.0.0.2", 300).unwrap();
    other.note(310, true);
    assert_eq!(closed(&all).len(), 1);
    let third = open(&table, "10.0.0.3", 320).unwrap();
    third.note(330, true);
    assert_eq!(closed(&all).len(), 2);
    assert!(open(&table, "10.0.0.4", 340).is_none(), "each address has one");
}

#[tokio::test]
async fn an_address_whose_connections_are_busy_does_not_protect_others_that_wait() {
    let table = ConnectionTable::new(3);
    let all = open_all(&table, &["10.0.0.1", "10.0.0.1", "10.0.0.2"]);
    all[..2].iter().for_each(|connection| connection.note(50, true));
    assert!(open(&table, "10.0.0.1", 300).is_some());
    assert_eq!(closed(&all), [2]);
}

#[tokio::test]
async fn the_longest_waiting_connection_is_found_although_all_have_been_active() {
    let table = ConnectionTable::new(250);
    let all = open_all(&table, &["10.0.0.1"; 250]);
    for (connection, index) in all.iter().zip(0..) {
        connection.note(1000 - index, index >= 40);
    }
    assert!(open(&table, "10.0.0.1", 2000).is_some());
    assert_eq!(closed(&all), [39]);
}

#[test]
fn the_addresses_of_one_network_are_one_client() {
    let client = |text: &str| client_of(text.parse().unwrap()).to_string();
    assert_eq!(client("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    assert_eq!(client("::ffff:10.0.0.1"), "10.0.0.1");
    assert_eq!(client("10.0.0.1"), "10.0.0.1");
}
