//! Primitives that move a part out of their first operand, because nothing reads the part afterwards.
//!
//! A field or element that is updated is read, changed and put back. While the record, list or map still holds it, the
//! change has to copy it. Here it moves out, and [`Value::Absent`] stays behind until the new value replaces it. The pass
//! `detach` makes sure that nothing reads the empty place.

use smallvec::SmallVec;
use weir_host::{Failure, Value};

use super::Prim;

impl Prim {
    /// Returns the primitive that moves out the part which this one reads.
    #[must_use]
    pub fn detaching(self) -> Option<Prim> {
        match self {
            Prim::Field(index) => Some(Prim::DetachField(index)),
            Prim::Index => Some(Prim::DetachElement),
            _ => None,
        }
    }

    /// Returns true if it may move a part out of its first operand.
    #[must_use]
    pub fn detaches(self) -> bool {
        matches!(self, Prim::DetachField(_) | Prim::DetachElement)
    }

    /// Applies a primitive that [`Prim::detaches`]. The part moves out of `whole` unless `whole` is shared.
    ///
    /// # Errors
    /// Fails if [`Prim::apply`] does.
    ///
    /// # Panics
    /// Panics on operands that the verifier refuses.
    pub fn apply_detaching(self, whole: &mut Value, others: &[&Value]) -> Result<Value, Box<Failure>> {
        let taken = match (self, &mut *whole, others) {
            (Prim::DetachField(index), Value::Record(fields), []) => {
                fields.unshared().map(|fields| fields[index as usize].take())
            }
            (Prim::DetachElement, Value::List(list), [Value::Int(at)]) => {
                usize::try_from(*at).ok().and_then(|at| list.take(at))
            }
            (Prim::DetachElement, Value::Map(map), [key]) => map.take(key).map(Value::some),
            _ => None,
        };
        match taken {
            Some(part) => Ok(part),
            None => self.apply(&[&*whole].into_iter().chain(others.iter().copied()).collect::<SmallVec<[&Value; 2]>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::text(text)
    }

    fn cases() -> Vec<(Prim, Value, Option<Value>)> {
        let record = Value::Record([Value::Int(1), text("a")].into());
        let map = Prim::Map.apply(&[&text("k"), &text("a"), &text("l"), &text("b")]).unwrap();
        vec![
            (Prim::DetachField(1), record, None),
            (Prim::DetachElement, Value::list(vec![text("b"), text("a")]), Some(Value::Int(1))),
            (Prim::DetachElement, Value::list(vec![text("b")]), Some(Value::Int(1))),
            (Prim::DetachElement, map.clone(), Some(text("k"))),
            (Prim::DetachElement, map, Some(text("m"))),
        ]
    }

    #[test]
    fn the_part_is_that_of_a_copy_and_what_is_shared_stays_whole() {
        for (prim, mut whole, key) in cases() {
            let operands: Vec<&Value> = [&whole].into_iter().chain(&key).collect();
            let wanted = prim.apply(&operands);
            let (before, kept) = (whole.to_string(), whole.clone());
            let key: Vec<&Value> = key.iter().collect();
            assert_eq!(prim.apply_detaching(&mut whole, &key), wanted);
            assert_eq!(kept.to_string(), before, "{prim:?} changes what somebody else holds");
            drop(kept);
            assert_eq!(prim.apply_detaching(&mut whole, &key), wanted);
        }
    }

    #[test]
    fn a_part_that_moves_out_is_not_shared() {
        let list = || Value::list(vec![text("a")]);
        let key = text("k");
        let map = Value::Map([(key.clone(), list())].into_iter().collect());
        let record = Value::Record([list()].into());
        for (prim, mut whole, key) in [(Prim::DetachField(0), record, vec![]), (Prim::DetachElement, map, vec![&key])] {
            let mut part = prim.apply_detaching(&mut whole, &key).unwrap();
            if let Value::Variant(_, Some(payload)) = &mut part {
                part = payload.unshared().unwrap()[0].take();
            }
            let Value::List(mut part) = part else { panic!("{part} is no list") };
            assert!(part.unshared().is_some(), "{prim:?} copies");
        }
    }
}
