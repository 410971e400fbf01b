//! Random tables, and literals of their columns.

use test_support::random::Random;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Int,
    Text,
    Float,
    Bool,
    Enum,
    Duration,
    Size,
    OptionalInt,
    OptionalText,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Int,
        Kind::Text,
        Kind::Float,
        Kind::Bool,
        Kind::Enum,
        Kind::Duration,
        Kind::Size,
        Kind::OptionalInt,
        Kind::OptionalText,
    ];

    pub(crate) fn ty(self) -> &'static str {
        match self {
            Kind::Int => "Int",
            Kind::Text => "Text",
            Kind::Float => "Float",
            Kind::Bool => "Bool",
            Kind::Enum => "Level",
            Kind::Duration => "Duration",
            Kind::Size => "Size",
            Kind::OptionalInt => "Option(Int)",
            Kind::OptionalText => "Option(Text)",
        }
    }

    /// Returns whether `<` compares values.
    pub(crate) fn has_order(self) -> bool {
        matches!(self, Kind::Int | Kind::Text | Kind::Float | Kind::Duration | Kind::Size)
    }

    /// Returns whether `order by` takes values.
    pub(crate) fn may_order_by(self) -> bool {
        self.has_order() || matches!(self, Kind::Bool | Kind::Enum)
    }

    /// Returns a literal, one of few so that rows agree often.
    pub(crate) fn literal(self, random: &mut Random) -> String {
        let among = |random: &mut Random, texts: &[&str]| texts[random.below(texts.len() as u64) as usize].to_owned();
        match self {
            Kind::Int if random.below(30) == 0 => {
                among(random, &["9_223_372_036_854_775_807", "-9_223_372_036_854_775_807"])
            }
            Kind::Int => (random.below(5) as i64 - 1).to_string(),
            Kind::Text => {
                among(random, &["\"\"", "\"a\"", "\"B\"", "\"ä\"", "\"a\\0b\"", "\"'; --\"", "\"z\\u{1F600}\""])
            }
            Kind::Float if random.below(40) == 0 => "float.square_root(-1.0)".to_owned(),
            Kind::Float => among(random, &["-1.5", "0.0", "-0.0", "2.5", "1e300"]),
            Kind::Bool => among(random, &["true", "false"]),
            Kind::Enum => among(random, &["Level.Low", "Level.Middle", "Level.High"]),
            Kind::Duration => among(random, &["0s", "1ms", "5s"]),
            Kind::Size if random.below(20) == 0 => {
                among(random, &["9223372036854775806b", "9223372036854775807b", "18446744073709551615b"])
            }
            Kind::Size => among(random, &["0b", "1kb", "3mb"]),
            Kind::OptionalInt | Kind::OptionalText if random.below(3) == 0 => "None".to_owned(),
            Kind::OptionalInt => format!("Some({})", Kind::Int.literal(random)),
            Kind::OptionalText => format!("Some({})", Kind::Text.literal(random)),
        }
    }
}

/// A column of the table `items`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The table `items`, whose rows may reference `owners`.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) columns: Vec<Column>,
    /// The columns of the key.
    pub(crate) key: Vec<usize>,
    pub(crate) auto: bool,
    /// The clauses of the declaration.
    clauses: String,
}

impl Items {
    pub(crate) fn new(random: &mut Random) -> Items {
        let mut columns = vec![Column { name: "id".to_owned(), kind: Kind::Int }];
        columns.push(Column { name: "owner".to_owned(), kind: Kind::Text });
        columns.push(Column { name: "number".to_owned(), kind: Kind::Int });
        for at in 0..1 + random.below(5) {
            let kind = Kind::ALL[random.below(Kind::ALL.len() as u64) as usize];
            columns.push(Column { name: format!("c{at}"), kind });
        }
        let mut clauses = String::new();
        let auto = random.below(3) == 0;
        let keys: Vec<usize> = (0..columns.len())
            .filter(|at| !matches!(columns[*at].kind, Kind::Float | Kind::OptionalInt | Kind::OptionalText))
            .collect();
        let mut key = vec![keys[random.below(keys.len() as u64) as usize]];
        for _ in 0..random.below(3) {
            let more = keys[random.below(keys.len() as u64) as usize];
            if !key.contains(&more) {
                key.push(more);
            }
        }
        if auto || random.below(3) == 0 {
            key = vec![0];
        }
        let listed = |columns: &[Column], of: &[usize]| {
            let names: Vec<&str> = of.iter().map(|at| columns[*at].name.as_str()).collect();
            if names.len() == 1 { names[0].to_owned() } else { format!("({})", names.join(", ")) }
        };
        clauses += &format!(" key {}{}", listed(&columns, &key), if auto { " auto" } else { "" });
        let references = random.below(2) == 0;
        let cascades = references && random.below(2) == 0;
        let mut indexes: Vec<Vec<usize>> = vec![key.clone()];
        for _ in 0..random.below(4) {
            let mut index: Vec<usize> = Vec::new();
            for _ in 0..=random.below(3) {
                let at = random.below(columns.len() as u64) as usize;
                if !index.contains(&at) {
                    index.push(at);
                }
            }
            if !indexes.contains(&index) {
                let word = if random.below(5) == 0 { "unique" } else { "index" };
                clauses += &format!(" {word} {}", listed(&columns, &index));
                indexes.push(index);
            }
        }
        if references {
            clauses += &format!(" references owner: owners{}", if cascades { " cascade" } else { "" });
        }
        match random.below(7) {
            0 => clauses += " soft",
            2 => clauses += " soft(capacity: 1kb)",
            1 => clauses += " soft(at_most: 5)",
            _ => {}
        }
        Items { columns, key, auto, clauses }
    }

    /// Returns the declarations of the tables and of their types.
    pub(crate) fn declarations(&self) -> String {
        let fields: Vec<String> =
            self.columns.iter().map(|column| format!("{}: {}", column.name, column.kind.ty())).collect();
        format!(
            "enum Level {{ Low, Middle, High }}\n\nrecord Owner {{ name: Text, age: Int }}\n\nrecord Item {{ {} }}\n\n\
             table owners: Owner key name\ntable items: Item{}\n",
            fields.join(", "),
            self.clauses
        )
    }

    /// Returns a random column.
    pub(crate) fn any(&self, random: &mut Random) -> &Column {
        &self.columns[random.below(self.columns.len() as u64) as usize]
    }

    /// Returns a random column for which the test holds; `id` if there are few.
    pub(crate) fn any_of(&self, random: &mut Random, test: impl Fn(&Column) -> bool) -> &Column {
        let mut found = (0..20).map(|_| self.any(random));
        found.find(|column| test(column)).unwrap_or(&self.columns[0])
    }

    /// Returns a literal of a row; without a column that the table numbers if `inserts`.
    pub(crate) fn row(&self, random: &mut Random, inserts: bool) -> String {
        let given = self.columns.iter().enumerate().filter(|(at, _)| !(inserts && self.auto && self.key == [*at]));
        let fields: Vec<String> =
            given.map(|(_, column)| format!("{}: {}", column.name, column.kind.literal(random))).collect();
        format!("Item {{ {} }}", fields.join(", "))
    }

    /// Returns a literal of a key.
    pub(crate) fn key_literal(&self, random: &mut Random) -> String {
        let parts: Vec<String> = self.key.iter().map(|at| self.columns[*at].kind.literal(random)).collect();
        if parts.len() == 1 { parts[0].clone() } else { format!("({})", parts.join(", ")) }
    }
}
