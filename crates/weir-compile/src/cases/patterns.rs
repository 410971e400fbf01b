//! Patterns as the search for missing cases sees them: a head and its parts.

use weir_host::{Library, TypeShape, Value};
use weir_syntax::ast::{Literal, LiteralValue, Pattern, PatternKind};

use crate::constant::literal_value;
use crate::typed::Typed;
use crate::types::Ty;

/// A pattern without names.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Case {
    Any,
    Of(Head, Vec<Case>),
    Either(Vec<Case>),
}

/// The outermost form of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Head {
    /// A variant; `false` and `true` are 0 and 1.
    Tag(u32),
    /// A tuple or record, or `()`.
    Product,
    /// A whole number, size or duration in these bounds, both included.
    Between(i128, i128),
    /// Exactly this text or float.
    Value(Value),
    /// No value that a pattern mentions.
    Other,
    /// A list of so many elements.
    Length(usize),
    /// A list of at least so many elements; the parts are those at its front, then those at its end.
    AtLeast { front: usize, back: usize },
}

impl Head {
    /// The parts of a pattern with this head for a value with the head `other`; `None` where it does not match.
    pub(super) fn takes(&self, other: &Head, inner: &[Case], parts: usize) -> Option<Vec<Case>> {
        match (self, other) {
            (Head::Between(low, high), Head::Between(from, to)) => (low <= from && to <= high).then(Vec::new),
            (Head::AtLeast { front, back }, Head::Length(_) | Head::AtLeast { .. }) => {
                if front + back > parts {
                    return None;
                }
                let middle = vec![Case::Any; parts - front - back];
                Some([&inner[..*front], &middle, &inner[*front..]].concat())
            }
            (own, other) => (own == other).then(|| {
                // A pattern with a fault has the wrong number of parts; the fault is told already.
                let mut inner = inner.to_vec();
                inner.resize(parts, Case::Any);
                inner
            }),
        }
    }
}

/// The types and definitions that patterns are looked at with.
pub(super) struct Space<'s> {
    pub(super) typed: &'s Typed,
    pub(super) library: &'s Library,
}

