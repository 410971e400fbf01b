//! Random reads by keys that gather: in `fn`s that a `for` calls, in conditions, in arms, in `for`s in `for`s, and beside writes.

use test_support::random::Random;

use crate::queries::{ALL, both};
use crate::tables::Items;

/// An expression of an `Int` or a `Bool`, in two spellings: with reads by keys, and with queries of all rows.
struct Twin {
    table: String,
    list: String,
}

impl Twin {
    fn same(text: impl Into<String>) -> Twin {
        let table = text.into();
        Twin { list: table.clone(), table }
    }
}

/// Combines expressions.
fn twin(parts: &[&Twin], text: impl Fn(&[&str]) -> String) -> Twin {
    let of = |part: fn(&Twin) -> &String| text(&parts.iter().map(|twin| part(twin).as_str()).collect::<Vec<_>>());
    Twin { table: of(|twin| &twin.table), list: of(|twin| &twin.list) }
}

/// Returns the `fn`s that read rows.
pub(crate) fn functions(items: &Items) -> String {
    let columns = items.key.iter().map(|at| &items.columns[*at]);
    let parameters: Vec<String> =
        columns.enumerate().map(|(at, column)| format!("k{at}: {}", column.kind.ty())).collect();
    let names: Vec<String> = (0..parameters.len()).map(|at| format!("k{at}")).collect();
    let (parameters, key) = (parameters.join(", "), key_of(&names));
    format!(
        "fn item_at({parameters}) -> Option(Item) {{ items[{key}] }}\n\n\
         fn number_at({parameters}) -> Int {{\n  let found = items[{key}] else {{ return -7 }}\n  found.number % 1000\n}}\n\n\
         fn age_of(name: Text) -> Int {{\n  let owner = owners[name] else {{ return -1 }}\n  owner.age\n}}\n\n\
         fn is_known(name: Text, more: Int) -> Bool {{\n  if more < 1 {{ return false }}\n  owners[name] != None\n}}\n\n\
         {}{}{}",
        changed(items) + &tested() + KEYED,
        tried("tried", "owners[r.owner]", &items_of_row(items).table),
        tried("tried_of_lists", "(for o in owners if o.name == r.owner { o }).first()", &items_of_row(items).list)
    )
}

