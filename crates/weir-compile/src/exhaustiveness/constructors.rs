//! Patterns for the usefulness algorithm: a constructor and its fields.

use weir_host::{Library, TypeShape, Value};
use weir_syntax::ast::{Literal, LiteralValue, Pattern, PatternKind};

use crate::constant::literal_value;
use crate::typed_tree::TypedTree;
use crate::types::Ty;

/// A pattern without names.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum DeconstructedPattern {
    Wildcard,
    Constructed(Constructor, Vec<DeconstructedPattern>),
    Or(Vec<DeconstructedPattern>),
}

/// The outermost form of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Constructor {
    /// A variant, by its tag; `false` and `true` are 0 and 1.
    Variant(u32),
    /// A tuple, a record or `()`.
    Product,
    /// An `Int`, `Size` or `Duration` within these bounds, both inclusive.
    Range(i128, i128),
    /// This text or float.
    Constant(Value),
    /// Any constant that no pattern mentions.
    Unmentioned,
    /// A list of this length.
    FixedLength(usize),
    /// A list of at least `front + back` elements. The fields are the first `front` elements, then the last `back`.
    VariableLength { front: usize, back: usize },
}

impl Constructor {
    /// Returns the fields that a pattern with this constructor requires of a value with the constructor `other`; `None`
    /// if it does not match.
    pub(super) fn takes(
        &self,
        other: &Constructor,
        inner: &[DeconstructedPattern],
        parts: usize,
    ) -> Option<Vec<DeconstructedPattern>> {
        match (self, other) {
            (Constructor::Range(low, high), Constructor::Range(from, to)) => (low <= from && to <= high).then(Vec::new),
            (
                Constructor::VariableLength { front, back },
                Constructor::FixedLength(_) | Constructor::VariableLength { .. },
            ) => {
                if front + back > parts {
                    return None;
                }
                let middle = vec![DeconstructedPattern::Wildcard; parts - front - back];
                Some([&inner[..*front], &middle, &inner[*front..]].concat())
            }
            (own, other) => (own == other).then(|| {
                // An invalid pattern may have the wrong number of fields; it is reported elsewhere.
                let mut inner = inner.to_vec();
                inner.resize(parts, DeconstructedPattern::Wildcard);
                inner
            }),
        }
    }
}

/// The types and definitions that patterns refer to.
pub(super) struct MatchContext<'s> {
    pub(super) typed: &'s TypedTree,
    pub(super) library: &'s Library,
}

