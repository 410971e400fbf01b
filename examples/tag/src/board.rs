//! The board: who plays, where, and who is "it".

use std::collections::BTreeMap;

weir::library! {
    /// The board of a game of tag.
    pub(crate) tag: board, join, leave, player, players, put, catch, Dice::roll
}

/// Somebody who plays.
#[derive(weir::Type, Clone, Debug, PartialEq, Eq)]
#[weir(name = "tag.Player")]
pub(crate) struct Player {
    /// The address that their packets come from and go to.
    pub(crate) address: String,
    /// Horizontal position, from the left.
    pub(crate) x: i64,
    /// Vertical position, from the top.
    pub(crate) y: i64,
    /// True if they have to catch the others.
    pub(crate) it: bool,
}

/// All who play, by their addresses.
#[derive(weir::Type)]
#[weir(opaque, unique, name = "tag.Board")]
pub(crate) struct Board(BTreeMap<String, Player>);

/// A board on which nobody stands.
#[weir::function(reads)]
pub(crate) fn board() -> Board {
    Board(BTreeMap::new())
}

/// Somebody begins to play here, or goes on where they stand. The first one is "it".
#[weir::function(reads)]
pub(crate) fn join(board: &mut Board, address: &str, x: i64, y: i64) {
    let it = board.0.is_empty();
    let player = Player { address: address.to_owned(), x, y, it };
    board.0.entry(address.to_owned()).or_insert(player);
}

/// Somebody stops playing. Where they were "it", somebody else is.
#[weir::function(reads)]
pub(crate) fn leave(board: &mut Board, address: &str) {
    let left = board.0.remove(address);
    if left.is_some_and(|player| player.it)
        && let Some(next) = board.0.values_mut().next()
    {
        next.it = true;
    }
}

/// Returns the player at this address.
#[weir::function(reads)]
pub(crate) fn player(board: &Board, address: &str) -> Option<Player> {
    board.0.get(address).cloned()
}

/// All who play.
#[weir::function(reads)]
pub(crate) fn players(board: &Board) -> Vec<Player> {
    board.0.values().cloned().collect()
}

/// Puts a player somewhere.
#[weir::function(reads)]
pub(crate) fn put(board: &mut Board, address: &str, x: i64, y: i64) {
    if let Some(player) = board.0.get_mut(address) {
        (player.x, player.y) = (x, y);
    }
}

/// From now on this one is "it", and nobody else.
#[weir::function(reads)]
pub(crate) fn catch(board: &mut Board, address: &str) {
    for player in board.0.values_mut() {
        player.it = player.address == address;
    }
}

/// A die, which is private to the place that rolls it.
pub(crate) struct Dice(u64);

#[weir::function(reads)]
impl Dice {
    /// Creates dice; the throws depend on the seed alone.
    #[new]
    fn seeded(#[default(1)] seed: u64) -> Self {
        Dice(seed)
    }

    /// A number from 0 on that is below this one (Steele, Lea and Flood, "SplitMix", 2014).
    pub(crate) fn roll(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed >> 32) % u64::from(below.max(1))) as u32
    }
}
