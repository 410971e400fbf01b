//! Marks that are unknown, contradict each other or the signature.

extern crate weir_host as weir;

#[weir::function(purr)]
fn unknown() {}

#[weir::function(pure, reads)]
fn pure_and_reads() {}

#[weir::function(pure, deferrable)]
fn pure_and_deferrable() {}

#[weir::function(fresh = "2m")]
fn fresh_and_writes() {}

#[weir::function(reads, fresh = "2 minutes")]
fn fresh_for_what() {}

#[weir::function(idempotent, idempotent)]
fn twice() {}

#[weir::function(blocking)]
async fn blocking_and_async() {}

#[weir::function(pure)]
fn pure_and_changes(_count: &mut i64) {}

#[weir::function(new = Default::default)]
fn new_without_self() {}

#[weir::function(name = "to jpeg")]
fn two_words() {}

fn main() {}
