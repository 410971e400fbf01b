//! Limits of the compiler: a program that is too large or too deep gets a diagnostic and never crashes the compiler.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use running::compiled;
use test_support::fixture;
use weir_host::Value;
use weir_ir::evaluate::Evaluator;

fn service(body: &str) -> String {
    format!("service s on http(port: 1) {{ get \"/\" {{\n{body}\nhttp.not_found()\n}} }}\n")
}

/// Compiles on a thread with the default stack size.
fn codes(text: String) -> Vec<String> {
    let work = move || compiled(&text).2;
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap();
    let said = thread.join().expect("the compiler ends");
    let codes = said.lines().filter_map(|line| line.split_once('[')?.1.split_once(']'));
    codes.map(|(code, _)| code.to_owned()).collect()
}

#[test]
fn fns_that_call_each_other_in_a_long_chain() {
    for (length, said) in [(40, &[][..]), (2_000, &["E0317"][..])] {
        let mut text = String::from("use http\n");
        for at in 0..length {
            _ = writeln!(text, "fn f{at}(n: Int) -> Int {{ if n > {at} {{ f{}(n + 1) }} else {{ n }} }}", at + 1);
        }
        _ = writeln!(text, "fn f{length}(n: Int) -> Int {{ n }}\n{}", service("let n = f0(1)"));
        assert_eq!(codes(text), said, "{length}");
    }
}

#[test]
fn expressions_that_nest_deep_within_fns_that_nest_deep() {
    let mut text = String::from("use http\n");
    for at in 0..100 {
        let callee = if at == 99 { "n".to_owned() } else { format!("f{}(n)", at + 1) };
        let nested = format!("{}{callee}{}", "(1 + ".repeat(60), ")".repeat(60));
        _ = writeln!(text, "fn f{at}(n: Int) -> Int {{ {nested} }}");
    }
    assert_eq!(codes(format!("{text}{}", service("let n = f0(1)"))), ["E0317"]);
}

#[test]
fn a_fn_with_very_many_question_marks() {
    for count in [50, 1_000] {
        let mut text = String::from("use http, files\nfn load() -> Result(Int) {\n");
        (0..count).for_each(|_| _ = writeln!(text, "  files.write(\"a\", files.read(\"b\")?)?"));
        _ = writeln!(text, "  Ok(1)\n}}\n{}", service("let n = load() else { 0 }"));
        assert_eq!(codes(text), [""; 0], "{count}");
    }
}

#[test]
fn a_statement_with_very_many_question_marks() {
    for (count, said) in [(150, &[][..]), (300, &["E0317"][..])] {
        let list = "files.read(\"b\")?, ".repeat(count);
        let text = format!("use http, files\nfn load() -> Result(List(Bytes)) {{\n  Ok([{list}])\n}}\n");
        assert_eq!(codes(text + &service("let n = load() else { [] }")), said, "{count}");
    }
}

/// Returns a long `fn` in which each statement may exit and uses locals bound long before.
fn long(count: usize) -> String {
    let mut text =
        String::from("use http, text\nfn sum(given: Text) -> Result(Int) {\n  let n0 = text.parse_int(given)?\n");
    for at in 1..=count {
        let (before, far) = (at - 1, at / 2);
        _ = writeln!(text, "  let n{at} = text.parse_int(\"{{(n{before} + n{far}) % 97}}\")?");
        if at % 50 == 0 {
            _ = writeln!(text, "  if n{at} == 13 {{ return Ok(-{at}) }}");
        }
    }
    _ = writeln!(text, "  Ok(n{count})\n}}");
    text
}