impl MatchContext<'_> {
    /// Converts a pattern; `None` if it is invalid and reported elsewhere.
    pub(super) fn deconstruct(&self, pattern: &Pattern) -> Option<DeconstructedPattern> {
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Bind(_) => Some(DeconstructedPattern::Wildcard),
            PatternKind::Error => None,
            PatternKind::Literal(literal) => Some(deconstruct_literal(literal)),
            PatternKind::Text { value, .. } => {
                Some(DeconstructedPattern::Constructed(Constructor::Constant(Value::text(value)), Vec::new()))
            }
            PatternKind::Range { low, high, inclusive } => {
                Some(deconstruct_range(low.as_ref(), high.as_ref(), *inclusive))
            }
            PatternKind::Variant { arguments, .. } => self.deconstruct_variant(pattern, arguments),
            PatternKind::Record { fields, .. } => self.deconstruct_record(pattern, fields),
            PatternKind::Tuple(parts) => {
                Some(DeconstructedPattern::Constructed(Constructor::Product, self.deconstruct_all(parts)?))
            }
            PatternKind::List { before, rest, after } => {
                let parts = [self.deconstruct_all(before)?, self.deconstruct_all(after)?].concat();
                let constructor = match rest {
                    Some(_) => Constructor::VariableLength { front: before.len(), back: after.len() },
                    None => Constructor::FixedLength(parts.len()),
                };
                Some(DeconstructedPattern::Constructed(constructor, parts))
            }
            PatternKind::Or(alternatives) => Some(DeconstructedPattern::Or(self.deconstruct_all(alternatives)?)),
        }
    }

    fn deconstruct_all(&self, patterns: &[Pattern]) -> Option<Vec<DeconstructedPattern>> {
        patterns.iter().map(|pattern| self.deconstruct(pattern)).collect()
    }

    fn deconstruct_variant(
        &self,
        pattern: &Pattern,
        arguments: &[weir_syntax::ast::PatternArgument],
    ) -> Option<DeconstructedPattern> {
        let constructor = Constructor::Variant(self.typed.pattern_tag(pattern.id)?);
        let ty = self.typed.pattern_type(pattern.id);
        let mut parts = vec![DeconstructedPattern::Wildcard; self.parts(&constructor, ty).len()];
        for (at, argument) in arguments.iter().enumerate() {
            let index = match &argument.name {
                Some(name) => self.payload_index(ty, &constructor, name.as_str()),
                None => Some(at),
            };
            *parts.get_mut(index?)? = self.deconstruct(&argument.pattern)?;
        }
        Some(DeconstructedPattern::Constructed(constructor, parts))
    }

    fn payload_index(&self, ty: &Ty, constructor: &Constructor, name: &str) -> Option<usize> {
        let (Constructor::Variant(tag), Some(TypeShape::Enum(variants))) = (constructor, self.shape(ty)) else {
            return None;
        };
        variants.get(*tag as usize)?.fields.iter().position(|field| field.name.as_str() == name)
    }

    fn deconstruct_record(
        &self,
        pattern: &Pattern,
        fields: &[weir_syntax::ast::FieldPattern],
    ) -> Option<DeconstructedPattern> {
        let Some(TypeShape::Record(all)) = self.shape(self.typed.pattern_type(pattern.id)) else { return None };
        let mut parts = vec![DeconstructedPattern::Wildcard; all.len()];
        for field in fields {
            let index = all.iter().position(|declared| declared.name.as_str() == field.name.as_str())?;
            parts[index] = self.deconstruct(&field.pattern)?;
        }
        Some(DeconstructedPattern::Constructed(Constructor::Product, parts))
    }

    fn shape(&self, ty: &Ty) -> Option<&TypeShape> {
        self.typed.declarations.definition(self.library, ty.name()?).map(|definition| &definition.shape)
    }

    /// Returns the types of the constructor's fields.
    pub(super) fn parts(&self, constructor: &Constructor, ty: &Ty) -> Vec<Ty> {
        match (constructor, ty) {
            (Constructor::Variant(1), Ty::Option(some)) => vec![(**some).clone()],
            (Constructor::Variant(0), Ty::Result(pair)) => vec![pair.0.clone()],
            (Constructor::Variant(1), Ty::Result(pair)) => vec![pair.1.clone()],
            (Constructor::Product, Ty::Tuple(parts)) => parts.to_vec(),
            (Constructor::FixedLength(length), Ty::List(element)) => vec![(**element).clone(); *length],
            (Constructor::VariableLength { front, back }, Ty::List(element)) => vec![(**element).clone(); front + back],
            (Constructor::Variant(tag), other) => match self.shape(other) {
                Some(TypeShape::Enum(variants)) => {
                    let fields = variants.get(*tag as usize).map_or(&[][..], |variant| &variant.fields);
                    fields.iter().map(|field| Ty::fixed(&field.ty)).collect()
                }
                _ => Vec::new(),
            },
            (Constructor::Product, other) => match self.shape(other) {
                Some(TypeShape::Record(fields)) => fields.iter().map(|field| Ty::fixed(&field.ty)).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Splits a pattern's constructor at the constructors in the first column of the rows.
    pub(super) fn split(&self, constructor: &Constructor, rows: &[Vec<DeconstructedPattern>]) -> Vec<Constructor> {
        match constructor {
            Constructor::Range(low, high) if low < high => intervals(*low, *high, &constructors(rows)),
            Constructor::VariableLength { front, back } => lengths(front + back, &constructors(rows)),
            other => vec![other.clone()],
        }
    }

    /// Returns all constructors of a type, split at those in the first column of the rows.
    pub(super) fn all_constructors(&self, ty: &Ty, rows: &[Vec<DeconstructedPattern>]) -> Vec<Constructor> {
        let mentioned = constructors(rows);
        match ty {
            ty if *ty == Ty::BOOL => vec![Constructor::Variant(0), Constructor::Variant(1)],
            Ty::Option(_) | Ty::Result(_) => vec![Constructor::Variant(0), Constructor::Variant(1)],
            Ty::Tuple(_) => vec![Constructor::Product],
            Ty::List(_) => lengths(0, &mentioned),
            ty if *ty == Ty::INT || *ty == Ty::DURATION => intervals(i64::MIN.into(), i64::MAX.into(), &mentioned),
            ty if *ty == Ty::SIZE => intervals(0, u64::MAX.into(), &mentioned),
            ty if *ty == Ty::UNIT => vec![Constructor::Product],
            other => match self.shape(other) {
                Some(TypeShape::Enum(variants)) => (0..variants.len() as u32).map(Constructor::Variant).collect(),
                Some(TypeShape::Record(_)) => vec![Constructor::Product],
                _ => mentioned.into_iter().cloned().chain([Constructor::Unmentioned]).collect(),
            },
        }
    }

    /// Formats the pattern as source text.
    pub(super) fn shown(&self, case: &DeconstructedPattern, ty: &Ty) -> String {
        let DeconstructedPattern::Constructed(constructor, inner) = case else { return "_".to_owned() };
        let types = self.parts(constructor, ty);
        let parts: Vec<String> = inner.iter().zip(&types).map(|(part, ty)| self.shown(part, ty)).collect();
        match constructor {
            Constructor::Variant(tag) => self.shown_variant(*tag, &parts, ty),
            Constructor::Product => self.shown_product(&parts, ty),
            Constructor::Range(low, high) => shown_interval(*low, *high),
            Constructor::Constant(value @ Value::Text(_)) => format!("{value:?}"),
            Constructor::Constant(value) => value.to_string(),
            Constructor::Unmentioned => "_".to_owned(),
            Constructor::FixedLength(_) => format!("[{}]", parts.join(", ")),
            Constructor::VariableLength { .. } if parts.is_empty() => "[..]".to_owned(),
            Constructor::VariableLength { .. } => format!("[{}, ..]", parts.join(", ")),
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

fn deconstruct_literal(literal: &Literal) -> DeconstructedPattern {
    let constructor = match literal.value {
        LiteralValue::Bool(value) => Constructor::Variant(value.into()),
        LiteralValue::Float(_) => Constructor::Constant(literal_value(literal)),
        _ => number(literal).map_or(Constructor::Unmentioned, |value| Constructor::Range(value, value)),
    };
    DeconstructedPattern::Constructed(constructor, Vec::new())
}

fn number(literal: &Literal) -> Option<i128> {
    match literal.value {
        LiteralValue::Int(value) => Some(value.into()),
        LiteralValue::Size(value) | LiteralValue::Duration(value) => Some(value.into()),
        LiteralValue::Float(_) | LiteralValue::Bool(_) => None,
    }
}

/// Converts a range. Like a guarded arm, a range of floats covers nothing for certain.
fn deconstruct_range(low: Option<&Literal>, high: Option<&Literal>, inclusive: bool) -> DeconstructedPattern {
    let bounds = |literal: Option<&Literal>, open: i128| literal.map_or(Some(open), number);
    let least = match low.or(high).map(|literal| literal.value) {
        Some(LiteralValue::Size(_)) => (0, i128::from(u64::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    match (bounds(low, least.0), bounds(high, least.1)) {
        (Some(from), Some(to)) => {
            let to = if inclusive || high.is_none() { to } else { to - 1 };
            if from > to {
                DeconstructedPattern::Or(Vec::new())
            } else {
                DeconstructedPattern::Constructed(Constructor::Range(from, to), Vec::new())
            }
        }
        _ => DeconstructedPattern::Constructed(Constructor::Constant(Value::Absent), Vec::new()),
    }
}

fn constructors(rows: &[Vec<DeconstructedPattern>]) -> Vec<&Constructor> {
    let mut found = Vec::new();
    for row in rows {
        constructors_of(&row[0], &mut found);
    }
    found
}

fn constructors_of<'c>(case: &'c DeconstructedPattern, found: &mut Vec<&'c Constructor>) {
    match case {
        DeconstructedPattern::Wildcard => {}
        DeconstructedPattern::Constructed(constructor, _) => {
            // Ranges are deduplicated later; there are few other constructors.
            if matches!(constructor, Constructor::Range(..)) || !found.contains(&constructor) {
                found.push(constructor);
            }
        }
        DeconstructedPattern::Or(cases) => cases.iter().for_each(|case| constructors_of(case, found)),
    }
}

/// Splits an interval at every bound that the constructors mention.
fn intervals(low: i128, high: i128, mentioned: &[&Constructor]) -> Vec<Constructor> {
    let mut cuts = vec![low];
    for constructor in mentioned {
        if let Constructor::Range(from, to) = constructor {
            cuts.extend([*from, *to + 1].into_iter().filter(|cut| low < *cut && *cut <= high));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    let ends = cuts.iter().skip(1).map(|cut| cut - 1).chain([high]);
    cuts.iter().zip(ends).map(|(from, to)| Constructor::Range(*from, to)).collect()
}

/// Returns the list lengths that the constructors distinguish, from `least` on. The last entry covers all longer lists.
fn lengths(least: usize, mentioned: &[&Constructor]) -> Vec<Constructor> {
    let longest = mentioned.iter().map(|constructor| match constructor {
        Constructor::FixedLength(length) => *length,
        Constructor::VariableLength { front, back } => front + back,
        _ => 0,
    });
    let longest = longest.max().unwrap_or(0).max(least);
    let all_longer = Constructor::VariableLength { front: longest + 1, back: 0 };
    (least..=longest).map(Constructor::FixedLength).chain([all_longer]).collect()
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
