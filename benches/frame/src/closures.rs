//! Closure compilation: one boxed closure for each instruction, over the same typed registers.

use crate::Row;
use crate::bytecode::{Registers, Typed, expect};
use crate::program::{Op, Stop, code};

/// One compiled instruction: the index of the next one, or a stop.
type Compiled = Box<dyn Fn(&mut Typed) -> Result<usize, Stop>>;

/// The rows of this module.
pub(crate) fn rows(rounds: u64) -> Vec<Row> {
    let compiled: Vec<Compiled> = code().into_iter().enumerate().map(|(at, op)| compile(at, op)).collect();
    vec![Row::new("closures over typed registers in an array of 256", rounds, move || {
        let mut registers = [0; 256];
        registers[2] = rounds;
        expect(run(&compiled, &mut registers), rounds)
    })]
}

#[inline(never)]
fn run(compiled: &[Compiled], registers: &mut Typed) -> Stop {
    let mut at = 0;
    loop {
        match compiled[at](registers) {
            Ok(next) => at = next,
            Err(stop) => return stop,
        }
    }
}

fn compile(at: usize, op: Op) -> Compiled {
    match op {
        Op::Add { out, one, other } => Box::new(move |registers| {
            let value = get(registers, one).checked_add(get(registers, other));
            put(registers, out, value, at)
        }),
        Op::AddConstant { out, one, constant } => Box::new(move |registers| {
            let value = get(registers, one).checked_add(constant.into());
            put(registers, out, value, at)
        }),
        Op::MultiplyConstant { out, one, constant } => Box::new(move |registers| {
            let value = get(registers, one).checked_mul(constant.into());
            put(registers, out, value, at)
        }),
        Op::RemainderConstant { out, one, constant } => Box::new(move |registers| {
            let value = get(registers, one).checked_rem(constant.into());
            put(registers, out, value, at)
        }),
        Op::LoopIfLess { one, other, to } => Box::new(move |registers| {
            let goes_on = get(registers, one) < get(registers, other);
            Ok(if goes_on { usize::from(to) } else { at + 1 })
        }),
        Op::Return { one } => Box::new(move |registers| Err(Stop::Returned(get(registers, one)))),
    }
}

fn get(registers: &Typed, register: u8) -> i64 {
    registers[usize::from(register)] as i64
}

fn put(registers: &mut Typed, out: u8, value: Option<i64>, at: usize) -> Result<usize, Stop> {
    registers.put(out, value.ok_or(Stop::Failed(at))?);
    Ok(at + 1)
}
