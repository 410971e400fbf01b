//! The forms of a list that are stored behind one pointer: packed scalars and records, and persistent nodes.

use std::borrow::Cow;

use super::records::PackedRecords;
use super::sequence::Sequence;
use crate::Value;

/// A scalar that is stored without its tag, and its bits as a word.
trait Word {
    fn of(word: u64) -> Self;
    fn word(self) -> u64;
}

impl Word for i64 {
    #[inline]
    fn of(word: u64) -> i64 {
        word.cast_signed()
    }

    #[inline]
    fn word(self) -> u64 {
        self.cast_unsigned()
    }
}

impl Word for f64 {
    #[inline]
    fn of(word: u64) -> f64 {
        f64::from_bits(word)
    }

    #[inline]
    fn word(self) -> u64 {
        self.to_bits()
    }
}

impl Word for bool {
    #[inline]
    fn of(word: u64) -> bool {
        word != 0
    }

    #[inline]
    fn word(self) -> u64 {
        self.into()
    }
}

impl Word for u64 {
    #[inline]
    fn of(word: u64) -> u64 {
        word
    }

    #[inline]
    fn word(self) -> u64 {
        self
    }
}

/// Stores a scalar at positions with this distance; returns `false` and changes nothing if there are fewer.
fn store_each<T: Copy>(all: &mut [T], from: usize, step: usize, count: usize, scalar: T) -> bool {
    let last = count.checked_sub(1).and_then(|rounds| rounds.checked_mul(step)).and_then(|way| way.checked_add(from));
    let Some(part) = last.and_then(|last| all.get_mut(from..=last)) else { return false };
    part.iter_mut().step_by(step.max(1)).for_each(|place| *place = scalar);
    true
}

