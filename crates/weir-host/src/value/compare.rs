//! Structural equality, order and hashing of values; host values by identity.
//!
//! All three process a value's head (everything except its parts) and then its parts: by recursion to a depth of
//! [`NESTED_MAX`], which allocates nothing. A comparison starts over with a stack on the heap if
//! * values nest deeper than that, or
//! * it has taken [`STEPS_MAX`] steps: if each level of a value refers to the next one twice, the number of parts
//!   doubles with every level. From then on, pairs of shared parts are remembered once they have proved equal.
//!
//! A hash covers the first [`HASHED_MAX`] parts in the order of a walk. If there are more, it also covers a hash that
//! is composed of the hashes of the parts, so that each shared part is hashed once.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::{IndexMap, IndexSet};

use crate::Value;
use crate::value::NESTED_MAX;
use crate::value::entries::SEED;
use crate::value::walk::PartCursor;

/// The number of parts that a comparison visits before it begins to remember them.
const STEPS_MAX: u32 = 10_000;
/// The number of parts that a hash covers one after the other.
const HASHED_MAX: u32 = 4_096;

/// Structural equality. Floats compare by a total order, so that a value always equals itself: `-0.0` is before `0.0`, and NaN, which
/// has one of many bit patterns, equals NaN and comes last. A processor chooses the pattern, and a compiler may.
impl PartialEq for Value {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // The keys of most maps.
            (Value::Text(one), Value::Text(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            _ => self.cmp(other) == Ordering::Equal,
        }
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A total order: by type first, then by content.
impl Ord for Value {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // The keys of most tables.
            (Value::Int(one), Value::Int(other)) => one.cmp(other),
            (Value::Text(one), Value::Text(other)) => one.cmp(other),
            _ => compare(self, other, NESTED_MAX, &mut { STEPS_MAX }).unwrap_or_else(|| compare_deep(self, other)),
        }
    }
}

impl Value {
    /// Returns the kinds of values that [`Value::order_prefix`] depends on: those of the value, and of its first field.
    pub(super) fn order_kinds(&self) -> impl PartialEq + use<> {
        let first = if let Value::Record(fields) = self { fields.first() } else { None };
        (std::mem::discriminant(self), first.map(std::mem::discriminant))
    }

    /// Returns a number that orders values with the same [`Value::order_kinds`] as far as it goes: of two values with
    /// different prefixes, the lesser one has the lesser prefix.
    pub(super) fn order_prefix(&self) -> u64 {
        const SIGN: u64 = 1 << 63;
        match self {
            Value::Int(number) | Value::Time(number) | Value::Duration(number) => number.cast_unsigned() ^ SIGN,
            Value::Float(number) => {
                let bits = ordered(*number).to_bits();
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }
            Value::Size(bytes) => *bytes,
            Value::Text(text) => {
                let mut first = [0; 8];
                let length = text.len().min(first.len());
                first[..length].copy_from_slice(&text.as_bytes()[..length]);
                u64::from_be_bytes(first)
            }
            Value::Record(fields) => match fields.first() {
                // Of a record that begins with another one, the depth is unknown.
                Some(Value::Record(_)) | None => 0,
                Some(field) => field.order_prefix(),
            },
            Value::Variant(tag, _) => u64::from(*tag),
            _ => 0,
        }
    }
}

/// Compares by recursion; `None` if `depth` or `steps` do not suffice.
fn compare(one: &Value, other: &Value, depth: u32, steps: &mut u32) -> Option<Ordering> {
    let (parts, others) = match (one, other) {
        (Value::List(a), Value::List(b)) if a.is_same(b) => return Some(Ordering::Equal),
        (Value::List(a), Value::List(b)) => match (a.as_values(), b.as_values()) {
            (Some(a), Some(b)) => (a, b),
            _ => return compare_lists(one, other, depth, steps),
        },
        (Value::Record(a), Value::Record(b)) => (&**a, &**b),
        (Value::Variant(x, Some(a)), Value::Variant(y, Some(b))) if x == y => (&**a, &**b),
        (Value::Map(a), Value::Map(b)) if !a.is_same(b) => return compare_parts(one, other, depth, steps),
        (Value::Map(_), Value::Map(_)) => return Some(Ordering::Equal),
        _ => return Some(compare_heads(one, other)),
    };
    if std::ptr::eq(parts, others) {
        return Some(Ordering::Equal);
    }
    let depth = depth.checked_sub(1)?;
    for (one, other) in parts.iter().zip(others) {
        *steps = steps.checked_sub(1)?;
        let ordering = compare(one, other, depth, steps)?;
        if ordering.is_ne() {
            return Some(ordering);
        }
    }
    Some(parts.len().cmp(&others.len()))
}

