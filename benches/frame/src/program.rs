//! The measured program as bytecode, and what it must answer.

/// One instruction over 8-bit registers. Arithmetic is checked; a failure names the instruction that failed.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    /// `out = one + other`.
    Add { out: u8, one: u8, other: u8 },
    /// `out = one + constant`.
    AddConstant { out: u8, one: u8, constant: i32 },
    /// `out = one * constant`.
    MultiplyConstant { out: u8, one: u8, constant: i32 },
    /// `out = one % constant`.
    RemainderConstant { out: u8, one: u8, constant: i32 },
    /// Jumps back to `to` if `one < other`: a back edge, which is a safe point.
    LoopIfLess { one: u8, other: u8, to: u16 },
    /// Ends with the register's value.
    Return { one: u8 },
}

/// A stop of the interpreter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The result.
    Returned(i64),
    /// The instruction at this index failed.
    Failed(usize),
    /// The slice is over; the region goes on from this instruction.
    Yielded(usize),
}

/// The program's code. Register 0 is `i`, 1 is `s`, 2 is `n`.
pub(crate) fn code() -> Vec<Op> {
    vec![
        Op::MultiplyConstant { out: 3, one: 0, constant: 3 },
        Op::RemainderConstant { out: 3, one: 3, constant: 7 },
        Op::Add { out: 1, one: 1, other: 3 },
        Op::AddConstant { out: 0, one: 0, constant: 1 },
        Op::LoopIfLess { one: 0, other: 2, to: 0 },
        Op::Return { one: 1 },
    ]
}

/// The answer of the program for `n` rounds.
pub(crate) fn answer(n: u64) -> i64 {
    (0..n as i64).map(|i| i * 3 % 7).sum()
}