#[test]
fn a_long_fn_means_what_it_says() {
    let rust = |given: i64, count: usize| {
        let mut numbers = vec![given];
        for at in 1..=count {
            numbers.push((numbers[at - 1] + numbers[at / 2]) % 97);
            if at % 50 == 0 && numbers[at] == 13 {
                return -(at as i64);
            }
        }
        numbers[count]
    };
    let service =
        "service s on http(port: 1) { get \"/{given}\" (given: Text) { http.text(\"{sum(given) else { 0 }}\") } }";
    let (program, library) = running::program(&format!("{}{service}\n", long(700)));
    let mut evaluator = Evaluator::new(&program, &library).unwrap();
    let mut left = 0;
    for given in 0..60 {
        let answer = evaluator.run(0, 0, vec![Value::text(&given.to_string())]).unwrap();
        let expected = rust(given, 700);
        assert_eq!(fixture::body_of(&answer).unwrap(), expected.to_string(), "{given}");
        left += usize::from(expected < 0);
    }
    assert!((1..60).contains(&left), "some leave early, and some do not: {left}");
}

#[test]
fn a_flow_with_very_many_question_marks_is_flat() {
    let body = "files.write(\"a\", files.read(\"b\")?)?\n".repeat(1_000);
    assert_eq!(codes(format!("use http, files\n{}", service(&body))), [""; 0]);
}

#[test]
fn a_match_with_very_many_arms() {
    let mut text = String::from("use http\nfn word(n: Int) -> Text {\n  match n {\n");
    (0..1_000).for_each(|at| _ = writeln!(text, "    {at} => \"{at}\""));
    _ = writeln!(text, "    _ => \"?\"\n  }}\n}}\n{}", service("let n = word(1)"));
    assert_eq!(codes(text), [""; 0]);
}

#[test]
fn an_enum_with_very_many_variants() {
    let variants: Vec<String> = (0..500).map(|at| format!("V{at}(Int)")).collect();
    let arms: Vec<String> = (0..500).map(|at| format!("    V{at}(n) => n\n")).collect();
    let text = format!(
        "use http\nenum Wide {{ {} }}\nfn value(wide: Wide) -> Int {{\n  match wide {{\n{}  }}\n}}\n{}",
        variants.join(", "),
        arms.concat(),
        service("let n = value(V3(1))")
    );
    assert_eq!(codes(text), [""; 0]);
}

#[test]
fn patterns_that_would_be_looked_at_for_ever() {
    // Each arm tests two of many columns, so that the number of cases multiplies.
    let columns = 12;
    let mut text = String::from("fn f(a: List(Bool)) -> Int {\n  match (");
    text.push_str(&vec!["a[0]"; columns].join(", "));
    text.push_str(") {\n");
    for at in 0..columns {
        for value in ["true", "false"] {
            let mut parts = vec!["_"; columns];
            parts[at] = value;
            parts[(at + 7) % columns] = value;
            _ = writeln!(text, "    ({}) => {at}", parts.join(", "));
        }
    }
    let whole = format!("{text}    _ => -1\n  }}\n}}\n");
    assert!(!codes(whole).contains(&"E0401".to_owned()));
    let open = codes(format!("{text}  }}\n}}\n"));
    assert_eq!(open.first().map(String::as_str), Some("E0401"), "either a missing case, or too many to be looked at");
}

#[test]
fn a_long_fn_moves_what_can_only_be_moved_and_keeps_what_is_known_at_start() {
    let filler = |from: usize| {
        (from..from + 150).fold(String::new(), |mut text, at| {
            _ = writeln!(text, "  let n{at} = text.parse_int(\"{at}\")?");
            text
        })
    };
    let text = format!(
        "use counter, text, wire\nfn talk(address: Text) -> Result(Int) {{\n  let by = 3\n  let wire = wire.connect(address)\n\
         {}  let sent = wire.send(\"one\")\n  let twice = |n| n * 2\n{}  let again = wire.send(\"three\")\n\
         \x20 wire.close()\n{}  let steps = counter.step(from: 10, by: by, times: 2)\n\
         \x20 Ok(sent + again * 10 + twice(steps) * 100 + n160 * 10000)\n}}\nfn main() -> Int {{ talk(\"x\") else {{ -1 }} }}",
        filler(0),
        filler(150),
        filler(300)
    );
    assert_eq!(running::shown(&text), (3 + 50 + 32 * 100 + 160 * 10000).to_string());
}

