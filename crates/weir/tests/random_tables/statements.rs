//! Random programs: a table, and statements on it, each a flow of its own.

use std::fmt::Write as _;

use test_support::random::Random;

use crate::conditions::condition;
use crate::existing;
use crate::gathered::{functions, gathered, gathered_and_written};
use crate::queries::{aggregate_of_query, groups, join, pages, query};
use crate::tables::{Items, Kind};

/// Number of statements that fill the tables first.
const FILLING: u64 = 8;

/// Names the times that literals and conditions mention. Between the last one and the greatest `Time` is less than a second.
const TIMES: &str = "let t0 = time.from_unix(0)?\n  let t1 = time.from_unix(1_800_000_000)?\n  \
                     let t2 = time.from_unix(9_223_372_036)?\n  ";

/// A random program.
pub(crate) struct RandomProgram {
    pub(crate) items: Items,
    /// True if failures end the flows.
    ends_flows: bool,
    /// The bodies of the flows, each of which returns a `Text`.
    pub(crate) steps: Vec<String>,
}

impl RandomProgram {
    pub(crate) fn new(seed: u64) -> RandomProgram {
        let mut random = Random::new(seed + 1);
        let items = Items::new(&mut random);
        RandomProgram::of(items, seed, random)
    }

    /// Returns a program whose tables may be those of a database that others have made.
    pub(crate) fn of_any_database(seed: u64) -> RandomProgram {
        let mut random = Random::new(seed + 1);
        let items = Items::new(&mut random).of_any_database();
        let mut program = RandomProgram::of(items, seed, random);
        existing::adapt(&program.items, &mut program.steps, &mut Random::new(seed));
        program
    }

    /// Returns the program without the character NUL in what it stores: PostgreSQL refuses such a text of another program. It compares with
    /// such texts.
    pub(crate) fn storing_no_nul(mut self) -> RandomProgram {
        const STORES: [&str; 4] = [".insert(", ".upsert(", ".update(", ".update_all("];
        let stores = |step: &String| STORES.iter().any(|part| step.contains(part));
        self.steps.iter_mut().filter(|step| stores(step)).for_each(|step| *step = step.replace("\\0", "\\u{2}"));
        self
    }

    fn of(items: Items, seed: u64, mut random: Random) -> RandomProgram {
        let mut steps = vec![owners()];
        steps.extend((0..FILLING).map(|_| insert(&items, &mut random)));
        for _ in 0..12 + random.below(12) {
            steps.push(step(&items, &mut random));
        }
        steps.push(format!("json.encode((for r in items {{ {} }}, for o in owners {{ o }}))", items.shown("r")));
        let named = |step: &String| step.contains("t0") || step.contains("t1") || step.contains("t2");
        steps.iter_mut().filter(|step| named(step)).for_each(|step| step.insert_str(0, TIMES));
        RandomProgram { items, ends_flows: seed.is_multiple_of(3), steps }
    }

    /// Returns the text of the program.
    /// The statements of a third of the programs are in the bodies of flows, which their failures end, and those of the others in `fn`s
    /// that return them.
    pub(crate) fn text(&self) -> String {
        existing::without_view(&self.text_with(&self.items.declarations()))
    }

    /// Returns the text of the program on tables of this database, which the program has not made.
    pub(crate) fn text_on_existing_tables(&self, database: &str) -> String {
        self.text_with(&existing::declarations(&self.items, database))
    }

    fn text_with(&self, tables: &str) -> String {
        let declarations = format!("{tables}\n{}", functions(&self.items));
        if self.ends_flows {
            return self.text_of_flows(&declarations);
        }
        let mut text = format!("use bytes, float, hex, http, json, time\n\n{declarations}\n");
        for (at, step) in self.steps.iter().enumerate() {
            _ = write!(
                text,
                "fn step{at}(n: Int) -> Result(Text) {{\n  let said = {{\n  {step}\n  }}\n  Ok(said)\n}}\n\n"
            );
        }
        text += "fn run(n: Int) -> Result(Text) {\n  match n {\n";
        for at in 0..self.steps.len() {
            _ = writeln!(text, "    {at} => step{at}(n)");
        }
        text += "    _ => Ok(\"\")\n  }\n}\n\nservice steps on http(port: 8080) {\n  get \"/{n}\" (n: Int) {\n    \
                 let said = run(n) else as failure {\n      \
                 return http.text(if \"{failure}\".contains(\"differ\") { \"{failure}\" } else { failure.kind() })\n    }\n    \
                 http.text(said)\n  }\n}\n";
        text
    }

    fn text_of_flows(&self, declarations: &str) -> String {
        let mut text = format!("use bytes, float, hex, http, json, time\n\n{declarations}\n");
        text += "service steps on http(port: 8080) {\n  get \"/{n}\" (n: Int) {\n    let said = match n {\n";
        for (at, step) in self.steps.iter().enumerate() {
            _ = writeln!(text, "    {at} => {{\n  {step}\n  }}");
        }
        text += "    _ => \"\"\n    }\n    http.text(said)\n  }\n}\n";
        text
    }
}

/// Inserts the owners that texts of rows may name.
fn owners() -> String {
    "let added = for name in [\"\", \"a\", \"B\", \"ä\", \"a\\0b\"] { owners.insert(Owner { name, age: name.length() })? }\n  \
     json.encode(added)"
        .to_owned()
}

fn insert(items: &Items, random: &mut Random) -> String {
    items.encoded_key(&format!("items.insert({})?", items.row(random, true)))
}

