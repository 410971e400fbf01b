//! Runs the shop as a process, and counts the queries that its store gets for each page.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest time to wait for a response, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// The times that a page is asked for until it takes as many queries as it does if nothing else keeps the machine busy.
const ATTEMPTS: usize = 50;
const ENGINES: [&str; 7] = ["event", "pool", "thread-per-flow", "manual", "staged", "dedicated", "elastic"];

/// A running shop and its address.
struct Shop {
    process: Child,
    address: String,
}

impl Shop {
    fn start(engine: &str) -> Shop {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("main.weir");
        let mut process = Command::new(env!("CARGO_BIN_EXE_shop"))
            .arg("run")
            .arg(program)
            .args(["--port", "0", "--engine", engine, "--threads", "2"])
            // Of a store that answers at once, a query can wait for the answer of another without any delay.
            .env("SHOP_LATENCY_MS", "1")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(process.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            assert_ne!(messages.read_line(&mut greeting).unwrap(), 0, "it ended: {greeting}");
        }
        let address = greeting.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
        Shop { process, address: address.to_owned() }
    }

    /// Sends a request; returns the body of the response.
    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let address = &self.address;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        body.to_owned()
    }

    fn queries(&self) -> u64 {
        self.ask("GET", "/queries").trim().parse().unwrap()
    }

    /// Sends a request until it takes this many queries, or a few dozen times; returns the last body, and the number of its
    /// queries. On a busy machine one of two answers may come so late that queries which need them leave apart, or one so
    /// early that a further query joins a batch which has not left yet.
    fn counted_until(&self, method: &str, path: &str, expected: u64) -> (String, u64) {
        let mut last = self.counted(method, path);
        for _ in 1..ATTEMPTS {
            if last.1 == expected {
                break;
            }
            last = self.counted(method, path);
        }
        last
    }

    /// Sends a request; returns the body, and the number of queries that it took.
    fn counted(&self, method: &str, path: &str) -> (String, u64) {
        let before = self.queries();
        let body = self.ask(method, path);
        (body, self.queries() - before)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_home_page_takes_five_queries_and_the_cart_seven() {
    let shop = Shop::start("event");
    let (home, queries) = shop.counted_until("GET", "/?currency=USD", 5);
    assert!(home.contains("2 in your cart") && home.contains("<li>Mug: 10.15 USD</li>"), "{home}");
    assert_eq!(queries, 5, "the prices of nine products are one query");
    let (cart, queries) = shop.counted_until("GET", "/cart?customer=5", 7);
    assert!(cart.contains("<li>2 × Tank top: 37.98 EUR</li>"), "{cart}");
    assert!(cart.contains("You may like Candle holder, Salt and pepper shakers, Bamboo jar, Mug"), "{cart}");
    assert_eq!(queries, 7, "products, suggestions and prices are one query each");
}

#[test]
fn every_engine_gives_the_same_pages_with_no_more_queries_than_calls() {
    let expected = {
        let shop = Shop::start("event");
        (shop.ask("GET", "/"), shop.ask("GET", "/cart"), shop.ask("POST", "/orders?customer=3"))
    };
    for engine in ENGINES {
        let shop = Shop::start(engine);
        let (home, queries) = shop.counted("GET", "/");
        assert!((5..13).contains(&queries), "{engine}: {queries}");
        let (cart, queries) = shop.counted("GET", "/cart");
        assert!((5..20).contains(&queries), "{engine}: {queries}");
        let (order, queries) = shop.counted_until("POST", "/orders?customer=3", 2);
        assert_eq!(queries, 2, "{engine}: the cart, and the products that are reserved");
        assert_eq!((home, cart, order), expected, "{engine}");
    }
}

/// Runs the command on a program.
fn run(subcommand: &str, program: &Path, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
    let output = command.arg(subcommand).arg(program).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn explained(program: &Path) -> String {
    run("check", program, &["--explain", "io"])
}

#[test]
fn plan_and_graph_show_which_calls_are_gathered() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("main.weir");
    let plan = run("plan", &program, &[]);
    assert!(
        plan.contains(
            "\n  shop.reserve, at most 100 calls in a batch, one batch after the other, because it writes: post /orders"
        ),
        "{plan}"
    );
    assert!(
        plan.contains("\n  shop.convert, at most 100 calls in a batch, 8 batches at a time: get /, get /cart\n"),
        "{plan}"
    );
    let graph = run("graph", &program, &[]);
    let call = graph.lines().find(|line| line.contains("shop.product(each)")).unwrap();
    assert!(call.ends_with("reads world shop, waits in a batch of at most 100"), "{graph}");
}

#[test]
fn the_command_explains_the_rounds_that_the_store_sees() {
    let text = explained(&Path::new(env!("CARGO_MANIFEST_DIR")).join("main.weir"));
    assert!(text.starts_with("get /: 2 rounds, 5 queries\n"), "{text}");
    assert!(text.contains("\nget /cart: 3 rounds, 7 queries\n"), "{text}");
    let convert = "    shop.convert, batches of at most 100 of these calls:
      line 10, called at line 42, needs the answer of `shop.shipping` (line 42)
      line 10, called at line 45, for each element, needs the answer of `shop.product` (line 44)
";
    assert!(text.contains(convert), "{text}");
    assert!(text.contains("    shop.reserve (line 51), for each element, in batches of at most 100\n"), "{text}");
}

/// Returns what the command explains about these routes.
fn explained_routes(routes: &str, options: &[&str]) -> String {
    let program = format!("use http, shop\n\nservice store on http(port: 8080) {{\n{routes}}}\n");
    let path = std::env::temp_dir().join(format!("shop_{}_{:x}.weir", std::process::id(), routes.len()));
    std::fs::write(&path, program).unwrap();
    let text = run("check", &path, &[&["--explain", "io"], options].concat());
    std::fs::remove_file(&path).unwrap();
    text
}

#[test]
fn the_command_says_why_a_round_is_needed() {
    let routes = "  get \"/\" (id: Int) {
    let before = shop.product(1)?
    let done = shop.reserve(id)
    let one = shop.product(2)?
    let count = if done { shop.cart(3).length() } else { 0 }
    http.text(\"{before.name} {one.name} {count}\")
  }
";
    let expected = "get /: 3 rounds, 4 queries
  round 1
    shop.product (line 5)
  round 2
    shop.reserve (line 6)
      has an effect, and the request may end before it at line 5, which depends on `shop.product` (line 5)
  round 3
    shop.product (line 7)
      reads what `shop` stands for, which `shop.reserve` (line 6) changes: this write forces a round
    shop.cart (line 8)
      is behind the `if` at line 8, which needs the answer of `shop.reserve` (line 6)
";
    assert_eq!(explained_routes(routes, &[]), expected);
}

#[test]
fn the_command_says_why_calls_come_one_after_the_other() {
    let routes = "  get \"/\" (ids: List(Int)) {
    let total = fold total = 0 for id in ids { shop.product(id + total % 2)?.cents }
    let dones = for id in ids { if !shop.reserve(id) { return http.text(\"sold out\") } }
    http.text(\"{total} {dones.length()}\")
  }
";
    let expected = "get /: at least 2 rounds, 2 queries
  round 1
    shop.product (line 5), again in each round of a `fold`, one after the other
  round 2
    shop.reserve (line 6), for one element after the other, because it has an effect and each element may end the request \
                    at line 6
      is in the `for` at line 6, which changes what `shop` stands for, which `shop.product` (line 5) reads: a write waits \
                    for the reads before it
";
    assert_eq!(explained_routes(routes, &[]), expected);
}

#[test]
fn calls_that_differ_in_the_other_arguments_are_several_queries() {
    let routes = "  get \"/\" (ids: List(Int), price: Int) {
    let a = for id in ids { shop.convert(id, currency: \"EUR\")? }
    let b = for id in ids { shop.convert(id, currency: \"USD\")? }
    let c = shop.convert(price, currency: \"USD\")?
    let d = for id in ids { shop.convert(id, currency: \"{id}\")? }
    http.text(\"{a.length()} {b.length()} {c} {d.length()}\")
  }
";
    let expected = "get /: at least 1 round, 3 queries
  round 1
    shop.convert (line 5), for each element, in batches of at most 100
    shop.convert, batches of at most 100 of these calls:
      line 6, for each element
      line 7
    shop.convert (line 8), for each element, one batch for all that agree in the other arguments
";
    assert_eq!(explained_routes(routes, &[]), expected);
}

#[test]
fn the_explanation_is_also_json() {
    let routes = "  get \"/\" (id: Int) {
    let done = shop.reserve(id)
    let one = shop.product(2)?
    http.text(\"{done} {one.name}\")
  }
";
    let text = explained_routes(routes, &["--error-format", "json"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in [
        "\"flow\":\"get /\"",
        "\"rounds\":2",
        "\"queries\":2",
        "\"reason\":\"order\",\"resource\":\"shop\",\"for\":{\"file\":",
        "\"text\":\"reads what `shop` stands for, which `shop.reserve` (line 5) changes: this write forces a round\"",
        "\"line\":6,\"column\":15",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
