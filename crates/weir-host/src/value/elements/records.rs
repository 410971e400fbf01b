//! Packed records: records of scalars, the words of their fields one after the other.

use std::cmp::Ordering;

use crate::Value;

/// Records of which every field is a scalar, of the same type in each record.
#[derive(Clone)]
pub(super) struct PackedRecords {
    /// The types of the fields; there is at least one.
    fields: Box<[FieldType]>,
    words: Vec<u64>,
}

/// The type of a scalar field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldType {
    Int,
    Float,
    Bool,
    Time,
    Duration,
    Size,
}

impl FieldType {
    /// Returns the type of a scalar and its word.
    #[inline]
    fn of(value: &Value) -> Option<(FieldType, u64)> {
        Some(match value {
            Value::Int(number) => (FieldType::Int, number.cast_unsigned()),
            Value::Float(number) => (FieldType::Float, number.to_bits()),
            Value::Bool(truth) => (FieldType::Bool, u64::from(*truth)),
            Value::Time(nanos) => (FieldType::Time, nanos.cast_unsigned()),
            Value::Duration(nanos) => (FieldType::Duration, nanos.cast_unsigned()),
            Value::Size(bytes) => (FieldType::Size, *bytes),
            _ => return None,
        })
    }

    #[inline]
    fn value(self, word: u64) -> Value {
        match self {
            FieldType::Int => Value::Int(word.cast_signed()),
            FieldType::Float => Value::Float(f64::from_bits(word)),
            FieldType::Bool => Value::Bool(word != 0),
            FieldType::Time => Value::Time(word.cast_signed()),
            FieldType::Duration => Value::Duration(word.cast_signed()),
            FieldType::Size => Value::Size(word),
        }
    }
}

impl PackedRecords {
    /// Returns an empty list for records like this one; `None` if it is no record of scalars.
    #[inline]
    pub(super) fn for_record(record: &Value, capacity: usize) -> Option<PackedRecords> {
        let Value::Record(fields) = record else { return None };
        FieldType::of(fields.first()?)?;
        let fields = fields.iter().map(|field| FieldType::of(field).map(|(ty, _)| ty)).collect::<Option<Box<[_]>>>()?;
        let words = Vec::with_capacity(capacity.saturating_mul(fields.len()));
        Some(PackedRecords { fields, words })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.words.len() / self.fields.len()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Adds a record at the end, or returns the value if it is not such a record.
    pub(super) fn push(&mut self, record: Value) -> Result<(), Value> {
        let length = self.words.len();
        if let Value::Record(fields) = &record
            && fields.len() == self.fields.len()
        {
            let words = self.fields.iter().zip(fields).map_while(|(ty, field)| ty.word_of(field));
            self.words.extend(words);
            if self.words.len() == length + self.fields.len() {
                return Ok(());
            }
        }
        self.words.truncate(length);
        Err(record)
    }

    /// Replaces a record, or returns the value if it is not such a record.
    pub(super) fn set(&mut self, index: usize, record: Value) -> Result<(), Value> {
        let end = self.words.len();
        self.push(record)?;
        self.words.copy_within(end.., index * self.fields.len());
        self.words.truncate(end);
        Ok(())
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Value> {
        self.row(index).map(|row| self.record(row))
    }

    /// Returns the words of a record.
    #[inline]
    pub(super) fn row(&self, index: usize) -> Option<&[u64]> {
        let from = index.checked_mul(self.fields.len())?;
        self.words.get(from..from.checked_add(self.fields.len())?)
    }

    /// Returns a field of a record.
    pub(super) fn field(&self, index: usize, field: usize) -> Option<Value> {
        Some(self.fields.get(field)?.value(*self.row(index)?.get(field)?))
    }

    /// Adds the words of a record at the end; returns `false` if it has another number of fields.
    #[inline]
    pub(super) fn push_words(&mut self, words: impl ExactSizeIterator<Item = u64>) -> bool {
        let fits = words.len() == self.fields.len();
        if fits {
            self.words.extend(words);
        }
        fits
    }

    /// Returns the records in a range of positions.
    pub(super) fn range(&self, from: usize, to: usize) -> PackedRecords {
        let width = self.fields.len();
        PackedRecords { fields: self.fields.clone(), words: self.words[from * width..to * width].to_vec() }
    }

    /// Removes everything outside a range of positions.
    pub(super) fn keep(&mut self, from: usize, to: usize) {
        let width = self.fields.len();
        self.words.truncate(to * width);
        self.words.drain(..from * width);
    }

    /// Sorts the records in ascending order.
    pub(super) fn sort(&mut self) {
        let mut rows: Vec<&[u64]> = self.words.chunks_exact(self.fields.len()).collect();
        rows.sort_unstable_by(|one, other| self.compare_rows(one, other));
        self.words = rows.concat();
    }

    pub(super) fn reverse(&mut self) {
        self.words = self.words.rchunks_exact(self.fields.len()).flatten().copied().collect();
    }

    /// Adds the records of another list at the end; returns `false` if they have other fields.
    pub(super) fn append(&mut self, other: &PackedRecords) -> bool {
        let fits = self.fields == other.fields;
        if fits {
            self.words.extend_from_slice(&other.words);
        }
        fits
    }

    /// Compares with other records, one after the other; `None` if they have other fields.
    pub(super) fn compare(&self, other: &PackedRecords) -> Option<Ordering> {
        let (rows, others) = (self.words.chunks_exact(self.fields.len()), other.words.chunks_exact(other.fields.len()));
        let differing = rows.zip(others).map(|(one, other)| self.compare_rows(one, other)).find(|found| found.is_ne());
        (self.fields == other.fields).then(|| differing.unwrap_or_else(|| self.len().cmp(&other.len())))
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.words.chunks_exact(self.fields.len()).map(|row| self.record(row)).collect()
    }

    fn record(&self, row: &[u64]) -> Value {
        Value::Record(self.fields.iter().zip(row).map(|(ty, word)| ty.value(*word)).collect())
    }

    fn compare_rows(&self, one: &[u64], other: &[u64]) -> Ordering {
        let fields = self.fields.iter().zip(one.iter().zip(other)).filter(|(_, (one, other))| one != other);
        let mut orderings = fields.map(|(ty, (one, other))| ty.value(*one).cmp(&ty.value(*other)));
        orderings.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl FieldType {
    /// Returns the word of a value; `None` if it is of another type.
    #[inline]
    fn word_of(self, value: &Value) -> Option<u64> {
        FieldType::of(value).filter(|(ty, _)| *ty == self).map(|(_, word)| word)
    }
}
