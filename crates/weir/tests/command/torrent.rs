//! The peer of BitTorrent in `examples/torrent`: another peer fetches a file from it, and a client speaks to it by hand.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use weir_library::crypto::sha1;

use crate::support::{Scratch, Served};

/// Bytes of a piece: more than a block, so that pieces are fetched in two requests.
const PIECE_BYTES: usize = 20_000;

/// Returns a file of three pieces, the last of them shorter.
fn file() -> Vec<u8> {
    (0..50_000_u32).map(|at| (at * 7 / 3 % 251) as u8).collect()
}

/// Returns the part of the description that identifies a file.
fn info(file: &[u8]) -> Vec<u8> {
    let pieces = file.chunks(PIECE_BYTES);
    let digests: Vec<u8> = pieces.flat_map(|piece| sha1(piece).to_vec()).collect();
    let head = format!("d6:lengthi{}e4:name4:file12:piece lengthi{PIECE_BYTES}e6:pieces{}:", file.len(), digests.len());
    [head.as_bytes(), &digests, b"e"].concat()
}

/// Creates the folder of a peer that has these pieces of the file.
fn folder(name: &str, pieces: &[usize]) -> Scratch {
    let (folder, file) = (Scratch::folder(name), file());
    fs::create_dir(format!("{}/pieces", folder.path())).expect("the folder is empty");
    let torrent = [b"d4:info", &info(&file)[..], b"e"].concat();
    fs::write(format!("{}/file.torrent", folder.path()), torrent).expect("the folder is ours");
    for (number, piece) in file.chunks(PIECE_BYTES).enumerate().filter(|(number, _)| pieces.contains(number)) {
        fs::write(format!("{}/pieces/{number}", folder.path()), piece).expect("the folder is ours");
    }
    folder
}

#[test]
fn a_peer_fetches_the_pieces_that_it_lacks() {
    let (seed, fresh) = (folder("seed", &[0, 1, 2]), folder("fresh", &[1]));
    let serving = Served::start("examples/torrent", &["--root", seed.path()]);
    let peers = format!("peers={}", serving.address);
    let mut fetching = Served::start("examples/torrent", &["--root", fresh.path(), "--set", &peers]);
    let said = fetching.wait_for("fetched");
    assert!(said.contains("pieces=2"), "{said}");
    for (number, piece) in file().chunks(PIECE_BYTES).enumerate() {
        let fetched = fs::read(format!("{}/pieces/{number}", fresh.path())).expect("the piece was fetched");
        assert!(fetched == piece, "piece {number} is another one");
    }
}

/// Sends the handshake of a client that shares the file with this identifier.
fn greet(served: &Served, id: &[u8]) -> TcpStream {
    let mut stream = served.connect();
    let handshake = [b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0", id, b"-XX0001-abcdefghijkl"].concat();
    stream.write_all(&handshake).expect("the peer reads");
    stream
}

fn read(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).expect("the peer answers");
    bytes
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn a_peer_answers_a_client() {
    let seed = folder("answers", &[0, 2]);
    let served = Served::start("examples/torrent", &["--root", seed.path()]);
    let id = sha1(&info(&file()));
    let mut stream = greet(&served, &id);
    assert_eq!(read(&mut stream, 68)[28..48], id[..]);
    assert_eq!(shown(&read(&mut stream, 6)), "0000000205a0", "a bitfield of the first and the third piece");
    // Nothing to keep alive, and interested.
    stream.write_all(&[0, 0, 0, 0, 0, 0, 0, 1, 2]).expect("the peer reads");
    assert_eq!(shown(&read(&mut stream, 5)), "0000000101", "unchoked");
    // 1,000 bytes of the third piece, from byte 9,500: half of them are there.
    let request = [0, 0, 0, 13, 6, 0, 0, 0, 2, 0, 0, 0x25, 0x1c, 0, 0, 0x03, 0xe8];
    stream.write_all(&request).expect("the peer reads");
    assert_eq!(shown(&read(&mut stream, 13)), "000001fd07000000020000251c");
    assert_eq!(read(&mut stream, 500), file()[49_500..]);
}

#[test]
fn a_peer_of_another_file_is_refused() {
    let seed = folder("refuses", &[]);
    let served = Served::start("examples/torrent", &["--root", seed.path()]);
    let mut stream = greet(&served, &[7; 20]);
    read(&mut stream, 68);
    let mut rest = Vec::new();
    _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "the connection ends without a message");
}
