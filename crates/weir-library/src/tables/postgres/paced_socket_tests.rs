//! Large answers that arrive on several connections at the same time.

use test_support::is_run_alone;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};
use weir::memory::{self, MemoryLimits, Reservation};

use super::paced_socket::PacedSocket;

/// The memory of the program.
const PROGRAM_BYTES: u64 = 64 << 20;

/// Sends an answer with messages of these lengths, each in pieces, and its end.
async fn send(mut socket: DuplexStream, lengths: Vec<usize>) {
    for (kind, length) in lengths.into_iter().map(|length| (b'D', length)).chain([(b'Z', 1)]) {
        let mut left = length;
        socket.write_u8(kind).await.unwrap();
        socket.write_all(&u32::try_from(length + 4).unwrap().to_be_bytes()).await.unwrap();
        while left > 0 {
            let piece = left.min(48 * 1024);
            socket.write_all(&vec![b'x'; piece]).await.unwrap();
            left -= piece;
            yield_now().await;
        }
    }
}

/// Receives an answer with messages of these lengths on each of some connections, whose buffers keep all of it to its end. Returns the
/// most that the program has held meanwhile.
fn held_at_most(connections: usize, lengths: &[usize]) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let whole = lengths.iter().map(|length| length + 5).sum::<usize>() + 6;
    runtime.block_on(async {
        let mut receiving = JoinSet::new();
        for _ in 0..connections {
            let (sender, receiver) = duplex(64 * 1024);
            tokio::spawn(send(sender, lengths.to_vec()));
            receiving.spawn(async move {
                let (mut socket, mut buffer) = (PacedSocket::new(receiver), vec![0; 100_000]);
                let (mut reads, mut held) = (Vec::new(), 0);
                while reads.iter().sum::<usize>() < whole {
                    let read = socket.read(&mut buffer).await.unwrap();
                    assert!(read > 0, "{} of {whole}", reads.iter().sum::<usize>());
                    memory::allocated(read);
                    reads.push(read);
                    held = held.max(memory::used());
                }
                reads.into_iter().for_each(memory::released);
                held
            });
        }
        receiving.join_all().await.into_iter().max().unwrap_or(0)
    })
}

/// The limits are those of the process, as are the messages that arrive.
#[test]
fn large_messages_wait_until_there_is_room_and_one_answer_may_always_arrive() {
    if is_run_alone(
        (module_path!(), "large_messages_wait_until_there_is_room_and_one_answer_may_always_arrive"),
        "true",
    ) {
        return;
    }
    MemoryLimits { program: PROGRAM_BYTES, ..MemoryLimits::default() }.apply();
    let mebibytes = |bytes: u64| bytes >> 20;
    // Together, the answers have 216 MiB. One that goes on without room has two messages, each with a buffer of 16 MiB.
    let held = held_at_most(12, &[10, 9 << 20, 0, 9 << 20, 200_000]);
    assert!((20..=64 + 32).contains(&mebibytes(held)), "{held}");
    // A message that is larger than the memory of the program.
    let held = held_at_most(3, &[65 << 20]);
    assert!((64..=130).contains(&mebibytes(held)), "{held}");
    // The others end, too, if the program has no room for any.
    let others = Reservation::beyond_limit(PROGRAM_BYTES);
    let held = held_at_most(3, &[1 << 20, 1 << 20]);
    assert!(mebibytes(held) <= 64 + 6, "{held}");
    drop(others);
    assert!(mebibytes(memory::used()) == 0);
}
