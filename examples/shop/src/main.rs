//! The `weir` command with the functions of a shop linked in.
//!
//!     cargo run -p shop -- run examples/shop/main.weir
//!     curl http://127.0.0.1:8080/

mod functions;
mod store;

use std::time::Duration;

/// The variable with the time in milliseconds that each query takes.
const LATENCY: &str = "SHOP_LATENCY_MS";

fn main() -> weir::Exit {
    let latency = std::env::var(LATENCY).ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    weir::cli().with(functions::shop).environment(store::Store::new(Duration::from_millis(latency))).run()
}
