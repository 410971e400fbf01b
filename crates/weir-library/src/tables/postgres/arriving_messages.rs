//! Large messages that arrive: a connection receives each as a whole before its flow sees it, so it asks for the room when the message
//! begins, and reads on when there is enough.
//!
//! Several may arrive at the same time as long as each leaves as much of the program's memory free as it takes, so that flows can go
//! on which take over what has arrived. Otherwise a message waits: the database is not told to send less, but its answer stays in the
//! network. Connections that have received a large message of an answer keep its room until the answer ends. So if all wait, the one
//! that was the first to receive one goes on nevertheless, until its answer ends and its room is free again. And if a message that waits
//! has asked [`ATTEMPTS_MAX`] times and nothing has arrived meanwhile, such as when that first answer waits for a flow which waits for
//! another answer, or because the program holds too much for other reasons, it arrives: nothing waits for ever, and a flow that may not
//! hold its row fails. Attempts are counted, because on a busy machine nothing may arrive in any time.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use weir::memory::Reservation;

/// Number of bytes from which a message asks for room. Chosen by judgement: buffers have some ten kB from the beginning.
pub(super) const LARGE_BYTES: usize = 128 * 1024;
/// Time after which a message that waits asks again.
pub(super) const PAUSE: Duration = Duration::from_millis(5);
/// Number of attempts without progress behind which a message arrives for which there is no room. Chosen by judgement: their 50 ms are
/// enough for a flow to take a row, or to fail.
const ATTEMPTS_MAX: u32 = 10;

/// The large answers of this process that arrive.
static ARRIVING: Mutex<ArrivingAnswers> =
    Mutex::new(ArrivingAnswers { numbers: BTreeSet::new(), begun: 0, progress: 0 });

struct ArrivingAnswers {
    /// The numbers of the answers of which a large message has got its room, in the order of that.
    numbers: BTreeSet<u64>,
    /// The number of answers that were ever among them.
    begun: u64,
    /// Grows whenever something of a large message arrives, or an answer ends.
    progress: u64,
}

/// The attempts of a message that waits.
#[derive(Default)]
pub(super) struct RoomAttempts {
    /// The progress at the last one.
    progress: u64,
    /// The number of those without progress.
    vain: u32,
}

/// An answer that has a large message. Dropping it says that it has arrived.
pub(super) struct LargeAnswer(u64);

impl LargeAnswer {
    fn begin(arriving: &mut ArrivingAnswers) -> LargeAnswer {
        arriving.begun += 1;
        arriving.numbers.insert(arriving.begun);
        LargeAnswer(arriving.begun)
    }
}

impl Drop for LargeAnswer {
    fn drop(&mut self) {
        let mut arriving = ARRIVING.lock();
        arriving.numbers.remove(&self.0);
        arriving.progress += 1;
    }
}

/// The room of a large message that arrives.
pub(super) struct MessageRoom(Reservation);

impl MessageRoom {
    /// Reserves the room of a message of an answer; `None` if it has to wait.
    pub(super) fn of(
        bytes: usize,
        answer: &mut Option<LargeAnswer>,
        attempts: &mut RoomAttempts,
    ) -> Option<MessageRoom> {
        let needed = bytes.checked_next_power_of_two().unwrap_or(bytes) as u64;
        let mut arriving = ARRIVING.lock();
        attempts.vain = if attempts.progress == arriving.progress { attempts.vain + 1 } else { 0 };
        attempts.progress = arriving.progress;
        let room = Reservation::leaving_as_much(needed).or_else(|| {
            let is_first = answer.as_ref().is_some_and(|answer| arriving.numbers.first() == Some(&answer.0));
            (is_first || attempts.vain >= ATTEMPTS_MAX).then(|| Reservation::beyond_limit(needed))
        })?;
        arriving.progress += 1;
        answer.get_or_insert_with(|| LargeAnswer::begin(&mut arriving));
        Some(MessageRoom(room))
    }

    /// Notes that so much of the message has arrived: the buffer, which doubles its room until the message fits, has allocated
    /// what was reserved for it.
    pub(super) fn received(&mut self, bytes: usize) {
        self.0.shrink(bytes.saturating_mul(2));
        ARRIVING.lock().progress += 1;
    }
}