#[test]
fn templates_with_very_many_elements_or_faults() {
    let page = |content: String| format!("use http\nfn page(x: Text) -> Html {{ html\"{content}\" }}\n{}", service(""));
    let cases: [(String, &[&str]); 7] = [
        ("<li>a".repeat(100_000), &[]),
        ("<p>a".repeat(100_000), &[]),
        ("<div>".repeat(150) + &"</div>".repeat(150), &[]),
        ("<div>".repeat(100_000) + &"</div>".repeat(100_000), &["E0328"]),
        ("<".repeat(100_000), &["E0328"; 11]),
        ("</div>".repeat(100_000), &["E0328"; 11]),
        ("<b>".repeat(20_000) + &"</i>".repeat(20_000), &["E0328"]),
    ];
    for (content, said) in cases {
        let beginning: String = content.chars().take(10).collect();
        let found: Vec<_> = codes(page(content)).into_iter().filter(|code| code.starts_with("E03")).collect();
        assert_eq!(found, said, "{beginning}");
    }
}

#[test]
fn constants_and_types_that_name_one_another_in_a_long_chain() {
    let chain = |length: usize, link: &dyn Fn(usize) -> String, last: &str| {
        (0..length).map(link).collect::<String>() + last + "\nfn main() -> Int { 1 }"
    };
    let constant = |at: usize| format!("const a{at} = a{} + 1\n", at + 1);
    let alias = |at: usize| format!("type A{at} = A{}\n", at + 1);
    let pair = |at: usize| format!("type A{at} = (A{0}, A{0})\n", at + 1);
    let field = |at: usize| format!("record A{at} {{ a: Option(A{}) }}\n", at + 1);
    let held = |at: usize| format!("record A{at} {{ a: A{} }}\n", at + 1);
    let cases: [(String, &[&str]); 10] = [
        (chain(3_000, &constant, "const a3000 = 0"), &[]),
        (chain(3_000, &constant, "const a3000 = a0"), &["E0208"]),
        (chain(3_000, &alias, "type A3000 = Int\nfn f(x: A0) -> Int { x }"), &[]),
        (chain(3_000, &alias, "type A3000 = A0"), &["E0318"]),
        (chain(3_000, &|at| format!("type A{at} = List(A{})\n", at + 1), "type A3000 = Int"), &["E0321"]),
        (chain(40, &pair, "type A40 = Int\nfn f(x: A0) { }"), &["E0321"]),
        (chain(100, &field, "record A100 { a: Int }\nfn f(x: A0) { }"), &[]),
        (chain(3_000, &field, "record A3000 { a: Int }\nfn f(x: A0) { }"), &["E0321"]),
        (chain(3_000, &held, "record A3000 { a: Int }\nfn f(x: A0) { }"), &["E0321"]),
        (chain(3_000, &held, "record A3000 { a: A0 }"), &["E0318", "E0321"]),
    ];
    for (text, said) in cases {
        let beginning: String = text.lines().next().unwrap().to_owned();
        let found: Vec<_> = codes(text).into_iter().filter(|code| code.starts_with('E')).collect();
        let found: BTreeSet<_> = found.iter().map(String::as_str).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), said, "{beginning}");
    }
}

#[test]
fn constants_with_very_many_parts() {
    let list = |length: usize| format!("const all = [{}]\nfn main() -> Int {{ all.length() }}", "1, ".repeat(length));
    let mut doubled = String::from("record R0 { x: Int = 1 }\n");
    for at in 1..20 {
        _ = writeln!(doubled, "record R{at} {{ a: R{0} = R{0} {{ }}, b: R{0} = R{0} {{ }} }}", at - 1);
    }
    let cases = [(list(9_999), vec![]), (list(10_000), vec!["E0315"]), (doubled, vec!["E0315"; 2])];
    for (text, said) in cases {
        let found: Vec<_> = codes(text).into_iter().filter(|code| code.starts_with("E0315")).collect();
        assert_eq!(found, said);
    }
}

#[test]
fn a_default_may_use_a_record_that_is_declared_below() {
    let text = "record A { b: B = B { }, c: Int = most }\nrecord B { x: Int = 1 }\nconst most = 3\n\
                fn main() -> Int { (A { }).b.x + (A { }).c }";
    assert_eq!(running::shown(text), "4");
}
