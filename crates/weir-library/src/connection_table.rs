//! The open connections of a server by address, and the choice of the one to close when there are too many.
//!
//! A connection *waits for its client* between requests and while a request head arrives; otherwise it is *busy*. When
//! the limit is reached, a new connection takes the place of another one:
//!
//! 1. of the connections that wait for their clients, the one that has waited longest, of the address that has most
//!    connections. If all of that address are busy, the addresses with the next most are looked at, up to
//!    [`ADDRESSES_SEEN`];
//! 2. if none waits: a busy one of the address that has most, if the new connection's address has fewer even with the
//!    new one. No address can thus lock out another one, whatever its connections do;
//! 3. otherwise the new connection is refused.
//!
//! Event loops share the table behind a mutex, which is taken when a connection opens and when it ends. What happens on a
//! connection in between only changes a word of its own ([`TableEntry::note`]). The order of an address's connections is
//! therefore out of date, and brought up to date where it is read: a connection stands in it at a time at or before its
//! last activity, so the first one that stands at its true time is the one that has waited longest.

pub(crate) mod held_bytes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use self::held_bytes::{HeldBytes, HeldTotal};
use crate::descriptors::{self, ConnectionDescriptor};

/// The number of addresses among which a connection is sought that waits for its client, and of busy connections of each
/// that are passed over. They bound the work of accepting a connection, together with the activity of connections: one of
/// them allows a connection to be put in its place once.
const ADDRESSES_SEEN: usize = 8;
const BUSY_SEEN: usize = 256;

/// The bit of [`TableEntry`]'s state that says that the connection is busy.
const BUSY: u64 = 1;

/// The connections of one server, on all of its event loops.
pub(crate) struct ConnectionTable {
    connections_max: usize,
    descriptors_max: usize,
    started: Instant,
    held: Arc<HeldTotal>,
    /// The number of connections that were closed because of what they held, and a notice of them.
    holders_closed: AtomicU64,
    pub(crate) holder_closed: Notify,
    state: Mutex<ConnectionOrders>,
}

#[derive(Default)]
struct ConnectionOrders {
    count: usize,
    addresses: BTreeMap<IpAddr, AddressOrder>,
    /// The addresses by their numbers of connections.
    by_count: BTreeSet<(usize, IpAddr)>,
    connections_begun: u64,
}

/// The connections of one address, by time and number.
type AddressOrder = BTreeMap<(u64, u64), TableConnection>;

/// Closes a connection. Called under the mutex of the table, so it must not drop the connection's place itself.
pub(crate) type CloseConnection = Box<dyn FnOnce() + Send>;

struct TableConnection {
    entry: Arc<TableEntry>,
    /// `None` until the connection can be closed.
    close: Option<CloseConnection>,
    #[expect(dead_code, reason = "held, and given back when dropped")]
    descriptor: ConnectionDescriptor,
}

/// The part of a connection that its event loop changes and the table reads.
pub(crate) struct TableEntry {
    number: u64,
    started: Instant,
    /// The time of the last activity in nanoseconds since the table's start, with [`BUSY`] in place of its lowest bit.
    activity: AtomicU64,
    /// The time at which the connection stands in its address's order; written under the table's mutex.
    stands_at: AtomicU64,
    /// The bytes that the connection holds for its client.
    pub(crate) held: HeldBytes,
}

/// A place in the table, given up when it is dropped.
pub(crate) struct TablePlace {
    table: Arc<ConnectionTable>,
    address: IpAddr,
    entry: Arc<TableEntry>,
}

/// The outcome of asking for a place.
pub(crate) enum Entering {
    /// There was room.
    Entered(TablePlace),
    /// Another connection was closed.
    Instead(TablePlace),
    /// There is no place.
    Refused,
}

impl ConnectionTable {
    /// Creates the table of a server with this limit, which the process's limit of open files may lower.
    pub(crate) fn new(connections_max: usize) -> Arc<ConnectionTable> {
        Arc::new(ConnectionTable {
            connections_max,
            descriptors_max: descriptors::for_connections().max(1),
            started: Instant::now(),
            held: Arc::default(),
            holders_closed: AtomicU64::default(),
            holder_closed: Notify::new(),
            state: Mutex::default(),
        })
    }

