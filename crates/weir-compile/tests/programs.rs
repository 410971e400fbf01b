//! The meaning of lowered programs: compiles each, verifies both IRs, and runs its flows on the reference evaluator.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::{program, shown};
use test_support::fixture;
use weir::Value;
use weir_ir::evaluate::Evaluator;

#[test]
fn arithmetic_and_text() {
    assert_eq!(
        shown("fn main() -> Text { \"{1 + 2 * 3} {7 / 2} {7 % 4} {-(2)} {1.5 * 2.0} {2 < 3 && !(1 == 2)}\" }"),
        "7 3 3 -2 3.0 true"
    );
}

#[test]
fn fold_and_loop() {
    let text = "
fn bounded(limit: Int) -> Int {
  fold sum = 0 for n in [1, 2, 3, 4] {
    if sum + n > limit { return sum }
    sum + n
  }
}
fn doubled(start: Int) -> Int { loop n = start { n * 2 } until n > 100 at most 20 }
fn guarded(start: Int) -> Int {
  loop n = start { if n == 8 { return 0 }
    n * 2 } until n > 100 at most 20
}
fn main() -> Text {
  let total = fold (sum, count) = (0, 0) for n in [5, 6] { (sum + n, count + 1) }
  \"{bounded(100)} {bounded(5)} {doubled(3)} {guarded(1)} {guarded(3)} {total.0}/{total.1}\"
}";
    assert_eq!(shown(text), "10 3 192 0 192 11/2");
}