/// Defines the packed forms: the variant, the constructor of its values and the type of its scalars.
macro_rules! packed {
    ($($form:ident, $value:ident, $scalar:ty;)+) => {
        /// Elements that are not stored as values.
        #[derive(Clone)]
        pub(super) enum Packed {
            $(#[doc = concat!("Scalars that are all [`Value::", stringify!($value), "`].")] $form(Vec<$scalar>),)+
            /// Records whose fields are scalars.
            Records(PackedRecords),
            /// Elements in nodes that are shared with other lists.
            Persistent(Sequence),
        }

        impl Packed {
            /// Returns an empty list in the form for elements like this one; `None` if it is neither a scalar nor a
            /// record of scalars.
            #[inline]
            pub(super) fn for_element(element: &Value, capacity: usize) -> Option<Packed> {
                match element {
                    $(Value::$value(_) => Some(Packed::$form(Vec::with_capacity(capacity))),)+
                    other => PackedRecords::for_record(other, capacity).map(Packed::Records),
                }
            }

            /// Adds an element at the end, or returns it if this form cannot hold it.
            #[inline]
            pub(super) fn push(&mut self, element: Value) -> Result<(), Value> {
                match (self, element) {
                    $((Packed::$form(all), Value::$value(element)) => all.push(element),)+
                    (Packed::Records(all), element) => return all.push(element),
                    (Packed::Persistent(all), element) => all.push(element),
                    (_, element) => return Err(element),
                }
                Ok(())
            }

            /// Replaces an element, or returns it if this form cannot hold it.
            pub(super) fn set(&mut self, index: usize, element: Value) -> Result<(), Value> {
                match (self, element) {
                    $((Packed::$form(all), Value::$value(element)) => all[index] = element,)+
                    (Packed::Records(all), element) => return all.set(index, element),
                    (Packed::Persistent(all), element) => drop(all.replace(index, element)),
                    (_, element) => return Err(element),
                }
                Ok(())
            }

            /// Returns the bytes of the elements.
            pub(super) fn bytes(&self) -> usize {
                match self {
                    $(Packed::$form(all) => size_of_val(all.as_slice()),)+
                    Packed::Records(all) => all.bytes(),
                    Packed::Persistent(all) => all.len() * size_of::<Value>(),
                }
            }

            #[inline]
            pub(super) fn len(&self) -> usize {
                match self {
                    $(Packed::$form(all) => all.len(),)+
                    Packed::Records(all) => all.len(),
                    Packed::Persistent(all) => all.len(),
                }
            }

            #[inline]
            pub(super) fn get(&self, index: usize) -> Option<Value> {
                match self {
                    $(Packed::$form(all) => all.get(index).copied().map(Value::$value),)+
                    Packed::Records(all) => all.get(index),
                    Packed::Persistent(all) => all.get(index).map(Cow::into_owned),
                }
            }

            #[inline(never)]
            fn word_of_any(&self, index: usize) -> Option<u64> {
                match self {
                    $(Packed::$form(all) => all.get(index).map(|scalar| Word::word(*scalar)),)+
                    Packed::Records(_) | Packed::Persistent(_) => None,
                }
            }

            #[inline(never)]
            fn set_word_of_any(&mut self, index: usize, word: u64) -> bool {
                match self {
                    $(Packed::$form(all) => all.get_mut(index).map(|scalar| *scalar = Word::of(word)).is_some(),)+
                    Packed::Records(_) | Packed::Persistent(_) => false,
                }
            }

            #[inline(never)]
            fn push_word_to_any(&mut self, word: u64) -> bool {
                match self {
                    $(Packed::$form(all) => all.push(Word::of(word)),)+
                    Packed::Records(_) | Packed::Persistent(_) => return false,
                }
                true
            }

            /// Replaces scalars at positions with this distance; returns `false` if there are fewer.
            pub(super) fn set_words(&mut self, from: usize, step: usize, count: usize, word: u64) -> bool {
                match self {
                    $(Packed::$form(all) => store_each(all, from, step, count, Word::of(word)),)+
                    Packed::Records(_) | Packed::Persistent(_) => false,
                }
            }

            /// Makes room for so many further scalars.
            pub(super) fn reserve_words(&mut self, count: usize) {
                match self {
                    $(Packed::$form(all) => all.reserve_exact(count),)+
                    Packed::Records(_) | Packed::Persistent(_) => {}
                }
            }

            /// Adds a scalar at the end so many times; returns `false` if the elements are no scalars.
            pub(super) fn push_words(&mut self, word: u64, count: usize) -> bool {
                match self {
                    $(Packed::$form(all) => all.extend(std::iter::repeat_n(<$scalar as Word>::of(word), count)),)+
                    Packed::Records(_) | Packed::Persistent(_) => return false,
                }
                true
            }

            /// Returns the elements in a range of positions; `None` if they are not packed.
            pub(super) fn range(&self, from: usize, to: usize) -> Option<Packed> {
                match self {
                    $(Packed::$form(all) => Some(Packed::$form(all[from..to].to_vec())),)+
                    Packed::Records(all) => Some(Packed::Records(all.range(from, to))),
                    Packed::Persistent(_) => None,
                }
            }

            /// Removes everything outside a range of positions; returns `false` if this form has to be laid out anew.
            pub(super) fn keep(&mut self, from: usize, to: usize) -> bool {
                match self {
                    $(Packed::$form(all) => {
                        all.truncate(to);
                        all.drain(..from);
                    })+
                    Packed::Records(all) => all.keep(from, to),
                    Packed::Persistent(_) => return false,
                }
                true
            }

            /// Sorts packed elements in ascending order.
            pub(super) fn sort(&mut self) {
                match self {
                    $(Packed::$form(all) => {
                        all.sort_unstable_by(|one, other| Value::$value(*one).cmp(&Value::$value(*other)));
                    })+
                    Packed::Records(all) => all.sort(),
                    Packed::Persistent(_) => {}
                }
            }

            /// Reverses the order of packed elements.
            pub(super) fn reverse(&mut self) {
                match self {
                    $(Packed::$form(all) => all.reverse(),)+
                    Packed::Records(all) => all.reverse(),
                    Packed::Persistent(_) => {}
                }
            }

            /// Adds the elements of another list at the end; returns `false` if this form cannot hold them.
            pub(super) fn append(&mut self, other: &Packed) -> bool {
                match (self, other) {
                    $((Packed::$form(all), Packed::$form(other)) => all.extend_from_slice(other),)+
                    (Packed::Records(all), Packed::Records(other)) => return all.append(other),
                    _ => return false,
                }
                true
            }

            /// Returns the elements: moved if they are not shared, cloned otherwise.
            pub(super) fn into_values(self) -> Vec<Value> {
                match self {
                    $(Packed::$form(all) => all.into_iter().map(Value::$value).collect(),)+
                    Packed::Records(all) => all.into_values(),
                    Packed::Persistent(all) => all.into_values(),
                }
            }
        }
    };
}

packed! {
    Ints, Int, i64;
    Floats, Float, f64;
    Bools, Bool, bool;
    Times, Time, i64;
    Durations, Duration, i64;
    Sizes, Size, u64;
}

/// Does the same for the forms of most lists as for any other. Three tests are faster than a jump through a table, which a
/// `match` with all forms would be.
macro_rules! common_or_any {
    ($packed:expr, $all:ident => $call:expr, $any:ident => $other:expr) => {
        match $packed {
            Packed::Ints($all) => $call,
            Packed::Floats($all) => $call,
            Packed::Bools($all) => $call,
            $any => $other,
        }
    };
}

impl Packed {
    /// Returns the word of a scalar.
    #[inline]
    pub(super) fn word(&self, index: usize) -> Option<u64> {
        common_or_any!(self, all => all.get(index).map(|scalar| scalar.word()), any => any.word_of_any(index))
    }

    /// Replaces a scalar; returns `false` if there is none.
    #[inline]
    pub(super) fn set_word(&mut self, index: usize, word: u64) -> bool {
        common_or_any!(
            self,
            all => all.get_mut(index).map(|scalar| *scalar = Word::of(word)).is_some(),
            any => any.set_word_of_any(index, word)
        )
    }

    /// Adds a scalar at the end; returns `false` if the elements are no scalars.
    #[inline]
    pub(super) fn push_word(&mut self, word: u64) -> bool {
        common_or_any!(
            self,
            all => {
                all.push(Word::of(word));
                true
            },
            any => any.push_word_to_any(word)
        )
    }
}
