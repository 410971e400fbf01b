//! Register bytecode: registers typed in a fixed array, typed in a slice, and boxed as `Value`s.

use weir_host::Value;

use crate::Row;
use crate::program::{Op, Stop, answer, code};

/// Registers of a region, typed and unboxed: an 8-bit index into an array of 256 needs no bounds check.
pub(crate) type Typed = [u64; 256];

/// Storage of registers.
pub(crate) trait Registers {
    /// The integer in a register; `None` if it holds a value of another type.
    fn get(&self, register: u8) -> Option<i64>;
    /// Puts an integer into a register.
    fn put(&mut self, register: u8, value: i64);
}

impl Registers for Typed {
    #[inline(always)]
    fn get(&self, register: u8) -> Option<i64> {
        Some(self[usize::from(register)] as i64)
    }

    #[inline(always)]
    fn put(&mut self, register: u8, value: i64) {
        self[usize::from(register)] = value as u64;
    }
}

impl Registers for Vec<u64> {
    #[inline(always)]
    fn get(&self, register: u8) -> Option<i64> {
        Some(self[usize::from(register)] as i64)
    }

    #[inline(always)]
    fn put(&mut self, register: u8, value: i64) {
        self[usize::from(register)] = value as u64;
    }
}

impl Registers for Vec<Value> {
    #[inline(always)]
    fn get(&self, register: u8) -> Option<i64> {
        match self[usize::from(register)] {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }

    #[inline(always)]
    fn put(&mut self, register: u8, value: i64) {
        self[usize::from(register)] = Value::Int(value);
    }
}

/// The rows of this module.
pub(crate) fn rows(rounds: u64) -> Vec<Row> {
    vec![
        Row::new("bytecode, typed registers in an array of 256", rounds, whole(rounds, || [0; 256])),
        Row::new("bytecode, typed registers in a slice (bounds checks)", rounds, whole(rounds, || vec![0_u64; 64])),
        Row::new("bytecode, registers that are boxed values (tags)", rounds, whole(rounds, || vec![Value::Int(0); 64])),
    ]
}

fn whole<R: Registers>(rounds: u64, registers: impl Fn() -> R) -> impl Fn() -> u64 {
    let code = code();
    move || {
        let mut registers = registers();
        registers.put(2, rounds as i64);
        expect(run(&code, &mut registers), rounds)
    }
}

#[inline(never)]
fn run<R: Registers>(code: &[Op], registers: &mut R) -> Stop {
    interpret(code, registers, 0, || false)
}

/// Panics unless the program gave the right answer.
pub(crate) fn expect(stop: Stop, rounds: u64) -> u64 {
    assert_eq!(stop, Stop::Returned(answer(rounds)));
    rounds
}

/// Runs code from an instruction on, until it ends or a back edge finds that the slice is over.
#[inline(always)]
pub(crate) fn interpret<R: Registers>(
    code: &[Op],
    registers: &mut R,
    mut at: usize,
    mut is_over: impl FnMut() -> bool,
) -> Stop {
    loop {
        let get = |register: u8| registers.get(register);
        let computed = match code[at] {
            Op::Add { out, one, other } => {
                get(one).zip(get(other)).and_then(|(one, other)| one.checked_add(other)).map(|value| (out, value))
            }
            Op::AddConstant { out, one, constant } => {
                get(one).and_then(|one| one.checked_add(constant.into())).map(|value| (out, value))
            }
            Op::MultiplyConstant { out, one, constant } => {
                get(one).and_then(|one| one.checked_mul(constant.into())).map(|value| (out, value))
            }
            Op::RemainderConstant { out, one, constant } => {
                get(one).and_then(|one| one.checked_rem(constant.into())).map(|value| (out, value))
            }
            Op::LoopIfLess { one, other, to } => {
                at = if get(one) < get(other) { usize::from(to) } else { at + 1 };
                if is_over() {
                    return Stop::Yielded(at);
                }
                continue;
            }
            Op::Return { one } => return get(one).map_or(Stop::Failed(at), Stop::Returned),
        };
        let Some((out, value)) = computed else { return Stop::Failed(at) };
        registers.put(out, value);
        at += 1;
    }
}
