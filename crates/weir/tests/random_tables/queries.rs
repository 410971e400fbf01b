//! Random queries of the table `items`, each in two spellings: as the table computes it, and as functions on the list of all
//! rows.

use test_support::random::Random;

use crate::conditions::condition;
use crate::tables::{Column, Items, Kind};

/// The expression of the list of all rows.
pub(crate) const ALL: &str = "(for row in items { row })";

/// Returns a statement that evaluates both spellings, and fails if they differ.
pub(crate) fn both(table: &str, list: &str) -> String {
    format!(
        "let one = json.encode({table})\n  let two = json.encode({list})\n  \
         if one != two {{ fail(\"differ: {{one}} and {{two}}\") }}\n  one"
    )
}

/// Returns ` if condition`, or nothing.
fn filter(items: &Items, random: &mut Random) -> String {
    if random.below(5) == 0 { String::new() } else { format!(" if {}", condition(items, random)) }
}

/// Returns ` order by …`, or nothing.
fn order(items: &Items, random: &mut Random) -> String {
    let keys: Vec<String> = (0..random.below(4))
        .map(|_| {
            let column = items.any_of(random, |column| column.kind.may_order_by());
            format!("r.{}{}", column.name, if random.below(2) == 0 { " desc" } else { "" })
        })
        .collect();
    if keys.is_empty() { String::new() } else { format!(" order by {}", keys.join(", ")) }
}

fn projection(items: &Items, random: &mut Random) -> String {
    match random.below(3) {
        0 => items.shown("r"),
        1 => items.any(random).shown("r"),
        _ => format!("({}, {})", items.any(random).shown("r"), items.any(random).shown("r")),
    }
}

/// Returns a query.
pub(crate) fn query(items: &Items, random: &mut Random) -> String {
    let limit = if random.below(2) == 0 { format!(" limit {}", random.below(6) as i64 - 1) } else { String::new() };
    let clauses = format!("{}{}{limit}", filter(items, random), order(items, random));
    let body = projection(items, random);
    both(&format!("for r in items{clauses} {{ {body} }}"), &format!("for r in {ALL}{clauses} {{ {body} }}"))
}

/// Returns a column of which an aggregate exists, and the aggregate.
fn aggregate<'i>(items: &'i Items, random: &mut Random) -> (&'i Column, &'static str) {
    match random.below(6) {
        0 => (items.any(random), ".length()"),
        1 => (items.any(random), ".unique().length()"),
        2 => (items.any_of(random, |column| column.kind == Kind::Int), ".sum()"),
        3 => (items.any_of(random, |column| column.kind == Kind::Int), ".average()"),
        4 => (items.any_of(random, |column| column.kind.has_order()), ".max()"),
        _ => (items.any_of(random, |column| column.kind.has_order()), ".min()"),
    }
}

/// Returns an aggregate of a query.
pub(crate) fn aggregate_of_query(items: &Items, random: &mut Random) -> String {
    let filter = filter(items, random);
    let (column, function) = aggregate(items, random);
    let of = |items: &str| {
        let value = format!("(for r in {items}{filter} {{ r.{} }}){function}", column.name);
        if column.kind != Kind::Bytes || function.ends_with(".length()") {
            return value;
        }
        format!("(match {value} {{ Some(it) => Some({}), None => None }})", column.kind.shown("it"))
    };
    both(&of("items"), &of(ALL))
}

/// Returns the groups of a query, with aggregates.
pub(crate) fn groups(items: &Items, random: &mut Random) -> String {
    let filter = filter(items, random);
    let columns: Vec<&Column> = (0..=random.below(2)).map(|_| items.any(random)).collect();
    let named = |of: &dyn Fn(usize) -> String| {
        let names: Vec<String> = (0..columns.len()).map(of).collect();
        if names.len() == 1 { names[0].clone() } else { format!("({})", names.join(", ")) }
    };
    let (key, names) = (named(&|at| format!("r.{}", columns[at].name)), named(&|at| format!("k{at}")));
    let shown = named(&|at| columns[at].kind.shown(&format!("k{at}")));
    let uses = |random: &mut Random| {
        let (column, function) = match aggregate(items, random) {
            (column, ".max()" | ".min()") if column.kind == Kind::Bytes => (column, ".length()"),
            other => other,
        };
        match random.below(3) {
            0 => format!("(for r in theirs {{ r.{} }}){function}", column.name),
            1 if function == ".length()" => "theirs.length()".to_owned(),
            _ => format!("theirs.map(|r| r.{}){function}", column.name),
        }
    };
    let values: Vec<String> = (0..=random.below(3)).map(|_| uses(random)).collect();
    let of_key = random.below(columns.len() as u64) as usize;
    let tests: Vec<String> = (0..random.below(3))
        .map(|_| match random.below(5) {
            0 => {
                format!("k{of_key} {} {}", ["==", "!="][random.below(2) as usize], columns[of_key].kind.literal(random))
            }
            1 => format!("theirs.map(|r| r.number).sum() != {}", random.below(4)),
            2 => format!("{} <= theirs.map(|r| r.{}).unique().length()", random.below(4), items.any(random).name),
            _ => format!("theirs.length() > {}", random.below(3)),
        })
        .collect();
    let chosen = if tests.is_empty() { String::new() } else { format!(" if {}", tests.join(" && ")) };
    let order = match random.below(5) {
        0 => " order by theirs.length() desc".to_owned(),
        2 if columns[of_key].kind.may_order_by() => {
            let keys = [format!("theirs.length(), k{of_key} desc"), format!("k{of_key}"), format!("k{of_key} desc")];
            format!(" order by {}", keys[random.below(3) as usize])
        }
        1 => " order by (theirs.map(|r| r.number).max() else { 0 }), theirs.length()".to_owned(),
        _ => String::new(),
    };
    let limit = if random.below(3) == 0 { format!(" limit {}", random.below(4)) } else { String::new() };
    let of = |items: &str| {
        format!(
            "for ({names}, theirs) in (for r in {items}{filter} {{ r }}).group_by(|r| {key}){chosen}{order}{limit} {{ ({shown}, {}) }}",
            values.join(", ")
        )
    };
    both(&of("items"), &of(ALL))
}

