//! The board: the players, their positions, and who is "it".

use std::collections::BTreeMap;

weir::library! {
    /// The board of a game of tag.
    pub(crate) tag: board, join, leave, player, players, put, catch, Dice::roll
}

/// A player.
#[derive(weir::Type, Clone, Debug, PartialEq, Eq)]
#[weir(name = "tag.Player")]
pub(crate) struct Player {
    /// The player's network address.
    pub(crate) address: String,
    /// Distance from the left edge.
    pub(crate) x: i64,
    /// Distance from the upper edge.
    pub(crate) y: i64,
    /// `true` for the player who has to catch the others.
    pub(crate) it: bool,
}

/// The players, by address.
#[derive(weir::Type)]
#[weir(opaque, unique, name = "tag.Board")]
pub(crate) struct Board(BTreeMap<String, Player>);

/// Creates an empty board.
#[weir::function(reads)]
pub(crate) fn board() -> Board {
    Board(BTreeMap::new())
}

/// Adds a player at a position; a player who has joined already stays where they are. The first player is "it".
#[weir::function(reads)]
pub(crate) fn join(board: &mut Board, address: &str, x: i64, y: i64) {
    let it = board.0.is_empty();
    let player = Player { address: address.to_owned(), x, y, it };
    board.0.entry(address.to_owned()).or_insert(player);
}

/// Removes a player. If the player was "it", another one becomes "it".
#[weir::function(reads)]
pub(crate) fn leave(board: &mut Board, address: &str) {
    let left = board.0.remove(address);
    if left.is_some_and(|player| player.it)
        && let Some(next) = board.0.values_mut().next()
    {
        next.it = true;
    }
}

/// Returns the player with this address.
#[weir::function(reads)]
pub(crate) fn player(board: &Board, address: &str) -> Option<Player> {
    board.0.get(address).cloned()
}

/// Returns all players.
#[weir::function(reads)]
pub(crate) fn players(board: &Board) -> Vec<Player> {
    board.0.values().cloned().collect()
}

/// Moves a player to a position.
#[weir::function(reads)]
pub(crate) fn put(board: &mut Board, address: &str, x: i64, y: i64) {
    if let Some(player) = board.0.get_mut(address) {
        (player.x, player.y) = (x, y);
    }
}

/// Makes this player, and no other, "it".
#[weir::function(reads)]
pub(crate) fn catch(board: &mut Board, address: &str) {
    for player in board.0.values_mut() {
        player.it = player.address == address;
    }
}

/// A die, whose state is private to its call site.
pub(crate) struct Dice(u64);

#[weir::function(reads)]
impl Dice {
    /// Creates a die whose numbers depend only on the seed.
    #[new]
    fn seeded(#[default(1)] seed: u64) -> Self {
        Dice(seed)
    }

    /// Returns a random number from 0 to `below` (exclusive) (Steele, Lea and Flood, "SplitMix", 2014).
    pub(crate) fn roll(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed >> 32) % u64::from(below.max(1))) as u32
    }
}
