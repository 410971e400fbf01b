//! In-memory store of the shop, in place of databases and services behind a network: each query takes some time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The products, the stock and the carts of the shop.
pub(crate) struct Store {
    latency: Duration,
    queries: AtomicU64,
    /// The number of pieces of each product.
    stock: Mutex<BTreeMap<i64, i64>>,
}

/// Names and prices in cents; the identity of a product is its position.
pub(crate) const PRODUCTS: [(&str, i64); 9] = [
    ("Sunglasses", 1_999),
    ("Tank top", 1_899),
    ("Watch", 10_999),
    ("Loafers", 8_999),
    ("Hairdryer", 2_499),
    ("Candle holder", 1_899),
    ("Salt and pepper shakers", 1_849),
    ("Bamboo jar", 549),
    ("Mug", 899),
];

/// Units of each currency that a euro buys, in thousandths.
pub(crate) const CURRENCIES: [(&str, i64); 4] = [("EUR", 1_000), ("USD", 1_130), ("JPY", 126_400), ("TRY", 6_125)];

impl Store {
    /// Returns a store with a hundred pieces of each product, and queries that take this long.
    pub(crate) fn new(latency: Duration) -> Store {
        let stock = (0..).zip(PRODUCTS).map(|(id, _)| (id, 100));
        Store { latency, queries: AtomicU64::new(0), stock: Mutex::new(stock.collect()) }
    }

    /// Counts a query, and waits for as long as it takes.
    pub(crate) async fn query(&self) {
        self.queries.fetch_add(1, Ordering::Relaxed);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
    }

    /// Returns the number of queries so far.
    pub(crate) fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// Returns the number of pieces of each product.
    pub(crate) fn stock(&self) -> MutexGuard<'_, BTreeMap<i64, i64>> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