/// Returns the row `r` with another value in a column that is no part of the key, or rarely of the key.
fn changed(items: &Items, random: &mut Random) -> String {
    let is_key = |name: &str| items.key.iter().any(|at| items.columns[*at].name == name);
    let rarely = random.below(12) == 0;
    let column = items.any_of(random, |column| rarely || !is_key(&column.name));
    let value = match column.kind {
        Kind::Int if random.below(2) == 0 => format!("r.{} + 1", column.name),
        kind => kind.literal(random),
    };
    format!("Item {{ ..r, {}: {value} }}", column.name)
}

/// Returns a random statement.
fn step(items: &Items, random: &mut Random) -> String {
    match random.below(32) {
        24..=29 => gathered(items, random),
        30 | 31 => gathered_and_written(items, random),
        0 | 1 => query(items, random),
        2..=4 => aggregate_of_query(items, random),
        5..=8 => groups(items, random),
        9..=11 => pages(items, random),
        12 => join(items, random),
        13 | 14 => transaction(items, random),
        15 => unless_changed(items, random),
        16 => writing_function(items, random),
        _ => write(items, random),
    }
}

/// Returns a statement that writes one of the tables, or reads a row.
fn write(items: &Items, random: &mut Random) -> String {
    match random.below(12) {
        0 | 1 => insert(items, random),
        2 => items.encoded_key(&format!("items.upsert({})?", items.row(random, false))),
        3 => {
            let update = format!("items.update({}, |r| {})?", items.key_literal(random), changed(items, random));
            format!("json.encode({})", items.shown_option(&update))
        }
        4 => {
            format!("json.encode(items.update_all(|r| {}, |r| {})?)", condition(items, random), changed(items, random))
        }
        5 => format!("json.encode(items.delete({})?)", items.key_literal(random)),
        6 if random.below(3) == 0 => format!("json.encode(items.delete_all(|r| {})?)", condition(items, random)),
        7 => format!("json.encode(items.count(|r| {}))", condition(items, random)),
        8 => format!("json.encode(items.exists(|r| {}))", condition(items, random)),
        9 if random.below(3) == 0 => format!("json.encode(owners.delete({})?)", Kind::Text.literal(random)),
        10 => format!(
            "json.encode(owners.upsert(Owner {{ name: {}, age: {} }})?)",
            Kind::Text.literal(random),
            random.below(4)
        ),
        _ => format!("json.encode({})", items.shown_option(&format!("items[{}]", items.key_literal(random)))),
    }
}

/// Returns a read of several rows, which may join the tables.
fn read(items: &Items, random: &mut Random) -> String {
    match random.below(6) {
        0 => query(items, random),
        1 => aggregate_of_query(items, random),
        2 => groups(items, random),
        3 => pages(items, random),
        _ => join(items, random),
    }
}

/// Returns a transaction of several statements, which fails sometimes.
fn transaction(items: &Items, random: &mut Random) -> String {
    let tables = ["items, owners", "items, owners", "items, owners", "items"][random.below(4) as usize];
    let mut text = format!("let found = atomic {tables} {{\n");
    let count = 1 + random.below(4);
    for at in 0..count {
        let reads = tables == "items" || random.below(3) == 0;
        let statement = if reads {
            format!("{{\n{}\n}}", read(items, random))
        } else {
            let statement = write(items, random);
            if random.below(3) == 0 { handled(&statement) } else { statement }
        };
        _ = writeln!(text, "    let s{at} = {statement}");
    }
    if random.below(3) == 0 {
        text += "    if items.count() > 3 { fail(\"given up\") }\n";
    }
    let all: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
    _ = write!(text, "    [{}]\n  }}", all.join(", "));
    if random.below(3) > 0 {
        // The second time, the database has the statements prepared, and those that follow each other are sent together.
        text = format!("let found = for _ in [1, 2] {{\n{text}\n  found\n  }}");
    }
    text + "\n  json.encode(found)"
}

/// Returns a statement that gives the kind of its failure instead of passing it on.
fn handled(statement: &str) -> String {
    let result = statement.strip_prefix("json.encode(").and_then(|rest| rest.strip_suffix("?)"));
    result.map_or_else(|| statement.to_owned(), with_kind)
}

fn with_kind(result: &str) -> String {
    format!("match {result} {{ Ok(done) => json.encode(done), Err(failure) => failure.kind() }}")
}

/// Returns a statement whose function writes tables, which takes effect together with that or not at all.
fn writing_function(items: &Items, random: &mut Random) -> String {
    let write = match random.below(4) {
        0 => format!("owners.upsert(Owner {{ name: {}, age: r.number % 7 }})?", Kind::Text.literal(random)),
        1 => format!("owners.delete({})?", Kind::Text.literal(random)),
        2 => format!("items.delete({})?", items.key_literal(random)),
        _ => format!("items.upsert({})?", items.row(random, false)),
    };
    let change = format!("|r| {{\n    {write}\n    {}\n  }}", changed(items, random));
    with_kind(&match random.below(3) {
        0 => {
            let update = format!("items.update({}, {change})", items.key_literal(random));
            if items.shown("r") != "r" {
                return format!("match {update} {{ Ok(_) => \"done\", Err(failure) => failure.kind() }}");
            }
            update
        }
        1 => format!("items.update_all(|r| {}, {change})", condition(items, random)),
        _ => format!("items.delete_all(|r| {{\n    {write}\n    {}\n  }})", condition(items, random)),
    })
}

/// Returns an upsert of a row if it has a value that was seen before.
fn unless_changed(items: &Items, random: &mut Random) -> String {
    format!(
        "let found = atomic items {{\n    let r = items[{}] else {{ fail(\"none\") }}\n    \
         if r.number != {} {{ fail(\"changed\") }}\n    items.upsert({})?\n  }}\n  {}",
        items.key_literal(random),
        Kind::Int.literal(random),
        changed(items, random),
        items.encoded_key("found")
    )
}
