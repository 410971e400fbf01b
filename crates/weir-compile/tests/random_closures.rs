//! Random programs whose closures fail. Each is written twice: with closures, and with a `for`, `fold` or block in the place of
//! each. Both must compute the same, with the same failures and the same number of effects.
//!
//! `WEIR_CLOSURES=400..4000` tries other seeds.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::{run_on_lists, served};
use test_support::random::Random;

/// The programs that are tried.
const PROGRAMS: u64 = 150;

const FUNCTIONS: &str = "
shared calls = 0
fn checked(x: Int) -> Result(Int) { calls.add(1); if x % 7 == 3 { fail(\"{x} is refused\") }; Ok(x) }
fn after(y: Int) -> Result(Int) { if y > 30 { fail(\"too much\") }; Ok(y + 1) }
fn applied(x: Int, f: fn(Int) -> Int) -> Result(Int) { Ok(after(f(x))?) }
fn patient(x: Int, f: fn(Int) -> Int) -> Result(Int) { retry(3) { checked(x)? + f(x) } }
fn passed_on(x: Int, f: fn(Int) -> Int) -> Result(Int) { Ok(applied(x, |y| f(y) % 20) else { -6 }) }
fn said(result: Result(Int)) -> Text { match result { Ok(n) => \"{n}\", Err(failure) => \"{failure}\" } }
";

/// An expression of the type `Int`: with closures, and without.
#[derive(Clone)]
struct Both(String, String);

impl Both {
    fn same(text: impl Into<String>) -> Both {
        let text = text.into();
        Both(text.clone(), text)
    }

    /// Puts parts in the place of each `@1`, `@2`, … of two texts.
    fn of(with_closures: &str, without: &str, parts: &[&Both]) -> Both {
        let filled = |text: &str, part: fn(&Both) -> &String| {
            let numbered = (1..).zip(parts);
            numbered.fold(text.to_owned(), |text, (at, of)| text.replace(&format!("@{at}"), part(of)))
        };
        Both(filled(with_closures, |of| &of.0), filled(without, |of| &of.1))
    }
}

struct Maker {
    random: Random,
    names: usize,
}

impl Maker {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Returns an expression in which these names stand for numbers.
    fn number(&mut self, scope: &[String], depth: usize) -> Both {
        if depth == 0 || self.random.below(8) == 0 {
            return match self.random.below(3) {
                0 => Both::same(self.random.below(9).to_string()),
                1 => Both::same(format!("checked({})?", self.one_of(scope))),
                _ => Both::same(self.one_of(scope)),
            };
        }
        match self.random.below(3) {
            0 => self.plain(scope, depth - 1),
            1 => self.of_a_list(scope, depth - 1),
            _ => self.called(scope, depth - 1),
        }
    }

    fn one_of(&mut self, scope: &[String]) -> String {
        scope[self.random.below(scope.len() as u64) as usize].clone()
    }

    /// Returns an expression without a closure of its own.
    fn plain(&mut self, scope: &[String], depth: usize) -> Both {
        let (one, other) = (self.number(scope, depth), self.number(scope, 0));
        let text = match self.random.below(5) {
            0 => "(@1 + @2)",
            1 => "checked(@1)?",
            2 => "(if @2 > 4 { @1 } else { fail(\"no\") })",
            3 => "(retry(2) { checked(@2)? + @1 } else { -2 })",
            _ => "(({ @1 } within 5s) else { -4 })",
        };
        Both::of(text, text, &[&one, &other])
    }

    /// Returns an expression with a function of a list or option that takes a closure.
    fn of_a_list(&mut self, scope: &[String], depth: usize) -> Both {
        let (name, before) = (self.name(), self.name());
        let mut inner = scope.to_vec();
        inner.push(name.clone());
        let (with_closures, without) = match self.random.below(6) {
            0 => ("[@2, @3].map(|@v| @1).sum()", "(for @v in [@2, @3] { @1 }).sum()"),
            1 => ("[@2, @3].filter(|@v| @1 > 3).sum()", "(for @v in [@2, @3] if @1 > 3 { @v }).sum()"),
            2 => (
                "([@2, @3].sort_by(|@v| @1).first() else { 0 })",
                "((for @v in [@2, @3] order by @1 { @v }).first() else { 0 })",
            ),
            3 => (
                "(if [@2, @3].any(|@v| @1 > 3) { 1 } else { 2 })",
                "(if (fold @w = false for @v in [@2, @3] { if @w { true } else { @1 > 3 } }) { 1 } else { 2 })",
            ),
            4 => ("(Some(@2 + @3).map(|@v| @1) else { 0 })", "(match Some(@2 + @3) { Some(@v) => @1, None => 0 })"),
            _ => {
                inner.push(before.clone());
                ("([@2, @3].reduce(|@w, @v| @1) else { 0 })", "(fold @w = @2 for @v in [@3] { @1 })")
            }
        };
        let parts = [self.number(&inner, depth), self.number(scope, 0), self.number(scope, depth.min(1))];
        self.filled((with_closures, without), (&name, &before), &parts)
    }

    /// Returns an expression with a closure that a `fn` of the program or a name calls.
    fn called(&mut self, scope: &[String], depth: usize) -> Both {
        let (name, function) = (self.name(), self.name());
        let mut inner = scope.to_vec();
        inner.push(name.clone());
        let texts = match self.random.below(4) {
            0 => ("(applied(@2, |@v| @1) else { -3 })", "({ let @v = @2; after(@1) else { -3 } })"),
            1 => (
                "(patient(@2, |@v| @1) else { -5 })",
                "({ let @v = @2; match retry(3) { checked(@v)? } { Ok(@w) => @w + @1, Err(_) => -5 } })",
            ),
            2 => ("(passed_on(@2, |@v| @1) else { -7 })", "({ let @v = @2; after(@1 % 20) else { -6 } })"),
            _ => ("({ let @w = |@v: Int| @1; @w(@2) + @w(@3) })", "({ let @v = @2; @1 } + { let @v = @3; @1 })"),
        };
        let parts = [self.number(&inner, depth), self.number(scope, 0), self.number(scope, 0)];
        self.filled(texts, (&name, &function), &parts)
    }

    fn filled(&self, texts: (&str, &str), (one, other): (&str, &str), parts: &[Both; 3]) -> Both {
        let named = |text: &str| text.replace("@v", one).replace("@w", other);
        Both::of(&named(texts.0), &named(texts.1), &parts.each_ref())
    }
}

fn seeds() -> impl Iterator<Item = u64> {
    let said = std::env::var("WEIR_CLOSURES").ok();
    let range = said.as_deref().and_then(|said| said.split_once(".."));
    range.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?)).unwrap_or(0..PROGRAMS)
}

/// Returns the result of a body for several numbers, and the calls that it has made.
fn run(body: &str) -> String {
    let tried = (0..5).map(|n| format!("  let r{n} = said(body({n}, {}))\n", 4 - n)).collect::<String>();
    let shown = "\"{r0}, {r1}, {r2}, {r3}, {r4}, {calls} calls\"";
    let text = format!(
        "{FUNCTIONS}fn body(n: Int, m: Int) -> Result(Int) {{ Ok({body}) }}\nfn main() -> Text {{\n{tried}  {shown}\n}}"
    );
    run_on_lists(&served(&text)).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
}

#[test]
fn closures_fail_like_the_loops_in_their_place() {
    let (mut failures, mut closures) = (0, 0);
    for seed in seeds() {
        let mut maker = Maker { random: Random::new(seed + 1), names: 0 };
        let Both(with_closures, without) = maker.number(&["n".into(), "m".into()], 4);
        let found = run(&with_closures);
        assert_eq!(found, run(&without), "seed {seed}\n{with_closures}\n{without}");
        failures += usize::from(found.contains("is refused") || found.contains("no,"));
        closures += usize::from(with_closures != without);
    }
    assert!(failures > 20 && closures > 50, "only {failures} programs with failures, {closures} with closures");
}