    /// Returns the number of connections that the server may have.
    pub(crate) fn connections_max(&self) -> usize {
        self.connections_max.min(self.descriptors_max)
    }

    /// Adds a connection from this address, and closes another one if there are too many.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, now: Instant) -> Entering {
        let now = nanoseconds(now.saturating_duration_since(self.started));
        let address = client_of(address);
        let mut state = self.state.lock();
        let (descriptor, descriptors) = ConnectionDescriptor::take();
        let is_full = state.count >= self.connections_max || descriptors > self.descriptors_max;
        if is_full && !state.close_one(Some(address), now) {
            return Entering::Refused;
        }
        let entry = Arc::new(TableEntry {
            number: state.connections_begun,
            started: self.started,
            activity: AtomicU64::new(now),
            stands_at: AtomicU64::default(),
            held: HeldBytes::new(&self.held),
        });
        state.connections_begun += 1;
        let place = TablePlace { table: Arc::clone(self), address, entry: Arc::clone(&entry) };
        state.add(address, TableConnection { entry, close: None, descriptor });
        if is_full { Entering::Instead(place) } else { Entering::Entered(place) }
    }

    /// Closes the connection that has waited longest for its client, of the address that has most; returns false if none
    /// waits. For a process that has no file descriptors left.
    pub(crate) fn close_waiting(&self, now: Instant) -> bool {
        self.state.lock().close_one(None, nanoseconds(now.saturating_duration_since(self.started)))
    }
}

impl ConnectionTable {
    /// Makes room for what the connection of this entry has begun to hold, if all connections together hold too much: of the
    /// address whose connections hold most, and of those connections that hold at least half as much as the one that holds
    /// most, the oldest is closed. Returns false if that is the connection itself, which then must not hold the bytes of the
    /// request that needs room.
    #[cold]
    pub(crate) fn make_room(&self, own: &TableEntry, bytes_of_request: u64) -> bool {
        let mut state = self.state.lock();
        if !self.held.is_over() {
            return true;
        }
        let held = |connection: &TableConnection| connection.entry.held.get();
        let sum = |order: &AddressOrder| order.values().map(held).sum::<u64>();
        let Some((address, order)) = state.addresses.iter().max_by_key(|(_, order)| sum(order)) else { return true };
        let most = order.values().map(held).max().unwrap_or_default();
        let oldest = order.iter().find(|(_, connection)| held(connection) * 2 >= most);
        let Some((address, key)) = oldest.map(|(key, _)| (*address, *key)) else { return true };
        if key.1 == own.number {
            // One request alone may take the room that no other one needs, also of the same connection.
            return self.held.is_all(bytes_of_request);
        }
        state.close(address, key);
        self.holders_closed.fetch_add(1, Ordering::Relaxed);
        self.holder_closed.notify_one();
        true
    }

    /// Takes the number of connections that were closed because of what they held.
    pub(crate) fn take_holders_closed(&self) -> u64 {
        self.holders_closed.swap(0, Ordering::Relaxed)
    }
}

impl ConnectionOrders {
    fn add(&mut self, address: IpAddr, connection: TableConnection) {
        let key = (connection.entry.last_activity(), connection.entry.number);
        connection.entry.stands_at.store(key.0, Ordering::Relaxed);
        let order = self.addresses.entry(address).or_default();
        let before = order.len();
        order.insert(key, connection);
        self.by_count.remove(&(before, address));
        self.by_count.insert((before + 1, address));
        self.count += 1;
    }

    fn remove(&mut self, address: IpAddr, key: (u64, u64)) -> Option<TableConnection> {
        let order = self.addresses.get_mut(&address)?;
        let before = order.len();
        let removed = order.remove(&key)?;
        self.count -= 1;
        self.by_count.remove(&(before, address));
        if before == 1 {
            self.addresses.remove(&address);
        } else {
            self.by_count.insert((before - 1, address));
        }
        Some(removed)
    }

