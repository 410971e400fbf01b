//! Word shapes: the types whose values are stored as words, and the conversion between words and values.
//!
//! A *scalar* (`Unit`, `Bool`, `Int`, `Float`, `Time`, `Duration`, `Size`) is one word. A tuple or record of scalars is a
//! few words, its *leaves*, so that the state of a loop such as `(n, steps)` needs no memory. Everything else is a value.

use weir_host::{Library, Type, TypeDefinition, TypeShape, Value};

/// The maximum number of leaves of a tuple or record that is stored as words: moving them costs one instruction each,
/// so from about here on a shared record is faster.
const LEAVES_MAX: usize = 8;

/// The deepest nesting of tuples and records that are stored as words.
const DEPTH_MAX: usize = 4;

/// The type of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Unit,
    Bool,
    Int,
    Float,
    Time,
    Duration,
    Size,
}

impl Scalar {
    pub(crate) const ALL: [Scalar; 7] =
        [Scalar::Unit, Scalar::Bool, Scalar::Int, Scalar::Float, Scalar::Time, Scalar::Duration, Scalar::Size];

    pub(crate) fn of(ty: &Type) -> Option<Scalar> {
        Some(match ty {
            Type::Unit => Scalar::Unit,
            Type::Bool => Scalar::Bool,
            Type::Int => Scalar::Int,
            Type::Float => Scalar::Float,
            Type::Time => Scalar::Time,
            Type::Duration => Scalar::Duration,
            Type::Size => Scalar::Size,
            _ => return None,
        })
    }

    /// Returns the value that the word stands for.
    #[inline]
    pub(crate) fn value(self, word: u64) -> Value {
        match self {
            Scalar::Unit => Value::Unit,
            Scalar::Bool => Value::Bool(word != 0),
            Scalar::Int => Value::Int(word.cast_signed()),
            Scalar::Float => Value::Float(f64::from_bits(word)),
            Scalar::Time => Value::Time(word.cast_signed()),
            Scalar::Duration => Value::Duration(word.cast_signed()),
            Scalar::Size => Value::Size(word),
        }
    }

    /// Stores the value that the word stands for. Integers and floats go to the slot directly from registers: a value that
    /// is put together in memory and copied from there makes the processor wait for the smaller stores.
    #[inline]
    pub(crate) fn store(self, word: u64, slot: &mut Value) {
        match self {
            Scalar::Int => slot.put(Value::Int(word.cast_signed())),
            Scalar::Float => slot.put(Value::Float(f64::from_bits(word))),
            other => slot.put(other.value(word)),
        }
    }
}

/// Returns the word of a scalar. Any other value gives 0: a slot whose arm was not chosen may hold one, and nothing
/// uses its word.
#[inline]
pub(crate) fn word_of(value: &Value) -> u64 {
    match value {
        Value::Int(word) | Value::Time(word) | Value::Duration(word) => word.cast_unsigned(),
        Value::Bool(truth) => u64::from(*truth),
        Value::Float(number) => number.to_bits(),
        Value::Size(bytes) => *bytes,
        _ => 0,
    }
}

/// The shape of a value that is stored as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordShape {
    Scalar(Scalar),
    Record(Box<[WordShape]>),
}

impl WordShape {
    /// Returns the types of the words, in their order.
    pub(crate) fn leaves(&self) -> Vec<Scalar> {
        match self {
            WordShape::Scalar(scalar) => vec![*scalar],
            WordShape::Record(fields) => fields.iter().flat_map(WordShape::leaves).collect(),
        }
    }

    /// Returns the number of fields of a record without records in it.
    pub(crate) fn scalar_fields(&self) -> Option<usize> {
        let WordShape::Record(fields) = self else { return None };
        fields.iter().all(|field| matches!(field, WordShape::Scalar(_))).then_some(fields.len())
    }

    /// Returns the first leaf of a field, and the number of its leaves.
    pub(crate) fn field(&self, index: usize) -> Option<(usize, usize)> {
        let WordShape::Record(fields) = self else { return None };
        let count = |field: &WordShape| field.leaves().len();
        Some((fields.get(..index)?.iter().map(count).sum(), count(fields.get(index)?)))
    }

    /// Returns the value that the words stand for.
    pub(crate) fn value(&self, words: &mut impl Iterator<Item = u64>) -> Value {
        match self {
            WordShape::Scalar(scalar) => scalar.value(words.next().unwrap_or(0)),
            WordShape::Record(fields) => Value::Record(fields.iter().map(|field| field.value(words)).collect()),
        }
    }

    /// Passes the words of a value to `put`. A value of another shape, which nothing uses, gives zeros.
    pub(crate) fn words(&self, value: &Value, put: &mut impl FnMut(u64)) {
        match (self, value) {
            (WordShape::Scalar(_), value) => put(word_of(value)),
            (WordShape::Record(fields), Value::Record(parts)) if parts.len() == fields.len() => {
                fields.iter().zip(parts.iter()).for_each(|(field, part)| field.words(part, put));
            }
            (WordShape::Record(fields), _) => fields.iter().for_each(|field| field.words(&Value::Absent, put)),
        }
    }
}

/// The definitions by which types are resolved to shapes.
#[derive(Clone, Copy)]
pub(crate) struct WordTypes<'a> {
    /// The types of the program.
    pub(crate) types: &'a [TypeDefinition],
    /// The library, with its types.
    pub(crate) library: &'a Library,
}

impl WordTypes<'_> {
    /// Returns the shape of a type whose values are stored as words.
    pub(crate) fn shape(&self, ty: &Type) -> Option<WordShape> {
        self.within(ty, DEPTH_MAX).filter(|shape| shape.leaves().len() <= LEAVES_MAX)
    }

    /// Returns true if the type is a record of the program or the library.
    pub(crate) fn is_record(&self, ty: &Type) -> bool {
        let Type::Named(name) = ty else { return false };
        let own = self.types.iter().find(|definition| definition.name == *name);
        let definition = own.or_else(|| self.library.definition(name));
        definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Record(_)))
    }

    fn within(&self, ty: &Type, depth: usize) -> Option<WordShape> {
        if let Some(scalar) = Scalar::of(ty) {
            return Some(WordShape::Scalar(scalar));
        }
        let depth = depth.checked_sub(1)?;
        let fields = match ty {
            Type::Tuple(parts) => parts.iter().map(|part| self.within(part, depth)).collect::<Option<Box<[_]>>>(),
            Type::Named(name) => {
                let own = self.types.iter().find(|definition| definition.name == *name);
                let TypeShape::Record(fields) = &own.or_else(|| self.library.definition(name))?.shape else {
                    return None;
                };
                fields.iter().map(|field| self.within(&field.ty, depth)).collect()
            }
            _ => None,
        };
        fields.filter(|fields| !fields.is_empty()).map(WordShape::Record)
    }
}
