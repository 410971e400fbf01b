//! Exit codes.

#[cfg(feature = "tools")]
use std::process::ExitStatus;
use std::process::{ExitCode, Termination};

/// Exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Success,
    /// 1: the program has errors, a test failed, a file is not formatted, or a start would fail (`weir tables`).
    Failure,
    /// 2: the command line is wrong.
    Usage,
    /// 3: the environment is at fault: a file cannot be read, a port is in use.
    Environment,
    /// 130: a second signal ended the process before the flows in progress had finished.
    Interrupted,
}

impl Exit {
    /// Returns the exit status of a command whose program has run in a process of its own.
    #[cfg(feature = "tools")]
    pub(crate) fn of_process(status: ExitStatus) -> Exit {
        let known = [Exit::Success, Exit::Failure, Exit::Usage, Exit::Environment];
        let code = status.code();
        known.into_iter().find(|exit| code == Some(exit.code().into())).unwrap_or(Exit::Interrupted)
    }

    /// Returns the exit code.
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