/// A `fn` whose keys fail for some rows: by arithmetic, which ends the flow, and by a `?`.
const KEYED: &str = "fn keyed(rows: List(Item)) -> Result(List(Int)) {
  let names = [\"\", \"a\", \"B\", \"ä\", \"a\", \"B\", \"?\"]
  let ages = for r in rows {
    let owner = owners[names[r.number % 8]] else { fail(\"nobody {r.number}\") }
    if r.number % 7 == 5 { fail(\"number {r.number}\") }
    let text = if r.number % 7 == 4 { \"?\" } else { \"{r.number}\" }
    let other = owners[names[owner.age + text.parse_int()? % 2]] else { fail(\"no other\") }
    owner.age * 7 + other.age
  }
  Ok(ages)
}

";

/// Returns the `Text` of a loop in the body of a flow, whose keys fail for some rows, and which a `fail` ends.
fn keyed_in_place() -> String {
    format!(
        "let names = [\"\", \"a\", \"B\", \"ä\", \"a\", \"B\", \"?\"]\n  let sum = fold sum = 0 for r in {ALL} {{\n    \
         let owner = owners[names[(r.number * 3) % 8]] else {{ fail(\"nobody {{r.number}}\") }}\n    \
         let other = owners[names[owner.age + r.number % 3]] else {{ fail(\"no other\") }}\n    \
         (sum + owner.age + other.age) % 1000\n  }}\n  \"{{sum}}\""
    )
}

/// Returns a `fn` whose loop fails at the first row without an owner or another item.
fn tried(name: &str, owner: &str, item: &str) -> String {
    format!(
        "fn {name}(rows: List(Item)) -> Result(List(Int)) {{\n  let ages = for r in rows {{\n    \
         let owner = {owner} else {{ fail(r.owner) }}\n    \
         if owner.age > 3 {{ fail(\"{{owner.age}} years\") }}\n    \
         let item = {item} else {{ fail(\"no item {{r.number}}\") }}\n    owner.age * 7 + item.number % 1000\n  }}\n  \
         Ok(ages)\n}}\n\n"
    )
}

/// Returns two `fn`s that test each row when its round comes, in the head and in the body of a loop. The rounds change what is tested, and
/// the `fn`s take that back.
fn tested() -> String {
    let test = "(match owners[r.owner] { Some(it) => it.age, None => 0 }) < 3";
    let write =
        "if r.number % 5 == 4 { fail(\"number {r.number}\") }\n    owners.upsert(Owner { name: r.owner, age: 5 })?";
    let headed = format!("for r in rows if {test} {{\n    {write}\n    r.number\n  }}");
    let bodied = format!(
        "fold found = [] for r in rows {{\n    if {test} {{\n    {write}\n    found + [r.number]\n  }} else {{ found }}\n  }}"
    );
    let of = |name: &str, rounds: &str| {
        let body = format!("let found = {rounds}\n  fail(\"{{found}}\")");
        format!("fn {name}(rows: List(Item)) -> Result(Int) {{\n  atomic owners {{\n  {body}\n  }}\n}}\n\n")
    };
    of("headed", &headed) + &of("bodied", &bodied)
}

/// Returns a `fn` that changes items until it finds one without an owner.
fn changed(items: &Items) -> String {
    format!(
        "fn changed(rows: List(Item)) -> Result(List(Text)) {{\n  let changed = for r in rows {{\n    \
         let owner = owners[r.owner] else {{ fail(r.owner) }}\n    \
         let known = items.update({}, |r| Item {{ ..r, number: (r.number + 1) % 9 }})?\n    \
         \"{{owner.age}} {{known}}\"\n  }}\n  Ok(changed)\n}}\n\n",
        key_of_row(items)
    )
}

/// Returns a read of the item whose key is that of the row `r`, but for its last part.
fn items_of_row(items: &Items) -> Twin {
    let mut parts: Vec<String> = items.key.iter().map(|at| format!("r.{}", items.columns[*at].name)).collect();
    if let (Some(part), Some(at)) = (parts.last_mut(), items.key.last())
        && items.columns[*at].kind.ty() == "Text"
    {
        part.replace_range(.., "r.owner");
    }
    let tests = items.key.iter().zip(&parts).map(|(at, part)| format!("o.{} == {part}", items.columns[*at].name));
    let tests = tests.collect::<Vec<_>>().join(" && ");
    Twin { table: format!("items[{}]", key_of(&parts)), list: format!("(for o in {ALL} if {tests} {{ o }}).first()") }
}

fn key_of(parts: &[String]) -> String {
    if parts.len() == 1 { parts[0].clone() } else { format!("({})", parts.join(", ")) }
}

/// Returns a read of another item, an `Option(Item)`, by columns of the row with this name and literals.
fn item(items: &Items, row: &str, random: &mut Random) -> Twin {
    let parts: Vec<String> = items
        .key
        .iter()
        .map(|at| match random.below(3) {
            0 => items.columns[*at].kind.literal(random),
            _ => format!("{row}.{}", items.columns[*at].name),
        })
        .collect();
    let tests = items.key.iter().zip(&parts).map(|(at, part)| format!("o.{} == {part}", items.columns[*at].name));
    let tests = tests.collect::<Vec<_>>().join(" && ");
    let table = match random.below(2) {
        0 => format!("items[{}]", key_of(&parts)),
        _ => format!("item_at({})", parts.join(", ")),
    };
    Twin { table, list: format!("(for o in {ALL} if {tests} {{ o }}).first()") }
}

/// Returns the number of another item.
fn number(items: &Items, row: &str, random: &mut Random) -> Twin {
    let of = |found: &str| format!("(match {found} {{ Some(it) => it.number % 1000, None => -7 }})");
    let found = item(items, row, random);
    let table = match found.table.strip_prefix("item_at(") {
        Some(arguments) => format!("number_at({arguments}"),
        None => of(&found.table),
    };
    Twin { table, list: of(&found.list) }
}

/// Returns the age of the owner of a row.
fn age(row: &str, random: &mut Random) -> Twin {
    let of = |owner: &str| format!("(match {owner} {{ Some(it) => it.age, None => -1 }})");
    let list = of(&format!("(for o in owners if o.name == {row}.owner {{ o }}).first()"));
    let table = match random.below(2) {
        0 => of(&format!("owners[{row}.owner]")),
        _ => format!("age_of({row}.owner)"),
    };
    Twin { table, list }
}

/// Returns a `Bool` of the row with this name.
fn test(items: &Items, row: &str, depth: u32, random: &mut Random) -> Twin {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => Twin::same(format!("{row}.number % 3 != {}", random.below(3))),
        1 => twin(&[&item(items, row, random)], |part| format!("{} != None", part[0])),
        2 => twin(&[&age(row, random)], |part| format!("{} > 0", part[0])),
        3 => {
            let list =
                format!("({row}.number >= 1 && (for o in owners if o.name == {row}.owner {{ o }}).length() > 0)");
            Twin { table: format!("is_known({row}.owner, {row}.number)"), list }
        }
        4 => {
            let (one, other) = (test(items, row, depth - 1, random), test(items, row, depth - 1, random));
            let and = random.below(2) == 0;
            twin(&[&one, &other], |part| format!("({} {} {})", part[0], if and { "&&" } else { "||" }, part[1]))
        }
        _ => {
            let limit = random.below(5);
            twin(&[&value(items, row, depth - 1, random)], |part| format!("{} != {limit}", part[0]))
        }
    }
}

/// Returns an `Int` of the row with this name.
fn value(items: &Items, row: &str, depth: u32, random: &mut Random) -> Twin {
    if depth == 0 {
        return match random.below(4) {
            0 => Twin::same(format!("{row}.number % 10")),
            1 => age(row, random),
            _ => number(items, row, random),
        };
    }
    match random.below(4) {
        0 => {
            let parts = [
                &test(items, row, depth - 1, random),
                &value(items, row, depth - 1, random),
                &value(items, row, depth - 1, random),
            ];
            twin(&parts, |part| format!("(if {} {{ {} }} else {{ {} }})", part[0], part[1], part[2]))
        }
        1 => {
            let inner = format!("i{depth}");
            let parts = [
                &item(items, row, random),
                &value(items, &inner, depth - 1, random),
                &value(items, row, depth - 1, random),
            ];
            twin(&parts, |part| format!("(match {} {{ Some({inner}) => {}, None => {} }})", part[0], part[1], part[2]))
        }
        2 => {
            let parts = [&value(items, row, depth - 1, random), &value(items, row, depth - 1, random)];
            twin(&parts, |part| format!("({} * 3 + {}) % 1000", part[0], part[1]))
        }
        _ => {
            let inner = format!("r{depth}");
            let parts = [&test(items, &inner, depth - 1, random), &value(items, &inner, depth - 1, random)];
            twin(&parts, |part| format!("(for {inner} in {ALL} if {} {{ {} }}).sum() % 1000", part[0], part[1]))
        }
    }
}

/// Returns a query of a list of all rows whose rounds read others by their keys.
pub(crate) fn gathered(items: &Items, random: &mut Random) -> String {
    let rows = [ALL, "items"][random.below(2) as usize];
    let depth = 1 + random.below(2) as u32;
    let shown =
        |name: &str| format!("match {name}({ALL}) {{ Ok(found) => \"{{found}}\", Err(failure) => \"{{failure}}\" }}");
    match random.below(9) {
        0 | 1 => return both(&shown("tried"), &shown("tried_of_lists")),
        3 if random.below(2) == 0 => return shown("keyed"),
        3 => return keyed_in_place(),
        2 => return both(&shown("headed"), &shown("bodied")),
        _ => {}
    }
    let body = value(items, "r", depth, random);
    if random.below(3) == 0 {
        return both(&format!("{ALL}.map(|r| {})", body.table), &format!("for r in {ALL} {{ {} }}", body.list));
    }
    let test = test(items, "r", depth, random);
    let of =
        |rows: &str, part: fn(&Twin) -> &String| format!("for r in {rows} if {} {{ {} }}", part(&test), part(&body));
    both(&of(rows, |twin| &twin.table), &of(ALL, |twin| &twin.list))
}

/// Returns a `for` whose rounds read rows by keys, and write one of the tables. The evaluator says what it answers.
pub(crate) fn gathered_and_written(items: &Items, random: &mut Random) -> String {
    if random.below(4) == 0 {
        return format!("match changed({ALL}) {{ Ok(rows) => json.encode(rows), Err(failure) => \"{{failure}}\" }}");
    }
    let (before, behind) = (value(items, "r", 1, random).table, value(items, "r", 1, random).table);
    let test = test(items, "r", 1, random).table;
    let write = match random.below(4) {
        0 => "owners.upsert(Owner { name: r.owner, age: (before + 7) % 7 })?".to_owned(),
        1 => "if before % 2 == 0 { owners.delete(r.owner)? } else { false }".to_owned(),
        2 => format!("items.update({}, |r| Item {{ ..r, number: (r.number + 1) % 9 }})?", key_of_row(items)),
        _ => format!("if {test} {{ items.delete({})? }} else {{ false }}", key_of_row(items)),
    };
    format!(
        "let found = for r in {ALL} if {test} {{\n    let before = {before}\n    let written = {write}\n    \
         \"{{before}} {{written}} {{{behind}}}\"\n  }}\n  json.encode(found)"
    )
}

fn key_of_row(items: &Items) -> String {
    let parts: Vec<String> = items.key.iter().map(|at| format!("r.{}", items.columns[*at].name)).collect();
    key_of(&parts)
}
