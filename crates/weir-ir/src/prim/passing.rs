//! Primitives that pass move-only operands on to their result.
//!
//! [`Prim::apply`] clones what it passes on, and a clone of a [`Value::Unique`] is empty. Here move-only parts are
//! moved out of their operands, and everything else stays in place, so that a record can be taken apart field by field.
//! An engine decides by the type which of the two it needs; the reference evaluator always moves.

use weir_host::{Failure, Value, Values};

use super::lists;
use super::moving::{move_or_clone, parts};
use crate::prim::Prim;

impl Prim {
    /// Returns `true` if its operands, or parts of them, become part of its result, so that move-only values are moved.
    #[must_use]
    pub fn passes_on(self) -> bool {
        use Prim::{
            Collect, Copy, DetachField, Field, Flatten, List, Map, Pairs, Payload, Record, Unwrap, Variant, WithField,
        };
        matches!(
            self,
            Copy | List
                | Map
                | Record
                | Variant(_)
                | Field(_)
                | DetachField(_)
                | WithField(_)
                | Payload(_)
                | Pairs
                | Collect
                | Flatten
                | Unwrap
        )
    }

    /// Applies it, and moves the move-only values that it passes on out of its operands.
    ///
    /// # Errors
    /// Fails only if [`Prim::may_fail`].
    ///
    /// # Panics
    /// Panics on operands that the verifier refuses.
    pub fn apply_moving(self, operands: &mut [Value]) -> Result<Value, Box<Failure>> {
        match (self, &mut *operands) {
            (Prim::Copy, [a]) => Ok(move_or_clone(a)),
            (Prim::List, _) => Ok(Value::List(all(operands))),
            (Prim::Record, _) => Ok(Value::Record(all(operands))),
            (Prim::Variant(tag), [_, ..]) => Ok(Value::Variant(tag, Some(all(operands)))),
            (Prim::Field(index) | Prim::DetachField(index), [Value::Record(parts)])
            | (Prim::Payload(index), [Value::Variant(_, Some(parts))]) => Ok(element(parts, index as usize)),
            (Prim::Unwrap, [Value::Variant(Value::OK, Some(parts))]) => Ok(element(parts, 0)),
            (Prim::WithField(index), [Value::Record(fields), value]) => {
                let mut fields = parts(fields);
                fields[index as usize] = move_or_clone(value);
                Ok(Value::Record(fields.into()))
            }
            (Prim::Pairs, [Value::Map(map)]) => lists::pairs_moving(map),
            (Prim::Collect, [Value::List(lists), element]) => lists::collect_moving(lists, move_or_clone(element)),
            (Prim::Flatten, [Value::List(lists)]) => lists::flatten_moving(lists),
            (prim, operands) => prim.apply(&operands.iter().collect::<Vec<_>>()),
        }
    }
}

fn element(parts: &mut Values, index: usize) -> Value {
    match parts.unshared() {
        Some(parts) => move_or_clone(&mut parts[index]),
        None => parts[index].clone(),
    }
}

fn all<C: FromIterator<Value>>(operands: &mut [Value]) -> C {
    operands.iter_mut().map(move_or_clone).collect()
}
