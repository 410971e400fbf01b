//! Runs the shop as a process, and counts the queries that its store gets for each page.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest time to wait for a response, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
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
            .env("SHOP_LATENCY_MS", "0")
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
    let (home, queries) = shop.counted("GET", "/?currency=USD");
    assert!(home.contains("2 in your cart") && home.contains("<li>Mug: 10.15 USD</li>"), "{home}");
    assert_eq!(queries, 5, "the prices of nine products are one query");
    let (cart, queries) = shop.counted("GET", "/cart?customer=5");
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
        let (order, queries) = shop.counted("POST", "/orders?customer=3");
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
    assert!(text.contains("round 2: shop.reserve (a batch with a call for each element)\n"), "{text}");
}

#[test]
fn the_command_says_why_a_round_is_needed() {
    let program = "use http, shop\n\nservice store on http(port: 8080) {\n  get \"/\" (id: Int) {\n    \
                   let before = shop.product(1)?\n    let done = shop.reserve(id)\n    let one = shop.product(2)?\n    \
                   let count = if done { shop.cart(3).length() } else { 0 }\n    \
                   http.text(\"{before.name} {one.name} {count}\")\n  }\n}\n";
    let path = std::env::temp_dir().join(format!("shop_rounds_{}.weir", std::process::id()));
    std::fs::write(&path, program).unwrap();
    let text = explained(&path);
    std::fs::remove_file(&path).unwrap();
    let expected = "get /: 3 rounds, 4 queries
  round 1: shop.product
  round 2: shop.reserve
    shop.reserve (line 6) has an effect, and the request may end because of shop.product
  round 3: shop.product, shop.cart
    shop.product (line 7) keeps its order with shop.reserve: one of them changes what `shop` stands for
    shop.cart (line 8) is in a branch that shop.reserve decides about
";
    assert_eq!(text, expected);
}
