//! Runs the game as a process: two players over UDP, until one has caught the other.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest time to wait for a packet, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum number of states until a player is caught; a few suffice if no packet is lost.
const STATES_MAX: usize = 200;

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("main.weir")
}

/// A running game and its address.
struct Game {
    process: Child,
    address: String,
}

impl Game {
    fn start(engine: &str) -> Game {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tag"))
            .arg("run")
            .arg(program())
            .args(["--port", "0", "--engine", engine])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(process.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            assert_ne!(messages.read_line(&mut greeting).unwrap(), 0, "it ended: {greeting}");
        }
        let address = greeting.split("udp://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
        Game { process, address: address.to_owned() }
    }

    fn player(&self) -> Player<'_> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Player { address: socket.local_addr().unwrap().to_string(), socket, game: self }
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A player, as a client program would play.
struct Player<'g> {
    socket: UdpSocket,
    address: String,
    game: &'g Game,
}

/// Position of a player, and whether the player is "it".
type Place = (i64, i64, bool);

impl Player<'_> {
    fn act(&self, action: &str, times: u64) {
        for _ in 0..times {
            self.socket.send_to(action.as_bytes(), &self.game.address).unwrap();
        }
    }

    /// Receives the next state of the game: this player's position, and the other's.
    fn state(&self, other: &Player<'_>) -> Option<(Place, Place)> {
        let mut packet = [0; 1000];
        let length = self.socket.recv(&mut packet).unwrap();
        let state = std::str::from_utf8(&packet[..length]).unwrap();
        let place = |address: &str| {
            let words = state.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let own = words.into_iter().find(|words| words[0] == address)?;
            Some((own[1].parse().unwrap(), own[2].parse().unwrap(), own[3] == "it"))
        };
        Some((place(&self.address)?, place(&other.address)?))
    }

    /// Moves to the position of the other player.
    fn chase(&self, (x, y, _): Place, (to_x, to_y, _): Place) {
        self.act(if to_x > x { "right" } else { "left" }, to_x.abs_diff(x));
        self.act(if to_y > y { "down" } else { "up" }, to_y.abs_diff(y));
    }
}

#[test]
fn the_one_who_is_it_catches_the_other() {
    for engine in ["event", "elastic"] {
        let game = Game::start(engine);
        let (one, other) = (game.player(), game.player());
        one.act("join", 1);
        other.act("join", 1);
        let states = (0..STATES_MAX).find_map(|_| one.state(&other));
        let (first, second) = states.expect("both play");
        assert_ne!(first.2, second.2, "one of them is it");
        let (it, hunted) = if first.2 { (&one, &other) } else { (&other, &one) };
        let caught = (0..STATES_MAX).find_map(|_| {
            let (own, theirs) = it.state(hunted)?;
            if own.2 {
                it.chase(own, theirs);
            }
            (!own.2).then_some((own, theirs))
        });
        let (_, theirs) = caught.expect("nobody runs away");
        assert!(theirs.2, "who is caught is it");
        hunted.act("leave", 1);
        assert!((0..STATES_MAX).any(|_| it.state(hunted).is_none()), "who leaves is not seen any more");
    }
}

#[test]
fn its_tests_pass() {
    let tested = Command::new(env!("CARGO_BIN_EXE_tag")).arg("test").arg(program()).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
}
