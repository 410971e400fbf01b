//! The value from which a part has moved out.

use weir_host::Value;
use weir_ir::prim::{Prim, elements, parts};

/// Returns the first operand without the part that the primitive detaches. An engine leaves the part there if the operand is
/// shared; here it always goes, so that a test fails if anything reads it.
pub(crate) fn with_hole(prim: Prim, operands: &mut [Value]) -> Value {
    match (prim, operands) {
        (Prim::DetachField(index), [Value::Record(fields)]) => {
            let mut fields = parts(fields);
            fields[index as usize] = Value::Absent;
            Value::Record(fields.into())
        }
        (Prim::DetachElement, [Value::List(list), Value::Int(at)]) => {
            let mut elements = elements(list);
            elements[usize::try_from(*at).expect("the element was there")] = Value::Absent;
            Value::list(elements)
        }
        (Prim::DetachElement, [Value::Map(map), key]) => {
            let mut map = map.clone();
            if map.contains_key(key) {
                map.insert(key.clone(), Value::Absent);
            }
            Value::Map(map)
        }
        (prim, operands) => panic!("{prim:?} of {operands:?} passed the verifier"),
    }
}
