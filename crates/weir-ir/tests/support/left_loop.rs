//! The text of a loop that is left early.

/// The lines of a fold over `%1` whose rounds read twice, and which this leaves at an `Err` of the first read; the second one is this
/// call.
macro_rules! left_loop {
    ($left_by:literal, $call:literal) => {
        concat!(
            "%2: Result(Int, Failure) = variant.0(0)\n",
            "%3: Result(Int, Failure) = fold %1 from %2 as %4: Result(Int, Failure), %5: Int left by ",
            $left_by,
            " (@1..2)\n  %6: Result(Int, Failure) = switch %4\n    tag 0 (%7: Int)\n      ",
            "%8: Result(Int, Failure) = call a.try_gathered at a.try (%5)\n      ",
            "%9: Result(Int, Failure) = switch %8\n        tag 0 (%10: Int)\n          %11: Int = call ",
            $call,
            " (%10)\n          %12: Int = add(%7, %11)\n          ",
            "%13: Result(Int, Failure) = variant.0(%12)\n          yield %13\n        tag 1 (%14: Failure)\n          ",
            "%15: Result(Int, Failure) = variant.1(%14)\n          yield %15\n      yield %9\n    ",
            "tag 1 (%16: Failure)\n      %17: Result(Int, Failure) = variant.1(%16)\n      yield %17\n  ",
            "yield %6\nyield %3"
        )
    };
}