impl Space<'_> {
    /// The pattern without names; `None` where it has a fault that is told already.
    pub(super) fn case(&self, pattern: &Pattern) -> Option<Case> {
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Bind(_) => Some(Case::Any),
            PatternKind::Error => None,
            PatternKind::Literal(literal) => Some(literal_case(literal)),
            PatternKind::Text { value, .. } => Some(Case::Of(Head::Value(Value::text(value)), Vec::new())),
            PatternKind::Range { low, high, inclusive } => Some(range_case(low.as_ref(), high.as_ref(), *inclusive)),
            PatternKind::Variant { arguments, .. } => self.variant_case(pattern, arguments),
            PatternKind::Record { fields, .. } => self.record_case(pattern, fields),
            PatternKind::Tuple(parts) => Some(Case::Of(Head::Product, self.cases(parts)?)),
            PatternKind::List { before, rest, after } => {
                let parts = [self.cases(before)?, self.cases(after)?].concat();
                let head = match rest {
                    Some(_) => Head::AtLeast { front: before.len(), back: after.len() },
                    None => Head::Length(parts.len()),
                };
                Some(Case::Of(head, parts))
            }
            PatternKind::Or(alternatives) => Some(Case::Either(self.cases(alternatives)?)),
        }
    }

    fn cases(&self, patterns: &[Pattern]) -> Option<Vec<Case>> {
        patterns.iter().map(|pattern| self.case(pattern)).collect()
    }

    fn variant_case(&self, pattern: &Pattern, arguments: &[weir_syntax::ast::PatternArgument]) -> Option<Case> {
        let head = Head::Tag(*self.typed.pattern_tags.get(&pattern.id)?);
        let ty = self.typed.pattern_type(pattern.id);
        let mut parts = vec![Case::Any; self.parts(&head, ty).len()];
        for (at, argument) in arguments.iter().enumerate() {
            let index = match &argument.name {
                Some(name) => self.payload_index(ty, &head, name.as_str()),
                None => Some(at),
            };
            *parts.get_mut(index?)? = self.case(&argument.pattern)?;
        }
        Some(Case::Of(head, parts))
    }

    fn payload_index(&self, ty: &Ty, head: &Head, name: &str) -> Option<usize> {
        let (Head::Tag(tag), Some(TypeShape::Enum(variants))) = (head, self.shape(ty)) else { return None };
        variants.get(*tag as usize)?.fields.iter().position(|field| field.name.as_str() == name)
    }

    fn record_case(&self, pattern: &Pattern, fields: &[weir_syntax::ast::FieldPattern]) -> Option<Case> {
        let Some(TypeShape::Record(all)) = self.shape(self.typed.pattern_type(pattern.id)) else { return None };
        let mut parts = vec![Case::Any; all.len()];
        for field in fields {
            let index = all.iter().position(|declared| declared.name.as_str() == field.name.as_str())?;
            parts[index] = self.case(&field.pattern)?;
        }
        Some(Case::Of(Head::Product, parts))
    }

    fn shape(&self, ty: &Ty) -> Option<&TypeShape> {
        self.typed.declarations.definition(self.library, ty.name()?).map(|definition| &definition.shape)
    }

    /// The types of the parts of a value with this head.
    pub(super) fn parts(&self, head: &Head, ty: &Ty) -> Vec<Ty> {
        match (head, ty) {
            (Head::Tag(1), Ty::Option(some)) => vec![(**some).clone()],
            (Head::Tag(0), Ty::Result(pair)) => vec![pair.0.clone()],
            (Head::Tag(1), Ty::Result(pair)) => vec![pair.1.clone()],
            (Head::Product, Ty::Tuple(parts)) => parts.to_vec(),
            (Head::Length(length), Ty::List(element)) => vec![(**element).clone(); *length],
            (Head::AtLeast { front, back }, Ty::List(element)) => vec![(**element).clone(); front + back],
            (Head::Tag(tag), other) => match self.shape(other) {
                Some(TypeShape::Enum(variants)) => {
                    let fields = variants.get(*tag as usize).map_or(&[][..], |variant| &variant.fields);
                    fields.iter().map(|field| Ty::fixed(&field.ty)).collect()
                }
                _ => Vec::new(),
            },
            (Head::Product, other) => match self.shape(other) {
                Some(TypeShape::Record(fields)) => fields.iter().map(|field| Ty::fixed(&field.ty)).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The heads that a pattern's head falls into, with respect to the first patterns of the rows.
    pub(super) fn split(&self, head: &Head, rows: &[Vec<Case>]) -> Vec<Head> {
        match head {
            Head::Between(low, high) if low < high => intervals(*low, *high, &heads(rows)),
            Head::AtLeast { front, back } => lengths(front + back, &heads(rows)),
            other => vec![other.clone()],
        }
    }

    /// Every head that a value of the type may have, with respect to the first patterns of the rows.
    pub(super) fn all_heads(&self, ty: &Ty, rows: &[Vec<Case>]) -> Vec<Head> {
        let mentioned = heads(rows);
        match ty {
            ty if *ty == Ty::BOOL => vec![Head::Tag(0), Head::Tag(1)],
            Ty::Option(_) | Ty::Result(_) => vec![Head::Tag(0), Head::Tag(1)],
            Ty::Tuple(_) => vec![Head::Product],
            Ty::List(_) => lengths(0, &mentioned),
            ty if *ty == Ty::INT || *ty == Ty::DURATION => intervals(i64::MIN.into(), i64::MAX.into(), &mentioned),
            ty if *ty == Ty::SIZE => intervals(0, u64::MAX.into(), &mentioned),
            ty if *ty == Ty::UNIT => vec![Head::Product],
            other => match self.shape(other) {
                Some(TypeShape::Enum(variants)) => (0..variants.len() as u32).map(Head::Tag).collect(),
                Some(TypeShape::Record(_)) => vec![Head::Product],
                _ => mentioned.into_iter().cloned().chain([Head::Other]).collect(),
            },
        }
    }

    /// The case as the text would write it.
    pub(super) fn shown(&self, case: &Case, ty: &Ty) -> String {
        let Case::Of(head, inner) = case else { return "_".to_owned() };
        let types = self.parts(head, ty);
        let parts: Vec<String> = inner.iter().zip(&types).map(|(part, ty)| self.shown(part, ty)).collect();
        match head {
            Head::Tag(tag) => self.shown_variant(*tag, &parts, ty),
            Head::Product => self.shown_product(&parts, ty),
            Head::Between(low, high) => shown_interval(*low, *high),
            Head::Value(value @ Value::Text(_)) => format!("{value:?}"),
            Head::Value(value) => value.to_string(),
            Head::Other => "_".to_owned(),
            Head::Length(_) => format!("[{}]", parts.join(", ")),
            Head::AtLeast { .. } if parts.is_empty() => "[..]".to_owned(),
            Head::AtLeast { .. } => format!("[{}, ..]", parts.join(", ")),
        }
    }

    fn shown_variant(&self, tag: u32, parts: &[String], ty: &Ty) -> String {
        let name = match (ty, tag) {
            (Ty::Option(_), 0) => "None",
            (Ty::Option(_), _) => "Some",
            (Ty::Result(_), 0) => "Ok",
            (Ty::Result(_), _) => "Err",
            (ty, 0) if *ty == Ty::BOOL => "false",
            (ty, _) if *ty == Ty::BOOL => "true",
            (other, _) => match self.shape(other) {
                Some(TypeShape::Enum(variants)) => variants.get(tag as usize).map_or("_", |variant| &variant.name),
                _ => "_",
            },
        };
        if parts.is_empty() { name.to_owned() } else { format!("{name}({})", parts.join(", ")) }
    }

    fn shown_product(&self, parts: &[String], ty: &Ty) -> String {
        let Some(TypeShape::Record(fields)) = self.shape(ty) else { return format!("({})", parts.join(", ")) };
        let named = fields.iter().zip(parts).filter(|(_, part)| *part != "_");
        let mut named: Vec<String> = named.map(|(field, part)| format!("{}: {part}", field.name)).collect();
        if named.len() < parts.len() {
            named.push("..".to_owned());
        }
        format!("{ty} {{ {} }}", named.join(", "))
    }
}

fn literal_case(literal: &Literal) -> Case {
    let head = match literal.value {
        LiteralValue::Bool(value) => Head::Tag(value.into()),
        LiteralValue::Float(_) => Head::Value(literal_value(literal)),
        _ => number(literal).map_or(Head::Other, |value| Head::Between(value, value)),
    };
    Case::Of(head, Vec::new())
}

fn number(literal: &Literal) -> Option<i128> {
    match literal.value {
        LiteralValue::Int(value) => Some(value.into()),
        LiteralValue::Size(value) | LiteralValue::Duration(value) => Some(value.into()),
        LiteralValue::Float(_) | LiteralValue::Bool(_) => None,
    }
}

/// A range of floats matches no head for sure, as a guard does.
fn range_case(low: Option<&Literal>, high: Option<&Literal>, inclusive: bool) -> Case {
    let bounds = |literal: Option<&Literal>, open: i128| literal.map_or(Some(open), number);
    let least = match low.or(high).map(|literal| literal.value) {
        Some(LiteralValue::Size(_)) => (0, i128::from(u64::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    match (bounds(low, least.0), bounds(high, least.1)) {
        (Some(from), Some(to)) => {
            let to = if inclusive || high.is_none() { to } else { to - 1 };
            if from > to { Case::Either(Vec::new()) } else { Case::Of(Head::Between(from, to), Vec::new()) }
        }
        _ => Case::Of(Head::Value(Value::Absent), Vec::new()),
    }
}

fn heads(rows: &[Vec<Case>]) -> Vec<&Head> {
    let mut found = Vec::new();
    for row in rows {
        heads_of(&row[0], &mut found);
    }
    found
}

fn heads_of<'c>(case: &'c Case, found: &mut Vec<&'c Head>) {
    match case {
        Case::Any => {}
        Case::Of(head, _) => {
            // Bounds are sorted later; what is left are few different heads.
            if matches!(head, Head::Between(..)) || !found.contains(&head) {
                found.push(head);
            }
        }
        Case::Either(cases) => cases.iter().for_each(|case| heads_of(case, found)),
    }
}

/// The interval cut at every bound that the heads mention.
fn intervals(low: i128, high: i128, mentioned: &[&Head]) -> Vec<Head> {
    let mut cuts = vec![low];
    for head in mentioned {
        if let Head::Between(from, to) = head {
            cuts.extend([*from, *to + 1].into_iter().filter(|cut| low < *cut && *cut <= high));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    let ends = cuts.iter().skip(1).map(|cut| cut - 1).chain([high]);
    cuts.iter().zip(ends).map(|(from, to)| Head::Between(*from, to)).collect()
}

/// The lengths from `least` on that the heads tell apart; the last stands for all longer lists.
fn lengths(least: usize, mentioned: &[&Head]) -> Vec<Head> {
    let longest = mentioned.iter().map(|head| match head {
        Head::Length(length) => *length,
        Head::AtLeast { front, back } => front + back,
        _ => 0,
    });
    let longest = longest.max().unwrap_or(0).max(least);
    let all_longer = Head::AtLeast { front: longest + 1, back: 0 };
    (least..=longest).map(Head::Length).chain([all_longer]).collect()
}

fn shown_interval(low: i128, high: i128) -> String {
    let least = low == i128::from(i64::MIN);
    let most = high == i128::from(i64::MAX) || high == i128::from(u64::MAX);
    match (least, most) {
        (true, true) => "_".to_owned(),
        (true, false) => format!("..={high}"),
        (false, true) => format!("{low}.."),
        (false, false) if low == high => low.to_string(),
        (false, false) => format!("{low}..={high}"),
    }
}
