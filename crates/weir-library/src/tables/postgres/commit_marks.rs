//! The marks by which a program finds out whether a commit has taken effect to which it has got no answer (`unanswered_commits`).
//!
//! The commit of a program that is alone is counted when its transaction begins ([`COUNT_COMMIT`](super::commit_numbers::COUNT_COMMIT)).
//! Beside other programs, and if another one has joined last, a transaction that has written counts its commit in a row of its program.
//! That statement is sent with the commit. The rows of programs that have ended are deleted later, by those that join.

use super::commit_numbers::{COUNT_BITS, CommitNumber};

/// The mark of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitMark {
    /// Its number among all commits, which only this program makes: it has joined last.
    OfAll(CommitNumber),
    /// Its number among the commits of this program that are marked so. The upper bits are those of its join.
    OfProgram(CommitNumber),
}

/// The marks of a program since its last join.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitMarks {
    program: u64,
    /// The number of programs that had joined then.
    programs: i64,
    /// The number of marks in the row of the program.
    count: i64,
}

/// The commits that the database has when the program joins.
#[derive(Clone, Copy)]
pub(super) struct CommitsAtJoin {
    /// The number of the last commit.
    pub(super) last: CommitNumber,
    /// The number of programs that had joined when this program joined last, unless another one has joined since.
    pub(super) own_join: Option<i64>,
    /// The last mark in the row of the program.
    pub(super) marked: Option<CommitNumber>,
}

/// Returns the key of the row in which a program counts commits.
pub(super) fn row_of(program: u64) -> String {
    format!(" commits {program:016x}")
}

impl CommitMarks {
    pub(super) fn new(program: u64, programs: i64) -> CommitMarks {
        CommitMarks { program, programs, count: 0 }
    }

    /// Returns the mark of the next commit, which may be counted.
    pub(super) fn next(&mut self, counted: Option<CommitNumber>) -> CommitMark {
        if let Some(number) = counted.filter(|number| number.programs() == self.programs) {
            return CommitMark::OfAll(number);
        }
        self.count += 1;
        CommitMark::OfProgram(CommitNumber(self.programs << COUNT_BITS | self.count))
    }

    /// Returns the statement that makes a mark; `None` if it is made already.
    pub(super) fn statement(&self, mark: CommitMark) -> Option<String> {
        let CommitMark::OfProgram(CommitNumber(number)) = mark else { return None };
        let row = row_of(self.program);
        Some(format!("UPDATE \"weir_numbers\" SET \"last\" = {number} WHERE \"table\" = '{row}'"))
    }
}

impl CommitMark {
    /// Returns the number of programs that had joined.
    pub(super) fn programs(self) -> i64 {
        match self {
            CommitMark::OfAll(number) | CommitMark::OfProgram(number) => number.programs(),
        }
    }
}

impl CommitsAtJoin {
    /// Returns whether a commit has taken effect whose transaction has ended; `None` if that is not known.
    pub(super) fn has(self, mark: CommitMark) -> Option<bool> {
        match mark {
            CommitMark::OfAll(number) => self.has_counted(number),
            // No later commit of the program was sent.
            CommitMark::OfProgram(number) => {
                let marked = self.marked.filter(|marked| marked.0 <= number.0)?;
                Some(marked == number)
            }
        }
    }

    fn has_counted(self, number: CommitNumber) -> Option<bool> {
        let CommitsAtJoin { last, own_join, .. } = self;
        if last.programs() < number.programs() {
            // An older state, such as that of a backup.
            return None;
        }
        if last.count() < number.count() {
            return Some(false);
        }
        // Nobody else has counted commits since this program has joined.
        let is_own = own_join == Some(last.programs()) && last.programs() == number.programs();
        is_own.then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(programs: i64, count: i64) -> CommitNumber {
        CommitNumber(programs << COUNT_BITS | count)
    }

    #[test]
    fn an_outcome_is_known_only_if_no_other_program_can_have_made_the_number() {
        let has = |last, own_join| CommitsAtJoin { last, own_join, marked: None }.has(CommitMark::OfAll(number(3, 7)));
        assert_eq!(has(number(3, 7), Some(3)), Some(true));
        assert_eq!(has(number(3, 8), Some(3)), Some(true));
        assert_eq!(has(number(3, 6), Some(3)), Some(false));
        // Whoever has joined since has not counted as many.
        assert_eq!(has(number(4, 6), None), Some(false));
        // The commits may be those of another program.
        assert_eq!(has(number(4, 7), None), None);
        assert_eq!(has(number(3, 7), None), None);
        assert_eq!(has(number(4, 7), Some(4)), None);
        // The database is an older one.
        assert_eq!(has(number(2, 6), Some(2)), None);
        assert_eq!(has(number(2, 9), None), None);
    }

    #[test]
    fn an_outcome_is_known_by_the_row_of_the_program_if_it_is_there() {
        let has = |marked| {
            CommitsAtJoin { last: number(9, 9), own_join: None, marked }.has(CommitMark::OfProgram(number(3, 7)))
        };
        assert_eq!(has(Some(number(3, 7))), Some(true));
        assert_eq!(has(Some(number(3, 6))), Some(false));
        assert_eq!(has(Some(number(2, 9))), Some(false));
        assert_eq!(has(Some(number(3, 8))), None);
        assert_eq!(has(Some(number(4, 0))), None);
        assert_eq!(has(None), None);
    }

    #[test]
    fn a_commit_is_marked_by_its_number_only_since_the_program_has_joined_last() {
        let mut marks = CommitMarks::new(7, 3);
        let counted = marks.next(Some(number(3, 5)));
        assert_eq!((counted, marks.statement(counted)), (CommitMark::OfAll(number(3, 5)), None));
        for (counted, count) in [(None, 1), (Some(number(4, 6)), 2), (Some(number(2, 6)), 3)] {
            let mark = marks.next(counted);
            assert_eq!(mark, CommitMark::OfProgram(number(3, count)));
            assert!(marks.statement(mark).is_some_and(|sql| sql.contains("' commits 0000000000000007'")));
        }
    }
}