/// Returns all pages of a query, which together are the whole query.
pub(crate) fn pages(items: &Items, random: &mut Random) -> String {
    let clauses = format!("{}{}", filter(items, random), order(items, random));
    let body = projection(items, random);
    let limit = 1 + random.below(4);
    format!(
        "let whole = for r in items{clauses} {{ {body} }}\n  \
         let (found, _, _) = loop (found, cursor, more) = ([], None, true) {{\n    \
         let (page, next) = for r in items{clauses} limit {limit} after cursor {{ {body} }}?\n    \
         (found + page, next, next != None)\n  }} until !more at most 200\n  \
         if found != whole {{ fail(\"differ: {{json.encode(found)}} and {{json.encode(whole)}}\") }}\n  json.encode(found)"
    )
}

/// A read of a row by a key that a row `r` has, in two spellings.
struct KeyedRead {
    table: String,
    list: String,
    /// True if it reads an item.
    of_items: bool,
}

/// Returns a read of the owner of a row, or of another item, whose key has columns of the row and literals.
fn keyed_read(items: &Items, random: &mut Random) -> KeyedRead {
    if random.below(2) == 0 {
        let list = "(for o in owners if o.name == r.owner { o }).first()".to_owned();
        return KeyedRead { table: "owners[r.owner]".to_owned(), list, of_items: false };
    }
    let mut part = |at: &usize| {
        let column = &items.columns[*at];
        let same_kind = items.any_of(random, |other| other.kind == column.kind);
        match random.below(3) {
            0 => column.kind.literal(random),
            1 if same_kind.kind == column.kind => format!("r.{}", same_kind.name),
            _ => format!("r.{}", column.name),
        }
    };
    let parts: Vec<String> = items.key.iter().map(&mut part).collect();
    let tests = items.key.iter().zip(&parts).map(|(at, part)| format!("o.{} == {part}", items.columns[*at].name));
    let tests = tests.collect::<Vec<_>>().join(" && ");
    let key = if parts.len() == 1 { parts[0].clone() } else { format!("({})", parts.join(", ")) };
    let list = format!("(for o in {ALL} if {tests} {{ o }}).first()");
    KeyedRead { table: format!("items[{key}]"), list, of_items: true }
}

/// Returns a query that reads other rows by columns of each row, in its body or also in its condition.
pub(crate) fn join(items: &Items, random: &mut Random) -> String {
    let (filter, order) = (filter(items, random), order(items, random));
    let limit = if random.below(3) == 0 { format!(" limit {}", random.below(5)) } else { String::new() };
    let reads: Vec<KeyedRead> = (0..=random.below(3)).map(|_| keyed_read(items, random)).collect();
    let column = items.any(random).shown("r");
    let chosen = random.below(3) == 0;
    let test = if random.below(2) == 0 { "!=" } else { "==" };
    let of = |rows: &str, read: fn(&KeyedRead) -> &String| {
        let filter = match (chosen, filter.is_empty()) {
            (false, _) => filter.clone(),
            (true, true) => format!(" if {} {test} None", read(&reads[0])),
            (true, false) => format!("{filter} && {} {test} None", read(&reads[0])),
        };
        let shown = |of: &KeyedRead| if of.of_items { items.shown_option(read(of)) } else { read(of).clone() };
        let values: Vec<String> = reads.iter().map(shown).collect();
        format!("for r in {rows}{filter}{order}{limit} {{ ({column}, {}) }}", values.join(", "))
    };
    both(&of("items", |of| &of.table), &of(ALL, |of| &of.list))
}
