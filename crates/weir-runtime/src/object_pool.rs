//! Pooled boxes: flows live in boxes that are used again, so that one costs no allocation.
//!
//! Every thread keeps some. Where flows begin on one thread and end on another, the one runs out of boxes while they pile up
//! on the other: there they go over by whole *magazines*, through a common depot, so that the threads meet in it once for
//! many flows (Bonwick and Adams, Magazines and Vmem, USENIX 2001).

use std::cell::RefCell;
use std::thread::LocalKey;

use parking_lot::Mutex;

/// How many boxes go over together.
const MAGAZINE: usize = 128;
/// How many magazines the depot keeps: as many boxes as flows may wait where nothing else is said.
const MAGAZINES_MAX: usize = 80;

/// A type whose boxes are used again. They are empty while they are spare: nothing of a program is kept in them.
pub(crate) trait Pooled: Default + 'static {
    /// Those of this thread.
    fn of_thread() -> &'static LocalKey<LocalPool<Self>>;
    /// Those that are on their way between threads.
    fn depot() -> &'static Depot<Self>;
}

/// The boxes of one thread.
pub(crate) type LocalPool<T> = RefCell<Vec<Box<T>>>;

/// Magazines that have been filled by one thread and not yet taken by another.
pub(crate) struct Depot<T>(Mutex<Vec<Vec<Box<T>>>>);

impl<T> Depot<T> {
    /// An empty depot.
    pub(crate) const fn new() -> Self {
        Depot(Mutex::new(Vec::new()))
    }
}

/// A box.
pub(crate) fn take<T: Pooled>() -> Box<T> {
    T::of_thread().with_borrow_mut(|boxes| {
        if boxes.is_empty() {
            boxes.append(&mut T::depot().0.lock().pop().unwrap_or_default());
        }
        boxes.pop().unwrap_or_default()
    })
}

/// Gives an empty box back.
pub(crate) fn give_back<T: Pooled>(object: Box<T>) {
    // A thread that is ending has no list any more.
    _ = T::of_thread().try_with(|boxes| {
        let mut boxes = boxes.borrow_mut();
        boxes.push(object);
        if boxes.len() >= 2 * MAGAZINE {
            let magazine = boxes.split_off(MAGAZINE);
            let mut depot = T::depot().0.lock();
            if depot.len() < MAGAZINES_MAX {
                depot.push(magazine);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static COUNTS: LocalPool<u64> = const { RefCell::new(Vec::new()) };
    }
    static DEPOT: Depot<u64> = Depot::new();

    impl Pooled for u64 {
        fn of_thread() -> &'static LocalKey<LocalPool<u64>> {
            &COUNTS
        }

        fn depot() -> &'static Depot<u64> {
            &DEPOT
        }
    }

    #[test]
    fn boxes_that_pile_up_on_one_thread_come_back_to_another() {
        let taken: Vec<Box<u64>> = (1..=3 * MAGAZINE as u64).map(Box::new).collect();
        let ended = std::thread::spawn(|| taken.into_iter().for_each(give_back));
        ended.join().unwrap();
        let again: Vec<Box<u64>> = (0..2 * MAGAZINE).map(|_| take()).collect();
        assert!(again.iter().all(|number| **number > 0), "none of them is new");
        assert_eq!(*take::<u64>(), 0, "the rest had not filled a magazine");
    }
}
