//! An object pool for the reuse of frames and jobs, so that a flow needs no allocation.
//!
//! Every thread keeps boxes of its own. If flows begin on one thread and end on another, the first runs out of boxes
//! while they pile up on the second. Boxes therefore move between threads in *magazines* through a common *depot*, so
//! that the threads contend for its mutex once for many flows (Bonwick and Adams, Magazines and Vmem, USENIX 2001).

use std::cell::RefCell;
use std::thread::LocalKey;

use parking_lot::Mutex;

/// The number of boxes in a magazine. Chosen by judgement: large enough that the depot's mutex is rarely taken, small
/// enough that few boxes are in transit.
const MAGAZINE: usize = 128;
/// The maximum number of magazines that the depot keeps: about as many boxes as flows may wait by default (10,000).
const MAGAZINES_MAX: usize = 80;

/// A type whose boxes are reused. A box is empty while it is in the pool: it holds no data of a program.
pub(crate) trait Pooled: Default + 'static {
    /// Returns the boxes of this thread.
    fn of_thread() -> &'static LocalKey<LocalPool<Self>>;
    /// Returns the depot, through which boxes move between threads.
    fn depot() -> &'static Depot<Self>;
}

/// The boxes of one thread.
pub(crate) type LocalPool<T> = RefCell<Vec<Box<T>>>;

/// Magazines that one thread has filled and no other thread has taken yet.
pub(crate) struct Depot<T>(Mutex<Vec<Vec<Box<T>>>>);

impl<T> Depot<T> {
    /// Returns an empty depot.
    pub(crate) const fn new() -> Self {
        Depot(Mutex::new(Vec::new()))
    }
}

/// Takes a box out of the pool, or allocates one.
#[inline]
pub(crate) fn take<T: Pooled>() -> Box<T> {
    // A thread that is ending has no list any more.
    let taken = T::of_thread().try_with(|boxes| {
        let mut boxes = boxes.borrow_mut();
        if boxes.is_empty() {
            boxes.append(&mut T::depot().0.lock().pop().unwrap_or_default());
        }
        boxes.pop()
    });
    taken.ok().flatten().unwrap_or_default()
}

/// Gives an empty box back to the pool.
#[inline]
pub(crate) fn give_back<T: Pooled>(object: Box<T>) {
    // A thread that is ending has no list any more; the box is then freed.
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
