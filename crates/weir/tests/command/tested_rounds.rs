//! `for x in xs if condition { … }` over a list, whose rounds change what the condition reads: under each engine and in `weir test`.

use crate::streams::{Folder, engines};
use crate::support::say;

const PROGRAM: &str = r#"use stdio, stream

record Seat { id: Int, left: Int }

table seats: Seat key id
shared room = 1

fn fill() -> Result(Int) {
  seats.upsert(Seat { id: 1, left: 1 })?
  room.set(1)
  Ok(1)
}

fn sold(people: List(Text)) -> Result(List(Text)) {
  atomic seats {
    let sold = for person in people if (seats[1].map(|seat| seat.left) else { 0 }) > 0 {
      seats.update(1, |seat| Seat { ..seat, left: seat.left - 1 })?
      person
    }
    Ok(sold)
  }
}

fn admitted() -> List(Int) {
  atomic room { for x in [1, 2, 3] if room > 0 { room.add(-1); x } }
}

fn checked(x: Int) -> Result(Bool) {
  if x == 2 { fail("the test of {x}") }
  Ok(true)
}

fn first_failure() -> Result(List(Int)) {
  let all = for x in [1, 2] if checked(x)? {
    if x == 1 { fail("the round of {x}") }
    x
  }
  Ok(all)
}

fn shown() -> Result(Text) {
  fill()?
  let failure = match first_failure() { Ok(_) => "none", Err(failure) => "{failure}" }
  Ok("{sold(["ada", "bob"])?} {admitted()} {failure} {for x in [3, 1, 2] if x != 1 order by x limit 1 { x }}")
}

for _ in stream.range(0, 1) {
  let evens = for x in [1, 2, 3, 4] if x % 2 == 0 {
    stdio.print("{x}")?
    x
  }
  stdio.print("{evens} {shown()?}")?
}

test "rounds are tested when they come" {
  expect shown()? == "[\"ada\"] [1] the round of 1 [2]"
}
"#;

#[test]
fn each_element_is_tested_when_its_round_comes() {
    for engine in engines() {
        let folder = Folder::new(&format!("tested-rounds-{engine}"), PROGRAM);
        let said = say(&["run", &folder.program(), "--engine", engine, "--threads", "2"]);
        let wanted = "2\n4\n[2, 4] [\"ada\"] [1] the round of 1 [2]\n";
        assert_eq!((said.code, said.output.as_str()), (0, wanted), "{engine}: {}", said.messages);
    }
    let folder = Folder::new("tested-rounds", PROGRAM);
    let said = say(&["test", &folder.program()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}
