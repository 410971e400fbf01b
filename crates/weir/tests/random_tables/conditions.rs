//! Random conditions on the rows of the table `items`.

use test_support::random::Random;

use crate::tables::{Items, Kind};

/// Returns a condition on the row `r`. It cannot fail, so that it means the same wherever it is evaluated.
pub(crate) fn condition(items: &Items, random: &mut Random) -> String {
    let parts: Vec<String> = (0..=random.below(3)).map(|_| part(items, random)).collect();
    parts.join(" && ")
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

/// Returns a comparison of a column with a value.
fn comparison(items: &Items, random: &mut Random) -> String {
    const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
    let column = items.any(random);
    if column.kind == Kind::Bool && random.below(2) == 0 {
        return format!("{}r.{}", if random.below(2) == 0 { "!" } else { "" }, column.name);
    }
    let comparison = COMPARISONS[random.below(if column.kind.has_order() { 6 } else { 2 }) as usize];
    let value = match column.kind {
        // A value that the flow computes.
        Kind::Int if random.below(4) == 0 => "(n % 4)".to_owned(),
        kind => kind.literal(random),
    };
    if random.below(6) == 0 {
        return format!("{value} {comparison} r.{}", column.name);
    }
    format!("r.{} {comparison} {value}", column.name)
}
