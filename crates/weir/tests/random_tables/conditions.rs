//! Random conditions on the rows of the table `items`.

use test_support::random::Random;

use crate::tables::{Items, Kind};

/// One condition of so many can fail.
const FAILING_ONE_OF: u64 = 10;

/// Returns a condition on the row `r`, which rarely fails for some of the rows.
///
/// The table may leave out a row for which a part fails that stands before a comparison, while a list comes to it. So the part is
/// mostly the last one: then both spellings of a statement agree.
pub(crate) fn condition(items: &Items, random: &mut Random) -> String {
    let mut parts: Vec<String> = (0..=random.below(3)).map(|_| part(items, random)).collect();
    if random.below(FAILING_ONE_OF) == 0 {
        let at = if random.below(3) == 0 { 0 } else { parts.len() };
        parts.insert(at, failing(items, random));
    }
    parts.join(" && ")
}

/// Returns a condition that fails for some values of a column: the flow ends if it is evaluated for such a row.
fn failing(items: &Items, random: &mut Random) -> String {
    let column = items.any(random);
    let name = &column.name;
    match column.kind {
        Kind::Duration => format!("r.{name} * 9_000_000_000 > 0s"),
        Kind::Size => format!("r.{name} - 1kb < 3mb"),
        Kind::Time => format!("r.{name} + 5s > t0"),
        Kind::Text => format!("6 % r.{name}.length() == 0"),
        _ => match random.below(4) {
            0 => "r.number + 9_223_372_036_854_775_806 > 0".to_owned(),
            1 => "[4, 5, 6][r.number] > 4".to_owned(),
            2 => "r.number * r.number < 4".to_owned(),
            _ => "12 / r.number > 4".to_owned(),
        },
    }
}

fn part(items: &Items, random: &mut Random) -> String {
    match random.below(8) {
        // The table searches none of these.
        0 => format!("({} || {})", comparison(items, random), comparison(items, random)),
        1 => format!("r.owner.length() + r.owner.length() < {}", random.below(5)),
        2 => format!("(r.number % 3) == {}", random.below(3)),
        3 => format!("!({})", comparison(items, random)),
        _ => comparison(items, random),
    }
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// Returns a comparison of a column with a value.
fn comparison(items: &Items, random: &mut Random) -> String {
    let column = items.any(random);
    if let Some(present) = column.kind.present()
        && random.below(2) == 0
    {
        return comparison_if_present(&column.name, present, random);
    }
    if column.kind == Kind::Bool && random.below(2) == 0 {
        return format!("{}r.{}", if random.below(2) == 0 { "!" } else { "" }, column.name);
    }
    let comparison = COMPARISONS[random.below(if column.kind.has_order() { 6 } else { 2 }) as usize];
    let value = match column.kind {
        // A value that the flow computes.
        Kind::Int if random.below(4) == 0 => "(n % 4)".to_owned(),
        // The flow ends, also if the table has no rows.
        Kind::Int if random.below(20) == 0 => "(12 / (n % 4))".to_owned(),
        kind => kind.literal(random),
    };
    if random.below(6) == 0 {
        return format!("{value} {comparison} r.{}", column.name);
    }
    format!("r.{} {comparison} {value}", column.name)
}

/// Returns a comparison of a column that may be absent, whose values are of this kind.
fn comparison_if_present(column: &str, present: Kind, random: &mut Random) -> String {
    let comparison = COMPARISONS[random.below(if present.has_order() { 6 } else { 2 }) as usize];
    let value = present.literal(random);
    let (some, none) = (format!("Some(it) => it {comparison} {value}"), ["false", "false", "true"]);
    let none = format!("None => {}", none[random.below(3) as usize]);
    format!("match r.{column} {{ {some}, {none} }}")
}
