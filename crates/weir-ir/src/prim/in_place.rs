//! Primitives that change their first operand in place, if it is not used afterwards and is not shared.
//!
//! To a program, values are immutable. If the use of an operand is its last one, its memory may become the result's
//! (Perceus, PLDI 2021, §2.2 "reuse"): a list that grows by one element keeps the others where they are.

use smallvec::SmallVec;
use weir_host::memory::ask;
use weir_host::{Failure, Type, Value};

use super::Prim;

impl Prim {
    /// Returns `true` if the primitive can reuse its first operand for its result, which is of this type.
    #[must_use]
    pub fn reuses_first(self, result: &Type) -> bool {
        match self {
            Prim::Add => matches!(result, Type::List(_) | Type::Text),
            Prim::WithField(_) | Prim::Collect => true,
            _ => false,
        }
    }

    /// Applies it to a first operand that is not used afterwards: in place if it is not shared, otherwise as
    /// [`Prim::apply`] does.
    ///
    /// # Errors
    /// Fails if [`Prim::apply`] does.
    ///
    /// # Panics
    /// Panics on operands that the verifier refuses.
    pub fn apply_reusing(self, first: Value, others: &[&Value]) -> Result<Value, Box<Failure>> {
        match (self, first, others) {
            (Prim::Add, Value::List(mut list), [Value::List(other)]) => {
                ask(other.bytes_to_append())?;
                list.append((*other).clone());
                Ok(Value::List(list))
            }
            (Prim::Add, Value::Text(mut text), [Value::Text(other)]) => {
                ask(text.bytes_to_push(other.len()))?;
                text.push(other);
                Ok(Value::Text(text))
            }
            (Prim::WithField(index), Value::Record(mut fields), [value]) => {
                match fields.unshared() {
                    Some(parts) => parts[index as usize] = (*value).clone(),
                    None => return self.apply(&[&Value::Record(fields), value]),
                }
                Ok(Value::Record(fields))
            }
            (Prim::Collect, Value::List(mut lists), [element]) => {
                super::lists::collect_moving(&mut lists, (*element).clone())
            }
            (prim, first, others) => {
                let operands: SmallVec<[&Value; 4]> = [&first].into_iter().chain(others.iter().copied()).collect();
                prim.apply(&operands)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Value {
        Value::List(numbers.into_iter().map(Value::Int).collect())
    }

    #[test]
    fn the_result_is_that_of_a_copy_whoever_holds_the_operand() {
        let record = Value::Record([Value::Int(1), Value::text("a")].into());
        let lists = Prim::Collect.apply(&[&Value::list(vec![]), &Value::Int(1)]).unwrap();
        let cases = [
            (Prim::Add, numbers(0..3), numbers(3..5)),
            (Prim::Add, Value::text("a long text, held elsewhere"), Value::text("ü")),
            (Prim::WithField(1), record, Value::text("b")),
            (Prim::Collect, lists, Value::Int(2)),
        ];
        for (prim, first, second) in cases {
            let before = format!("{first}");
            let wanted = prim.apply(&[&first, &second]).unwrap();
            assert_eq!(prim.apply_reusing(first.clone(), &[&second]).unwrap(), wanted);
            assert_eq!(format!("{first}"), before, "{prim:?} changes what somebody else holds");
            assert_eq!(prim.apply_reusing(first, &[&second]).unwrap(), wanted);
        }
    }

    fn address(list: &Value) -> *const i64 {
        let Value::List(elements) = list else { panic!("{list} is no list") };
        elements.as_ints().expect("the list has integers").as_ptr()
    }

    #[test]
    fn a_list_that_nobody_else_holds_grows_where_it_is() {
        let mut list = numbers(0..1);
        let mut moves = 0;
        for number in 1..1000 {
            let before = address(&list);
            list = Prim::Add.apply_reusing(list, &[&numbers([number])]).unwrap();
            moves += usize::from(address(&list) != before);
        }
        assert_eq!(list, numbers(0..1000));
        assert!(moves < 20, "{moves} copies");
    }
}