/// Compares lists of which one is not stored as values. A packed list has no shared parts, so it takes no steps.
fn compare_lists(one: &Value, other: &Value, depth: u32, steps: &mut u32) -> Option<Ordering> {
    let (Value::List(a), Value::List(b)) = (one, other) else { return None };
    match (a.as_ints(), b.as_ints()) {
        (Some(a), Some(b)) => Some(a.cmp(b)),
        _ if let Some(ordering) = a.compare_records(b) => Some(ordering),
        _ if a.is_packed() && b.is_packed() => Some(a.iter().cmp(b.iter())),
        _ => compare_parts(one, other, depth, steps),
    }
}

/// Compares elements, or keys and values in the order of insertion.
fn compare_parts(one: &Value, other: &Value, depth: u32, steps: &mut u32) -> Option<Ordering> {
    let depth = depth.checked_sub(1)?;
    let (mut one, mut other) = (PartCursor::new(one), PartCursor::new(other));
    loop {
        *steps = steps.checked_sub(1)?;
        let ordering = match (one.advance(), other.advance()) {
            (Some(one), Some(other)) => compare(&one, &other, depth, steps)?,
            (None, None) => return Some(Ordering::Equal),
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        if ordering.is_ne() {
            return Some(ordering);
        }
    }
}

/// Compares with a stack on the heap, and compares no pair of shared parts twice.
fn compare_deep(one: &Value, other: &Value) -> Ordering {
    let ordering = compare_heads(one, other);
    if ordering.is_ne() {
        return ordering;
    }
    let mut open = vec![(PartCursor::new(one), PartCursor::new(other))];
    let mut equal: IndexSet<(usize, usize), RandomState> = IndexSet::default();
    while let Some((one, other)) = open.last_mut() {
        let ordering = match (one.advance(), other.advance()) {
            (Some(Cow::Borrowed(one)), Some(Cow::Borrowed(other))) => {
                let ordering = compare_heads(one, other);
                if ordering.is_eq() && !is_known(&mut equal, one, other) {
                    open.push((PartCursor::new(one), PartCursor::new(other)));
                }
                ordering
            }
            // An element that is not borrowed has at most scalars in it.
            (Some(one), Some(other)) => one.cmp(&other),
            (None, None) => {
                open.pop();
                Ordering::Equal
            }
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// Returns `true` if the parts of a pair need no comparison: both have none, they are the same in memory, or the pair was
/// seen before. If a pair that was seen proves different, so does the whole, so seen pairs count as equal.
fn is_known(seen: &mut IndexSet<(usize, usize), RandomState>, one: &Value, other: &Value) -> bool {
    match (shared_address(one), shared_address(other)) {
        (Some(Address { address, .. }), Some(Address { address: same, .. })) if address == same => true,
        (Some(one), Some(other)) if one.is_shared || other.is_shared => !seen.insert((one.address, other.address)),
        (None, None) => true,
        _ => false,
    }
}

/// Address of a value's parts in memory.
struct Address {
    address: usize,
    /// True if the parts may be shared.
    is_shared: bool,
}

/// Returns the address of a value's parts; `None` if it has none.
fn shared_address(value: &Value) -> Option<Address> {
    match value {
        // A list does not expose its reference count.
        Value::List(elements) if elements.is_empty() => None,
        Value::List(elements) => Some(Address { address: elements.address(), is_shared: true }),
        Value::Record(parts) | Value::Variant(_, Some(parts)) if !parts.is_empty() => {
            Some(Address { address: parts.as_ptr().addr(), is_shared: parts.is_shared() })
        }
        Value::Map(entries) if !entries.is_empty() => {
            Some(Address { address: entries.address(), is_shared: entries.is_shared() })
        }
        _ => None,
    }
}

/// Returns the number with the one bit pattern by which NaN is ordered.
fn ordered(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number }
}

fn compare_heads(one: &Value, other: &Value) -> Ordering {
    use Value::*;
    match (one, other) {
        (Bool(a), Bool(b)) => a.cmp(b),
        (Int(a), Int(b)) | (Time(a), Time(b)) | (Duration(a), Duration(b)) => a.cmp(b),
        (Float(a), Float(b)) => ordered(*a).total_cmp(&ordered(*b)),
        (Size(a), Size(b)) => a.cmp(b),
        (Text(a), Text(b)) => a.cmp(b),
        (Bytes(a), Bytes(b)) => a.cmp(b),
        (Variant(a, x), Variant(b, y)) => a.cmp(b).then(x.is_some().cmp(&y.is_some())),
        (Failure(a), Failure(b)) => a.kind.cmp(&b.kind).then_with(|| a.message.cmp(&b.message)),
        (Host(a), Host(b)) => Arc::as_ptr(a).cast::<()>().cmp(&Arc::as_ptr(b).cast::<()>()),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Absent => 0,
        Value::Unit => 1,
        Value::Bool(_) => 2,
        Value::Int(_) => 3,
        Value::Float(_) => 4,
        Value::Time(_) => 5,
        Value::Duration(_) => 6,
        Value::Size(_) => 7,
        Value::Text(_) => 8,
        Value::Bytes(_) => 9,
        Value::List(_) => 10,
        Value::Map(_) => 11,
        Value::Record(_) => 12,
        Value::Variant(..) => 13,
        Value::Failure(_) => 14,
        Value::Host(_) => 15,
        Value::Unique(_) => 16,
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Value::Text(_) | Value::Int(_) = self {
            return hash_head(self, state);
        }
        let mut left = HASHED_MAX;
        hash(self, state, NESTED_MAX, &mut left);
        if left == 0 {
            state.write_u64(composed_hash(self));
        }
    }
}

/// Hashes the heads in the order of a walk, so that the result does not depend on how deep the recursion goes.
fn hash<H: Hasher>(value: &Value, state: &mut H, depth: u32, left: &mut u32) {
    match (value.parts(), depth.checked_sub(1)) {
        (None, _) if !matches!(value, Value::Map(_) | Value::List(_)) => {
            *left -= 1;
            hash_head(value, state);
        }
        (Some(parts), Some(depth)) => {
            *left -= 1;
            hash_head(value, state);
            for part in parts {
                if *left == 0 {
                    break;
                }
                hash(part, state, depth, left);
            }
        }
        _ => {
            for value in value.walk().take(*left as usize) {
                *left -= 1;
                hash_head(&value, state);
            }
        }
    }
}

/// Hashes a value's head and the hashes of its parts. Shared parts are hashed once.
fn composed_hash(value: &Value) -> u64 {
    let mut known: IndexMap<usize, u64, RandomState> = IndexMap::default();
    let mut open = vec![hash_begun(value)];
    loop {
        let (cursor, state) = open.last_mut().expect("the outermost value is closed last");
        if let Some(part) = cursor.advance() {
            match part {
                Cow::Borrowed(part) => match shared_address(part).map(|place| known.get(&place.address).copied()) {
                    Some(Some(hash)) => state.write_u64(hash),
                    Some(None) => open.push(hash_begun(part)),
                    None => hash_head(part, state),
                },
                Cow::Owned(part) => match part.parts() {
                    Some(fields) => state.write_u64(hash_of_fields(&part, fields)),
                    None => hash_head(&part, state),
                },
            }
            continue;
        }
        let (place, hash) = (shared_address(&cursor.value), state.finish());
        open.pop();
        let Some((_, outer)) = open.last_mut() else { return hash };
        outer.write_u64(hash);
        known.extend(place.filter(|place| place.is_shared).map(|place| (place.address, hash)));
    }
}

/// Returns the hash of a record of scalars, composed as that of any other record.
fn hash_of_fields(record: &Value, fields: &[Value]) -> u64 {
    let mut state = SEED.build_hasher();
    hash_head(record, &mut state);
    fields.iter().for_each(|field| hash_head(field, &mut state));
    state.finish()
}

/// Returns a cursor before the first part of a value, and the state of its hash after its head.
fn hash_begun(value: &Value) -> (PartCursor<'_>, impl Hasher + use<>) {
    let mut state = SEED.build_hasher();
    hash_head(value, &mut state);
    (PartCursor::new(value), state)
}

/// Hashes a value without its parts. Values that are compared are of one type, so that most heads need no rank.
#[inline]
fn hash_head<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Absent | Value::Unit | Value::Unique(_) => rank(value).hash(state),
        Value::Bool(value) => value.hash(state),
        Value::Int(value) | Value::Time(value) | Value::Duration(value) => value.hash(state),
        Value::Float(value) => ordered(*value).to_bits().hash(state),
        Value::Size(value) => value.hash(state),
        Value::Text(value) => {
            state.write_usize(value.len());
            state.write(value.as_bytes());
        }
        Value::Bytes(value) => value.hash(state),
        Value::List(elements) => elements.len().hash(state),
        Value::Record(fields) => fields.len().hash(state),
        Value::Map(map) => map.len().hash(state),
        Value::Variant(tag, payload) => (tag, payload.as_ref().map(|values| values.len())).hash(state),
        Value::Failure(value) => value.message.hash(state),
        Value::Host(value) => Arc::as_ptr(value).cast::<()>().hash(state),
    }
}