/// An enum may have variants with the names of those of `Option` and `Result`: the expected type decides which one is meant.
#[test]
fn variants_with_the_names_of_outcomes() {
    let text = "
enum Access { None, Some(Int), Ok, Read }
fn found(n: Int) -> Option(Int) { if n > 0 { Some(n) } else { None } }
fn checked(n: Int) -> Result(Int) { if n > 0 { Ok(n) } else { Err(Failure(\"no\")) } }
fn level(access: Access) -> Int { match access { None => 0, Some(n) => n, Ok => 8, Read => 9 } }
fn main() -> Text {
  let plain = None
  let is_lost = found(0) == None
  let n = match found(2) { Some(n) => n, None => 0 }
  let Ok(m) = checked(3) else { return \"failed\" }
  \"{is_lost} {n} {m} {level(plain)} {level(Some(5))} {level(Ok)} {level(Read)}\"
}";
    assert_eq!(shown(text), "true 2 3 0 5 8 9");
}

#[test]
fn matching() {
    let text = "
enum Shape { Circle(radius: Float), Box(width: Float, height: Float), Empty }
record Post { title: Text, tags: List(Text) }
fn area(shape: Shape) -> Float {
  match shape {
    Circle(radius: r) if r > 10.0 => -1.0
    Circle(r) => r * 3.0
    Box(height: h, width: w) => w - h
    Empty => 0.0
  }
}
fn word(n: Int) -> Text {
  match n {
    ..=-1 => \"negative\"
    0 | 1 => \"small\"
    2..10 => \"medium\"
    _ => \"large\"
  }
}
fn parts(post: Post) -> Text {
  match post {
    Post { title: \"x\", .. } => \"x\"
    Post { tags: [], title } => title
    Post { tags: [one], .. } => one
    Post { tags: [first, .., last], .. } => \"{first}-{last}\"
  }
}
fn both(a: Option(Int), b: Option(Int)) -> Int {
  match (a, b) {
    (Some(x), None) | (None, Some(x)) => x
    (Some(x), Some(y)) => x * y
    (None, None) => 0
  }
}
fn main() -> Text {
  let shapes = for shape in [Circle(radius: 2.0), Circle(20.0), Box(5.0, 2.0), Empty] { area(shape) }
  let words = for n in [-5, 0, 1, 9, 10] { word(n) }
  let posts = [Post { title: \"x\", tags: [] }, Post { title: \"y\", tags: [] }, Post { title: \"z\", tags: [\"t\"] }]
  let last = Post { ..posts[0], title: \"w\", tags: [\"a\", \"b\", \"c\"] }
  let titles = for post in posts + [last] { parts(post) }
  \"{shapes} {words} {titles} {both(Some(2), None)} {both(None, Some(3))} {both(Some(4), Some(5))} {both(None, None)}\"
}";
    assert_eq!(
        shown(text),
        "[6.0, -1.0, 3.0, 0.0] [\"negative\", \"small\", \"small\", \"medium\", \"large\"] [\"x\", \"y\", \"t\", \"a-c\"] 2 3 20 0"
    );
}

#[test]
fn closures_are_inlined_where_they_are_called() {
    let text = "
fn twice(f: fn(Int) -> Int, x: Int) -> Int { f(f(x)) }
fn increment(n: Int) -> Int { n + 1 }
fn main() -> Text {
  let step = 10
  let add = |n| n + step
  \"{twice(add, 1)} {twice(increment, 1)} {twice(|n| twice(|m| m * step, n), 1)}\"
}";
    assert_eq!(shown(text), "21 3 10000");
}

#[test]
fn named_arguments_defaults_and_pipes() {
    let text = "
fn show(value: Int, before: Text = \"<\", after: Text = \">\") -> Text { \"{before}{value}{after}\" }
fn main() -> Text { \"{show(1)} {show(after: \"!\", value: 2)} {3 |> show(before: \"(\")} {\" x \" |> text.trim}\" }";
    assert_eq!(shown(&format!("use text\n{text}")), "<1> <2! (3> x");
}

#[test]
fn let_else_and_maps() {
    let text = "
fn first(names: List(Text)) -> Text {
  let [name, ..rest] = names else { return \"nobody\" }
  \"{name}+{rest.length()}\"
}
fn age(ages: Map(Text, Int), name: Text) -> Int { ages[name] else { 0 } }
fn main() -> Text {
  let ages = [\"ada\": 36]
  \"{first([\"a\", \"b\"])} {first([])} {age(ages, \"ada\")} {age(ages, \"bob\")}\"
}";
    assert_eq!(shown(text), "a+1 nobody 36 0");
}

const IMAGE_SERVER: &str = r#"use http, files, image

/// Compressed images, shared by all requests.
shared thumbnails = image.cache(capacity: 64mb)

service images on http(port: 8080) {
  get "/{name}" (name: Text, scale: Int = 8) {
    if scale < 1 || scale > 8 { return http.bad_request("scale must be 1 to 8") }
    let key = "{name}/{scale}"
    let jpeg = match thumbnails.get(key) {
      Some(hit) => hit
      None => {
        let ppm = files.read("images/{name}.ppm") else { return http.not_found() }
        let small = image.scale(image.decode(ppm)?, scale)? |> image.to_jpeg(quality: 85)?
        thumbnails.put(key, small)
        small
      }
    }
    http.ok(jpeg, type: "image/jpeg")
  }
}
"#;

#[test]
fn the_image_server_lowers_as_its_snapshot_shows() {
    let (program, library) = program(IMAGE_SERVER);
    insta::assert_snapshot!(weir_ir::print::expr(&program));
    let mut evaluator = Evaluator::new(&program, &library).unwrap();
    let mut get = |name: &str, scale: i64| evaluator.run(0, 0, vec![Value::text(name), Value::Int(scale)]).unwrap();
    let body = |answer: Value| String::from_utf8(fixture::body_of(&answer).unwrap().to_vec()).unwrap();
    assert_eq!(body(get("weir", 8)), "images/weir.ppm");
    assert_eq!(body(get("weir", 9)), "scale must be 1 to 8");
    assert_eq!(body(get("missing", 8)), "");
}

#[test]
fn sites_are_unique_and_say_how_they_were_reached() {
    let text = "
use http, wire
fn say(line: Text) { wire.log(line) }
fn twice(line: Text) { say(line); say(line) }
service web on http(port: 1) { get \"/\" { twice(\"a\"); wire.log(\"b\"); http.text(\"c\") } }"
        .replace("; ", "\n");
    let (program, _) = program(&text);
    let printed = weir_ir::print::expr(&program);
    for site in ["twice/say/wire.log", "twice/say#2/wire.log", "wire.log", "http.text"] {
        assert!(printed.contains(site), "{site} is not in\n{printed}");
    }
}

#[test]
fn an_atomic_step_holds_what_it_names_in_order_and_as_it_is_used() {
    let text = "
use http, accounts
shared zebra = accounts.new()
shared apple = accounts.new()
service web on http(port: 1) {
  get \"/\" {
    let sum = atomic zebra, apple {
      zebra.set(\"x\", 1)
      apple.balance(\"x\")
    }
    http.text(\"{sum}\")
  }
}";
    let (program, _) = program(text);
    let printed = weir_ir::print::expr(&program);
    let line = printed.lines().find(|line| line.contains("atomic")).unwrap();
    insta::assert_snapshot!(line.trim());
}

#[test]
fn generic_functions_of_the_library() {
    let text = "
fn main() -> Text {
  let names = [\"a\", \"b\"]
  let pairs = names.zip([1, 2, 3])
  let shown = for (name, number) in pairs { \"{name}{number + 1}\" }
  let first = names.first() else { \"none\" }
  let none: Option(Int) = [].first()
  let three = list.filled(2.5, 2) else { [] }
  \"{shown} {first} {none} {three}\"
}";
    assert_eq!(shown(&format!("use list\n{text}")), "[\"a2\", \"b3\"] a None [2.5, 2.5]");
}

#[test]
fn a_text_shows_the_names_of_variants_and_fields() {
    let text = "
enum Shape { Circle(radius: Float), Pair(Int, Int), Empty }
record Post { id: Int, title: Option(Text), shape: Shape }
enum Chain { End, Link(Int, Option(Chain)) }
fn main() -> Text {
  let post = Post { id: 1, title: Some(\"x\"), shape: Circle(2.0) }
  let chain = Link(1, Some(Link(2, None)))
  \"{post} {Pair(1, 2)} {Empty} {(1, None == Some(2))} {chain}\"
}";
    assert_eq!(
        shown(text),
        "Post { id: 1, title: Some(\"x\"), shape: Circle(radius: 2.0) } Pair(1, 2) Empty (1, false) Link(1, Some(Link(2, None)))"
    );
}

#[test]
fn two_entry_points_of_one_source_have_different_names() {
    let (program, _) = program(include_str!("programs/two_sources.weir"));
    let names: Vec<_> = program.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["files.lines", "files.lines#2"]);
}

#[test]
fn a_state_is_made_of_what_is_known_at_start() {
    let text = "
use counter

fn twice(n: Int, width: Int) -> Int {
  counter.step(n, from: width * 2) + counter.step(n, by: width, from: 0)
}

fn main() -> Text {
  let base = 10
  let (width, _) = (base / 2, \"unused\")
  \"{twice(1, width)} {twice(1, base)}\"
}
";
    assert_eq!(shown(text), "16 31");
}

#[test]
fn a_state_that_cannot_be_made_fails_the_start() {
    let text = "
use counter, http

service web on http(port: 1) {
  get \"/\" (n: Int) { http.text(if n > 0 { \"{counter.step(n, from: 0, by: 0)}\" } else { \"\" }) }
}
";
    let (program, library) = program(text);
    let refused = Evaluator::new(&program, &library).err().unwrap();
    assert_eq!(refused.failure.message.as_str(), "no steps");
}

#[test]
fn a_fn_that_nothing_calls_may_leave_open_what_its_states_are_made_of() {
    let text = "use counter\n\nfn open(n: Int) -> Int { counter.step(1, from: n) }\nfn main() -> Text { \"\" }";
    assert_eq!(shown(text), "");
}

#[test]
fn a_for_over_a_map_goes_through_its_pairs_in_the_order_of_their_keys() {
    let text = "
fn first(ages: Map(Text, Int), above: Int) -> Text {
  for (name, age) in ages { if age > above { return name } }
  \"nobody\"
}

fn main() -> Text {
  let again = \"Kathleen\"
  let ages = [\"Kathleen\": 31, \"Ada\": 36, again: 32]
  let shown = for (name, age) in ages { \"{name} {age}\" }
  let sum = fold sum = 0 for (_, age) in ages { sum + age }
  let pairs = for pair in ages { pair.1 }
  let none: Map(Text, Int) = [:]
  \"{shown} {sum} {pairs} {first(ages, 33)} {first(ages, 40)} {for (a, _) in none { a }}\"
}
";
    assert_eq!(shown(text), "[\"Kathleen 32\", \"Ada 36\"] 68 [32, 36] Ada nobody []");
}

#[test]
fn a_list_pattern_names_its_middle() {
    let text = "
fn inner(list: List(Int)) -> Text {
  match list {
    [first, ..middle, last] if first == last => \"{first} around {middle}\"
    [a, b, ..middle, c] => \"{middle} of {a} {b} {c}\"
    [..front, last] => \"{last} behind {front}\"
    _ => \"none\"
  }
}

fn main() -> Text {
  \"{inner([1, 2, 3, 1])}, {inner([1, 1])}, {inner([1, 2, 3])}, {inner([1, 2])}, {inner([])}\"
}
";
    assert_eq!(shown(text), "1 around [2, 3], 1 around [], [] of 1 2 3, 2 behind [1], none");
}

#[test]
fn constants_and_names_of_types() {
    let text = "
const week = 7 * day
const day = 24 * hours
const hours: Amount = 24 / 24
const limits = [\"a\": week, \"b\": -day]
const origin = Point { y: 3 }
const shape = Some(Shape.Circle(1.5))
const wide = day > 20 && !(\"a\" == \"b\") || day / 0 == 1
const wait = 2 * 1s + 500ms
type Amount = Int
type Points = List(P)
type P = Point
enum Shape { Circle(Float), Empty }
record Point { x: Amount = 2 * day, y: Int, shape: Shape = Empty, wait: Duration = wait }
fn sum(points: Points) -> Amount { fold sum = 0 for p in points { sum + p.x + p.y } }
fn main() -> Text {
  let circle = match shape { Some(Circle(radius)) => radius
    _ => 0.0 }
  \"{week} {limits[\"b\"] else { 0 }} {origin} {sum([origin, P { x: 1, y: 1 }])} {circle} {wide} {wait}\"
}";
    assert_eq!(shown(text), "168 -24 Point { x: 48, y: 3, shape: Empty, wait: 2500ms } 53 1.5 true 2500ms");
}

#[test]
fn a_function_gets_the_type_that_its_place_expects() {
    let text = "
use json
enum Kind { Plain as \"plain\", Tagged(Text) }
record Item { name: Text as \"item-name\" = \"none\", kinds: List(Kind) = [Plain] }
fn generic(text: Text, like: a) -> Result((Text, a)) {
  let found: a = json.decode(text)?
  Ok((\"found\", found))
}
fn item(text: Text) -> Result(Map(Text, Option(Item))) { json.decode(text) }
fn main() -> Text {
  let (_, three) = generic(\"3\", 1) else { (\"\", 0) }
  let all = for text in [\"1\", \"x\"] { json.decode(text) else { 7 } }
  let why = match item(\"\") { Ok(_) => \"\"
    Err(failure) => \"{failure}\" }
  let other = match generic(\"\", 1.5) { Ok(_) => \"\"
    Err(failure) => \"{failure}\" }
  \"{three + 1} {all} {other} {why}\"
}";
    let item = "record Item {name: Text as \"item-name\" = \"none\", kinds: List(Kind) = [#0]}";
    let kind = "enum Kind {Plain() as \"plain\", Tagged(0: Text)}";
    assert_eq!(shown(text), format!("4 [1, 7] Float Map(Text, Option(Item)); {item}; {kind}"));
}

#[test]
fn a_format_is_a_call_of_the_functions_that_format_and_pad() {
    let text = "
fn main() -> Text {
  let (n, x, t) = (7, 1.5, \"é\")
  \"{n:,} {n:08} {n:9,} {x:.2} {x:<9} {t:4} {t:>4} {[n]:4}\"
}";
    let floats = "float(1.5, Some(2), false, 0) end(float(1.5, None, false, 0), 9,  )";
    let rest = "end(é, 4,  ) start(é, 4,  ) end([7], 4,  )";
    let ints = "int(7, true, 0) int(7, false, 8) start(int(7, true, 0), 9,  )";
    assert_eq!(shown(text), format!("{ints} {floats} {rest}"));
}

#[test]
fn a_program_of_every_form_of_constraint_compiles() {
    let (program, _, said, _) = running::compiled(include_str!("programs/constraints.weir"));
    let printed = weir_ir::print::expr(&program.unwrap_or_else(|| panic!("{said}")));
    for held in ["read constraint disk", "read constraint pictures", "write per session constraint board"] {
        assert!(printed.contains(held), "{held}:\n{printed}");
    }
}
