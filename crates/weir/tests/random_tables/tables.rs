//! Random tables, and literals of their columns.

use test_support::random::Random;

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Int,
    Text,
    Bytes,
    Float,
    Bool,
    Enum,
    Time,
    Duration,
    Size,
    OptionalInt,
    OptionalText,
    OptionalFloat,
    OptionalEnum,
    OptionalTime,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::Int,
        Kind::Text,
        Kind::Bytes,
        Kind::Float,
        Kind::Bool,
        Kind::Enum,
        Kind::Time,
        Kind::Duration,
        Kind::Size,
        Kind::OptionalInt,
        Kind::OptionalText,
        Kind::OptionalFloat,
        Kind::OptionalEnum,
        Kind::OptionalTime,
    ];

    pub(crate) fn ty(self) -> &'static str {
        match self {
            Kind::Int => "Int",
            Kind::Text => "Text",
            Kind::Bytes => "Bytes",
            Kind::Float => "Float",
            Kind::Bool => "Bool",
            Kind::Enum => "Level",
            Kind::Time => "Time",
            Kind::Duration => "Duration",
            Kind::Size => "Size",
            Kind::OptionalInt => "Option(Int)",
            Kind::OptionalText => "Option(Text)",
            Kind::OptionalFloat => "Option(Float)",
            Kind::OptionalEnum => "Option(Level)",
            Kind::OptionalTime => "Option(Time)",
        }
    }

    /// Returns the kind of the values that are there, if one may be absent.
    pub(crate) fn present(self) -> Option<Kind> {
        match self {
            Kind::OptionalInt => Some(Kind::Int),
            Kind::OptionalText => Some(Kind::Text),
            Kind::OptionalFloat => Some(Kind::Float),
            Kind::OptionalEnum => Some(Kind::Enum),
            Kind::OptionalTime => Some(Kind::Time),
            _ => None,
        }
    }

    /// Returns whether a column of a key may have it.
    fn may_be_key(self) -> bool {
        self != Kind::Float && self.present().is_none()
    }

    /// Returns whether `<` compares values.
    pub(crate) fn has_order(self) -> bool {
        use Kind::{Bytes, Duration, Float, Int, Size, Text, Time};
        matches!(self, Int | Text | Bytes | Float | Time | Duration | Size)
    }

    /// Returns whether `order by` takes values.
    pub(crate) fn may_order_by(self) -> bool {
        self.has_order() || matches!(self, Kind::Bool | Kind::Enum)
    }

    /// Returns what shows a value in JSON, which has no `Bytes`.
    pub(crate) fn shown(self, value: &str) -> String {
        if self == Kind::Bytes { format!("hex.encode({value})") } else { value.to_owned() }
    }

    /// Returns a literal, one of few so that rows agree often.
    pub(crate) fn literal(self, random: &mut Random) -> String {
        if let Some(present) = self.present() {
            return if random.below(3) == 0 { "None".to_owned() } else { format!("Some({})", present.literal(random)) };
        }
        let among = |random: &mut Random, texts: &[&str]| texts[random.below(texts.len() as u64) as usize].to_owned();
        match self {
            Kind::Int if random.below(30) == 0 => {
                among(random, &["9_223_372_036_854_775_807", "-9_223_372_036_854_775_807"])
            }
            Kind::Int => (random.below(5) as i64 - 1).to_string(),
            Kind::Text => among(
                random,
                &["\"\"", "\"a\"", "\"B\"", "\"ä\"", "\"a\\0b\"", "\"'; --\"", "\"\\u{1}b\"", "\"z\\u{1F600}\""],
            ),
            Kind::Bytes => {
                // Also one that is no text.
                let texts = ["\"\"", "\"a\"", "\"a\\0\"", "\"B\""].map(|text| format!("bytes.of_text({text})"));
                let part = "bytes.slice(bytes.of_text(\"ä\"), 1, 2)".to_owned();
                random.pick(&[&texts[..], &[part]].concat()).clone()
            }
            Kind::Float if random.below(40) == 0 => "float.square_root(-1.0)".to_owned(),
            Kind::Float => among(random, &["-1.5", "0.0", "-0.0", "2.5", "1e300"]),
            Kind::Bool => among(random, &["true", "false"]),
            Kind::Enum => among(random, &["Level.Low", "Level.Middle", "Level.High"]),
            Kind::Time => among(random, &["t0", "(t0 - 1ms)", "(t0 + 1ms)", "t1", "(t1 + 5s)", "t2"]),
            Kind::Duration => among(random, &["0s", "1ms", "5s"]),
            Kind::Size if random.below(20) == 0 => {
                among(random, &["9223372036854775806b", "9223372036854775807b", "18446744073709551615b"])
            }
            Kind::Size => among(random, &["0b", "1kb", "3mb"]),
            _ => unreachable!("a value of {self:?} may be absent"),
        }
    }
}

/// A column of the table `items`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Column {
    /// Returns what shows the column of a row in JSON.
    pub(crate) fn shown(&self, row: &str) -> String {
        self.kind.shown(&format!("{row}.{}", self.name))
    }
}

