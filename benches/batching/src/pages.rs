//! Pages of well-known demonstrations as programs in Weir, beside the graph of their queries: the blog of Ohua's thesis (§4.2),
//! a shop's home page and cart, and a social timeline.

use crate::level_graph::{LevelGraph, LevelNode};

/// A page.
pub(crate) struct Page {
    pub(crate) name: &'static str,
    /// The stores with their latencies, in milliseconds.
    pub(crate) stores: &'static [(&'static str, u64)],
    /// The body of a flow of `x`.
    text: &'static str,
    /// The `fn`s.
    functions: &'static str,
    /// The queries in the order of the text, each with its store, the number of calls, and the queries that it needs.
    queries: &'static [(usize, usize, &'static [usize])],
    /// The rounds and the calls of the hand-optimised version, which takes as long as the critical path.
    pub(crate) by_hand: (u64, u64),
}

/// All pages.
pub(crate) const PAGES: [Page; 4] = [
    Page {
        name: "blog",
        stores: &[("ids", 8), ("info", 10), ("content", 20), ("views", 12)],
        functions: "fn render(parts: List(Int)) -> Int { fold sum = 0 for part in parts { sum + part } }\n\
                    fn main_pane(x: Int) -> Int {\n  \
                    let recent = for id in ids.list(x, 19) if info.get(id) % 2 == 0 { id }\n  \
                    render(for id in recent { content.get(id) })\n}\n\
                    fn topics(x: Int) -> Int { render(for id in ids.list(x, 19) { info.get(id) % 7 }) }\n\
                    fn popular(x: Int) -> Int {\n  \
                    let viewed = for id in ids.list(x, 19) if views.get(id) % 4 == 0 { id }\n  \
                    render(for id in viewed { content.get(id) })\n}\n",
        text: "  sink.keep(main_pane(x) + topics(x) + popular(x))\n",
        queries: &[
            (0, 1, &[]),
            (1, 19, &[0]),
            (2, 10, &[1]),
            (0, 1, &[]),
            (1, 19, &[3]),
            (0, 1, &[]),
            (3, 19, &[5]),
            (2, 5, &[6]),
        ],
        by_hand: (3, 4),
    },
    Page {
        name: "shop, home page",
        stores: &[("currencies", 5), ("products", 5), ("cart", 5), ("prices", 5), ("advertisements", 5)],
        functions: "fn price(cents: Int) -> Int { prices.get(cents) }\n\
                    fn shelf(products: List(Int)) -> Int {\n  \
                    let shown = for product in products { price(product) }\n  \
                    fold sum = 0 for one in shown { sum + one }\n}\n",
        text: "  let menu = currencies.list(x, 4).length()\n  let shown = shelf(products.list(x, 9))\n  \
               let count = cart.list(x, 2).length()\n  sink.keep(menu + shown + count + advertisements.get(x))\n",
        queries: &[(0, 1, &[]), (1, 1, &[]), (3, 9, &[1]), (2, 1, &[]), (4, 1, &[])],
        by_hand: (2, 5),
    },
    Page {
        name: "shop, cart of five products",
        stores: &[
            ("currencies", 5),
            ("products", 5),
            ("cart", 5),
            ("prices", 5),
            ("recommendations", 5),
            ("shipping", 5),
        ],
        functions: "fn price(cents: Int) -> Int { prices.get(cents) }\n\
                    fn total(parts: List(Int)) -> Int { fold sum = 0 for part in parts { sum + part } }\n\
                    fn suggestions(items: List(Int)) -> Int {\n  \
                    total(for id in recommendations.list(items.length(), 5) { products.get(id) })\n}\n",
        text: "  let menu = currencies.list(x, 4).length()\n  let items = cart.list(x, 5)\n  \
               let others = suggestions(items)\n  let sent = price(shipping.get(items.length()))\n  \
               let lines = for item in items { price(products.get(item)) }\n  \
               sink.keep(menu + others + sent + total(lines))\n",
        queries: &[
            (0, 1, &[]),
            (2, 1, &[]),
            (4, 1, &[1]),
            (1, 5, &[2]),
            (5, 1, &[1]),
            (3, 1, &[4]),
            (1, 5, &[1]),
            (3, 5, &[6]),
        ],
        by_hand: (3, 7),
    },
    Page {
        name: "social timeline",
        stores: &[("timelines", 2), ("cache", 1), ("posts", 5), ("people", 3), ("media", 4)],
        functions: "fn post(id: Int) -> Int {\n  let known = cache.get(id)\n  \
                    if known % 4 == 0 { posts.get(known) } else { known }\n}\n\
                    fn card(id: Int) -> Int {\n  let post = post(id)\n  people.get(post % 5) + media.get(post)\n}\n",
        text: "  let cards = for id in timelines.list(x, 20) { card(id) }\n  \
               sink.keep(fold sum = 0 for card in cards { sum + card })\n",
        queries: &[(0, 1, &[]), (1, 20, &[0]), (2, 5, &[1]), (3, 15, &[1]), (4, 15, &[1]), (3, 5, &[2]), (4, 5, &[2])],
        by_hand: (4, 5),
    },
];

impl Page {
    /// Returns the names of the stores.
    pub(crate) fn sources(&self) -> Vec<String> {
        self.stores.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// Returns the latencies of the stores.
    pub(crate) fn latencies(&self) -> Vec<u64> {
        self.stores.iter().map(|(_, ms)| *ms).collect()
    }

    /// Returns the page as a program.
    pub(crate) fn program(&self) -> String {
        format!(
            "use {}, test, sink\n\n{}\nfor x in test.feed(0) {{\n{}}}\n",
            self.sources().join(", "),
            self.functions,
            self.text
        )
    }

    /// Returns the number of calls in the text.
    pub(crate) fn calls(&self) -> usize {
        self.queries.iter().map(|(_, calls, _)| calls).sum()
    }

    /// Returns the time of the calls one after the other, in milliseconds.
    pub(crate) fn sequential_ms(&self) -> u64 {
        self.queries.iter().map(|(store, calls, _)| self.stores[*store].1 * *calls as u64).sum()
    }

    /// Returns the graph of the calls.
    pub(crate) fn graph(&self) -> LevelGraph {
        let mut nodes: Vec<LevelNode> = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        for (store, calls, needs) in self.queries {
            let inputs: Vec<usize> = needs.iter().map(|need| ends[*need]).collect();
            let first = nodes.len();
            nodes.extend((0..*calls).map(|_| LevelNode { source: Some(*store), inputs: inputs.clone() }));
            nodes.push(LevelNode { source: None, inputs: (first..first + calls).collect() });
            ends.push(nodes.len() - 1);
        }
        nodes.push(LevelNode { source: None, inputs: ends });
        LevelGraph(nodes)
    }
}