    /// Closes a connection for a new one of address `newcomer`; returns false if none may be closed.
    fn close_one(&mut self, newcomer: Option<IpAddr>, now: u64) -> bool {
        let most: Vec<(usize, IpAddr)> = self.by_count.iter().rev().take(ADDRESSES_SEEN).copied().collect();
        for (_, address) in &most {
            if let Some(key) = self.longest_waiting(*address, now) {
                return self.close(*address, key);
            }
        }
        let (Some(newcomer), Some((count, address))) = (newcomer, most.first()) else { return false };
        let own = self.addresses.get(&newcomer).map_or(0, AddressOrder::len);
        let busy = self.addresses.get(address).and_then(|order| order.keys().next().copied());
        own + 1 < *count && busy.is_some_and(|key| self.close(*address, key))
    }

    fn close(&mut self, address: IpAddr, key: (u64, u64)) -> bool {
        let Some(closed) = self.remove(address, key) else { return false };
        closed.entry.held.end();
        if let Some(close) = closed.close {
            close();
        }
        true
    }

    /// Returns the key of the connection of an address that has waited longest for its client.
    fn longest_waiting(&mut self, address: IpAddr, now: u64) -> Option<(u64, u64)> {
        let order = self.addresses.get_mut(&address)?;
        let mut busy = 0;
        while busy < order.len().min(BUSY_SEEN) {
            let first = order.first_entry()?;
            let (stands_at, number) = *first.key();
            let entry = &first.get().entry;
            let (last, is_busy) = (entry.last_activity(), entry.is_busy());
            if last == stands_at && !is_busy {
                return Some((stands_at, number));
            }
            busy += usize::from(is_busy);
            // A busy connection waits from now on at the earliest.
            let stands_at = if is_busy { now } else { last };
            entry.stands_at.store(stands_at, Ordering::Relaxed);
            let connection = first.remove();
            order.insert((stands_at, number), connection);
        }
        None
    }
}

impl TableEntry {
    /// Notes that something has happened on the connection.
    #[inline]
    pub(crate) fn note(&self, now: Instant, is_busy: bool) {
        let since = nanoseconds(now.saturating_duration_since(self.started));
        self.activity.store(since | if is_busy { BUSY } else { 0 }, Ordering::Relaxed);
    }

    fn last_activity(&self) -> u64 {
        self.activity.load(Ordering::Relaxed) & !BUSY
    }

    fn is_busy(&self) -> bool {
        self.activity.load(Ordering::Relaxed) & BUSY != 0
    }
}

impl TablePlace {
    /// Returns the connection's entry.
    pub(crate) fn entry(&self) -> &Arc<TableEntry> {
        &self.entry
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> Arc<ConnectionTable> {
        Arc::clone(&self.table)
    }

    fn key(&self) -> (u64, u64) {
        (self.entry.stands_at.load(Ordering::Relaxed), self.entry.number)
    }
}

/// Tells the table how to close the connection of this entry.
pub(crate) fn attach(table: &ConnectionTable, address: IpAddr, entry: &TableEntry, close: CloseConnection) {
    let mut state = table.state.lock();
    let key = (entry.stands_at.load(Ordering::Relaxed), entry.number);
    match state.addresses.get_mut(&client_of(address)).and_then(|order| order.get_mut(&key)) {
        Some(connection) => connection.close = Some(close),
        // Closed already, by another event loop.
        None => close(),
    }
}

impl Drop for TablePlace {
    fn drop(&mut self) {
        let mut state = self.table.state.lock();
        let key = self.key();
        let removed = state.remove(self.address, key);
        drop(state);
        drop(removed);
    }
}

/// Returns the client that an address stands for: with IPv6, a client has a network of 64 bits.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// Returns a duration in nanoseconds, without the bit that says that a connection is busy.
fn nanoseconds(duration: std::time::Duration) -> u64 {
    (duration.as_secs() * 1_000_000_000 + u64::from(duration.subsec_nanos())) & !BUSY
}

#[cfg(test)]
mod tests;