/// The table `items`, whose rows may reference `owners`.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) columns: Vec<Column>,
    /// The columns of the key.
    pub(crate) key: Vec<usize>,
    pub(crate) auto: bool,
    /// The columns of each index, and whether it is unique.
    pub(crate) indexes: Vec<(Vec<usize>, bool)>,
    /// Clauses that the tables of a database which others have made do not have.
    own_clauses: String,
    /// A clause of the declaration of `owners`, or nothing.
    clause_of_owners: &'static str,
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
        let auto = random.below(3) == 0;
        let keys: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].kind.may_be_key()).collect();
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
        let references = random.below(2) == 0;
        let cascades = references && random.below(2) == 0;
        let mut indexes: Vec<(Vec<usize>, bool)> = Vec::new();
        for _ in 0..random.below(4) {
            let mut index: Vec<usize> = Vec::new();
            for _ in 0..=random.below(3) {
                let at = random.below(columns.len() as u64) as usize;
                if !index.contains(&at) {
                    index.push(at);
                }
            }
            if index != key && indexes.iter().all(|(known, _)| *known != index) {
                indexes.push((index, random.below(5) == 0));
            }
        }
        let mut own_clauses = String::new();
        if references {
            own_clauses += if cascades { " references owner: owners cascade" } else { " references owner: owners" };
        }
        let soft = ["", " soft", " soft(at_most: 5)", " soft(capacity: 1kb)"];
        let soft = soft.get(random.below(7) as usize).copied().unwrap_or_default();
        own_clauses += soft;
        // Stored rows do not reference soft ones, and no row references one that may be forgotten.
        let clause_of_owners = match random.below(6) {
            0 | 1 if !references || !soft.is_empty() => " soft",
            2 if !references => " soft(at_most: 4)",
            _ => "",
        };
        Items { columns, key, auto, indexes, own_clauses, clause_of_owners }
    }

    /// Returns the tables without the clauses that tables of a database which others have made do not have.
    pub(crate) fn of_any_database(self) -> Items {
        Items { own_clauses: String::new(), clause_of_owners: "", ..self }
    }

    /// Returns the declarations of the tables and of their types.
    pub(crate) fn declarations(&self) -> String {
        format!(
            "{}table owners: Owner key name{}\ntable items: Item{}{}\n",
            self.types(),
            self.clause_of_owners,
            self.clauses(),
            self.own_clauses
        )
    }

    /// Returns the declarations of the types of the rows.
    pub(crate) fn types(&self) -> String {
        let fields: Vec<String> =
            self.columns.iter().map(|column| format!("{}: {}", column.name, column.kind.ty())).collect();
        format!(
            "enum Level {{ Low, Middle, High }}\n\nrecord Owner {{ name: Text, age: Int }}\n\nrecord Item {{ {} }}\n\n",
            fields.join(", ")
        )
    }

    /// Returns the clauses of the declaration that say which columns are the key and which have indexes.
    pub(crate) fn clauses(&self) -> String {
        let mut clauses = format!(" key {}{}", self.tuple(&self.key), if self.auto { " auto" } else { "" });
        for (index, is_unique) in &self.indexes {
            clauses += &format!(" {} {}", if *is_unique { "unique" } else { "index" }, self.tuple(index));
        }
        clauses
    }

    /// Returns the names of columns as a declaration lists them.
    pub(crate) fn tuple(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|at| self.columns[*at].name.as_str()).collect();
        if names.len() == 1 { names[0].to_owned() } else { format!("({})", names.join(", ")) }
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

    /// Returns what shows a row in JSON, which has no `Bytes`.
    pub(crate) fn shown(&self, row: &str) -> String {
        if self.columns.iter().all(|column| column.kind != Kind::Bytes) {
            return row.to_owned();
        }
        let parts: Vec<String> = self.columns.iter().map(|column| column.shown(row)).collect();
        format!("({})", parts.join(", "))
    }

    /// Returns what shows an `Option` of a row in JSON.
    pub(crate) fn shown_option(&self, found: &str) -> String {
        match self.shown("it") {
            row if row == "it" => found.to_owned(),
            row => format!("(match {found} {{ Some(it) => Some({row}), None => None }})"),
        }
    }

    /// Returns the text of a key.
    pub(crate) fn encoded_key(&self, key: &str) -> String {
        let parts: Vec<String> = (0..self.key.len()).map(|at| format!("key.{at}")).collect();
        let parts = if parts.len() == 1 { vec!["key".to_owned()] } else { parts };
        let kinds = self.key.iter().map(|at| self.columns[*at].kind);
        if kinds.clone().all(|kind| kind != Kind::Bytes) {
            return format!("json.encode({key})");
        }
        let shown: Vec<String> = kinds.zip(parts).map(|(kind, part)| kind.shown(&part)).collect();
        format!("{{\n    let key = {key}\n    json.encode(({}))\n  }}", shown.join(", "))
    }
}
