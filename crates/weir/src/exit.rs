//! Exit codes: what the shell is told.

use std::process::{ExitCode, Termination};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: it did what was asked.
    Success,
    /// 1: the program is wrong: it has errors, a test failed, a file is not formatted.
    Failure,
    /// 2: the command line is wrong.
    Usage,
    /// 3: the surroundings are wrong: a file cannot be read, a port is taken.
    Environment,
    /// 130: it was told twice to stop, and did not wait for what had begun.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Environment => 3,
            Exit::Interrupted => 130,
        }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
