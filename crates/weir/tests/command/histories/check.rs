//! Histories of transactions: is there an order that explains them?

use std::collections::{BTreeMap, BTreeSet};

/// One operation: an append, or a read with what it has seen.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Append(u64, u64),
    Read(u64, Vec<u64>),
}

/// A transaction as its client has seen it.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// False if the program gave it up: then nobody may see its appends.
    pub(super) committed: bool,
    pub(super) operations: Vec<Operation>,
}

/// The history of a run: the transactions, and the final list of each key.
pub(super) struct History {
    pub(super) transactions: Vec<Transaction>,
    pub(super) lists: Vec<Vec<u64>>,
}

impl History {
    /// Fails with a description of the first anomaly.
    pub(super) fn check(&self) -> Result<(), String> {
        let writers = self.writers()?;
        let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.transactions.len()];
        let mut follows = |first: usize, second: usize| {
            if first != second {
                after[first].insert(second);
            }
        };
        for list in &self.lists {
            list.windows(2).for_each(|two| follows(writers[&two[0]], writers[&two[1]]));
        }
        for (at, transaction) in self.transactions.iter().enumerate().filter(|(_, of)| of.committed) {
            self.check_reads(transaction)?;
            for operation in &transaction.operations {
                let Operation::Read(key, seen) = operation else { continue };
                let list = &self.lists[*key as usize];
                seen.last().into_iter().for_each(|last| follows(writers[last], at));
                list.get(seen.len()).into_iter().for_each(|next| follows(at, writers[next]));
            }
            for (other, later) in self.transactions.iter().enumerate() {
                if later.committed && transaction.ended < later.began {
                    follows(at, other);
                }
            }
        }
        self.no_cycle(&after)
    }

    /// Returns the transaction that appended each number of the final lists. Fails if one is there twice, is missing, or was
    /// appended by a transaction that was given up.
    fn writers(&self) -> Result<BTreeMap<u64, usize>, String> {
        let mut appended = BTreeMap::new();
        for (at, transaction) in self.transactions.iter().enumerate() {
            for operation in &transaction.operations {
                if let Operation::Append(key, number) = operation {
                    appended.insert(*number, (at, *key, transaction.committed));
                }
            }
        }
        let mut writers = BTreeMap::new();
        for (key, list) in self.lists.iter().enumerate() {
            for number in list {
                match appended.get(number) {
                    Some((at, of, true)) if *of == key as u64 => {
                        if writers.insert(*number, *at).is_some() {
                            return Err(format!("{number} is there twice"));
                        }
                    }
                    _ => return Err(format!("{number} was taken back, and is there")),
                }
            }
        }
        match appended.iter().find(|(number, (_, _, committed))| *committed && !writers.contains_key(number)) {
            Some((number, _)) => Err(format!("{number} is lost")),
            None => Ok(writers),
        }
    }

    /// Fails if a read is no beginning of the final list, does not end with the own appends before it, or ends between two
    /// appends of another transaction.
    fn check_reads(&self, transaction: &Transaction) -> Result<(), String> {
        let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for operation in &transaction.operations {
            match operation {
                Operation::Append(key, number) => own.entry(*key).or_default().push(*number),
                Operation::Read(key, seen) => {
                    let own = own.get(key).map_or(&[][..], Vec::as_slice);
                    if !self.lists[*key as usize].starts_with(seen) || !seen.ends_with(own) {
                        return Err(format!("{transaction:?} has read {seen:?}"));
                    }
                    self.is_between(&seen[..seen.len() - own.len()], *key)?;
                }
            }
        }
        Ok(())
    }

    /// Fails if what was read of a key ends with an append that is not the last one of its transaction.
    fn is_between(&self, seen: &[u64], key: u64) -> Result<(), String> {
        let Some(last) = seen.last() else { return Ok(()) };
        let of_key = |of: &Transaction| -> Vec<u64> {
            let numbers = of.operations.iter().filter_map(|operation| match operation {
                Operation::Append(of, number) if *of == key => Some(*number),
                _ => None,
            });
            numbers.collect()
        };
        let torn = self.transactions.iter().map(of_key).any(|of| of.contains(last) && of.last() != Some(last));
        if torn { Err(format!("a read of {key} ends inside a transaction, with {last}")) } else { Ok(()) }
    }

    /// Fails with the transactions that remain after all that can come first are removed (Kahn's algorithm).
    fn no_cycle(&self, after: &[BTreeSet<usize>]) -> Result<(), String> {
        let mut before = vec![0; after.len()];
        after.iter().flatten().for_each(|next| before[*next] += 1);
        let mut ready: Vec<usize> = (0..after.len()).filter(|at| before[*at] == 0).collect();
        let mut ordered = 0;
        while let Some(at) = ready.pop() {
            ordered += 1;
            for next in &after[at] {
                before[*next] -= 1;
                if before[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
        if ordered == after.len() {
            return Ok(());
        }
        let stuck = self.transactions.iter().zip(before).filter(|(_, before)| *before > 0);
        let stuck: Vec<String> = stuck.take(6).map(|(transaction, _)| format!("{transaction:?}")).collect();
        Err(format!("no order explains {}", stuck.join("\n")))
    }
}

/// Returns a committed transaction.
fn committed(began: u64, ended: u64, operations: &[Operation]) -> Transaction {
    Transaction { began, ended, committed: true, operations: operations.to_vec() }
}

#[test]
fn the_check_finds_each_anomaly() {
    use Operation::{Append, Read};
    let found = |transactions: Vec<Transaction>, lists: &[&[u64]]| {
        let lists = lists.iter().map(|list| list.to_vec()).collect();
        History { transactions, lists }.check().err().unwrap_or_default()
    };
    let write_skew =
        vec![committed(0, 5, &[Read(0, vec![]), Append(1, 1)]), committed(1, 4, &[Read(1, vec![]), Append(0, 2)])];
    assert!(found(write_skew, &[&[2], &[1]]).contains("no order"));
    let stale = vec![committed(0, 1, &[Append(0, 1)]), committed(2, 3, &[Read(0, vec![])])];
    assert!(found(stale, &[&[1]]).contains("no order"));
    let lost = vec![committed(0, 1, &[Append(0, 1)]), committed(2, 3, &[Append(0, 2)])];
    assert!(found(lost, &[&[2]]).contains("1 is lost"));
    let torn = vec![committed(0, 9, &[Append(0, 1), Append(0, 2)]), committed(1, 8, &[Read(0, vec![1])])];
    assert!(found(torn, &[&[1, 2]]).contains("inside a transaction"));
    let given_up = Transaction { committed: false, ..committed(0, 1, &[Append(0, 1)]) };
    assert!(found(vec![given_up], &[&[1]]).contains("taken back"));
    let right =
        vec![committed(0, 5, &[Append(0, 1), Append(1, 2)]), committed(1, 4, &[Read(0, vec![1]), Append(1, 3)])];
    assert_eq!(found(right, &[&[1], &[2, 3]]), "");
}
