//! Positions in a plan's text, and the problems found there.

use std::ops::Range;

/// A value of a plan, with its position in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Position in the text of the plan, in bytes.
    pub at: Range<usize>,
}

/// An error or a warning about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanProblem {
    /// Severity.
    pub severity: ProblemSeverity,
    /// Position in the text of the plan, in bytes.
    pub at: Range<usize>,
    /// Description of the problem, in a sentence.
    pub message: String,
    /// Proposed action.
    pub help: Option<String>,
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemSeverity {
    /// The plan cannot be used.
    Error,
    /// The plan can be used, but should be changed.
    Warning,
}

impl PlanProblem {
    /// Creates an error.
    pub(super) fn error(at: Range<usize>, message: String, help: Option<String>) -> PlanProblem {
        PlanProblem { severity: ProblemSeverity::Error, at, message, help }
    }

    /// Returns true if the plan cannot be used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == ProblemSeverity::Error
    }

    /// Returns line and column of the problem in the text of the plan, both counted from 1.
    #[must_use]
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.at.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        (line, column)
    }
}
