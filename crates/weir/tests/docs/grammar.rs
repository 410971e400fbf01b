//! The grammar of the reference matches the parser: every derived sentence is parsed without a diagnostic.
//!
//! A *rule* is `name = body ;`. A *sentence* is derived from the rule `file` at random; once its *fuel* is used up, the
//! shortest derivation is chosen. Names without a rule, such as `number`, are defined in [`word`].

use std::collections::BTreeMap;

use weir_syntax::{Code, SourceFile, Sources, Style};

use crate::markdown::blocks_named;

const SENTENCES: u64 = 1_000;
/// Nesting of rules after which the shortest derivation is chosen.
const FUEL: u32 = 32;
/// Rules that extend as far to the right as possible, or precede a brace: restrictions that the reference states in
/// prose.
const PARENTHESIZED: [&str; 5] = ["closure", "return", "loop", "head", "other"];
/// Restrictions that the reference states in prose after the grammar.
const BESIDES: [Code; 3] = [Code::PositionalAfterNamed, Code::RepeatedSession, Code::MisplacedClause];

/// The body of a rule.
#[derive(Debug)]
enum Body {
    Terminal(String),
    Rule(String),
    Sequence(Vec<Body>),
    Choice(Vec<Body>),
    Optional(Box<Body>),
    Repeated(Box<Body>),
}

type Rules = BTreeMap<String, Body>;

/// `name = choice ; …`
fn rules(text: &str) -> Rules {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rules = Rules::new();
    let mut rest = &words[..];
    while let [name, "=", after @ ..] = rest {
        rest = after;
        let body = choice(&mut rest);
        let [";", after @ ..] = rest else { panic!("the rule `{name}` does not end: {rest:?}") };
        rest = after;
        assert!(rules.insert((*name).to_owned(), body).is_none(), "two rules `{name}`");
    }
    assert!(rest.is_empty(), "no rule: {rest:?}");
    rules
}

/// `sequence { | sequence }`
fn choice(rest: &mut &[&str]) -> Body {
    let mut all = vec![sequence(rest)];
    while let ["|", after @ ..] = rest {
        *rest = after;
        all.push(sequence(rest));
    }
    if all.len() == 1 { all.remove(0) } else { Body::Choice(all) }
}

fn sequence(rest: &mut &[&str]) -> Body {
    let mut all = Vec::new();
    while let [word, after @ ..] = *rest {
        if ["|", ";", "]", "}", ")"].contains(word) {
            break;
        }
        *rest = after;
        all.push(match *word {
            "[" => Body::Optional(Box::new(closed(rest, "]"))),
            "{" => Body::Repeated(Box::new(closed(rest, "}"))),
            "(" => closed(rest, ")"),
            quoted if quoted.starts_with('"') => Body::Terminal(quoted.trim_matches('"').to_owned()),
            name => Body::Rule(name.to_owned()),
        });
    }
    Body::Sequence(all)
}

fn closed(rest: &mut &[&str], close: &str) -> Body {
    let body = choice(rest);
    assert_eq!(rest.first(), Some(&close));
    *rest = &rest[1..];
    body
}

/// Returns the least nesting of rules below a body, if it is known.
fn height(body: &Body, known: &BTreeMap<&str, u32>) -> Option<u32> {
    match body {
        Body::Terminal(_) | Body::Optional(_) | Body::Repeated(_) => Some(0),
        Body::Rule(name) => known.get(name.as_str()).map(|height| height + 1),
        Body::Sequence(all) => all.iter().try_fold(0, |most, body| Some(most.max(height(body, known)?))),
        Body::Choice(all) => all.iter().filter_map(|body| height(body, known)).min(),
    }
}

fn heights(rules: &Rules) -> BTreeMap<&str, u32> {
    let words = ["number", "text", "template", "name", "Name", "tuple_index", "path_text", "line_end", "new_line"];
    let mut known: BTreeMap<&str, u32> = words.into_iter().map(|word| (word, 0)).collect();
    loop {
        let found = rules.iter().filter(|(name, _)| !known.contains_key(name.as_str()));
        let found: Vec<_> = found.filter_map(|(name, body)| Some((name.as_str(), height(body, &known)?))).collect();
        if found.is_empty() {
            return known;
        }
        known.extend(found);
    }
}

/// A sentence being derived.
struct Sentence<'a> {
    rules: &'a Rules,
    heights: &'a BTreeMap<&'a str, u32>,
    chance: u64,
    used: &'a mut BTreeMap<String, u32>,
}

impl Sentence<'_> {
    /// Returns a number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance % bound as u64) as usize
    }

    fn rule(&mut self, name: &str, fuel: u32) -> String {
        let Some(body) = self.rules.get(name) else { return self.word(name) };
        *self.used.entry(name.to_owned()).or_default() += 1;
        let text = self.body(body, fuel.saturating_sub(1));
        let ends_in_if = name == "limited" && text.split(' ').any(|word| word == "if");
        if ends_in_if || PARENTHESIZED.contains(&name) { format!("( {text} )") } else { text }
    }

    fn word(&mut self, name: &str) -> String {
        let words: &[&str] = match name {
            "number" => &["1", "2.5", "0xff", "1_000"],
            "text" => &["\"a\"", "\"\""],
            "template" => &["html\"<b>a</b>\"", "html\"\""],
            "name" => &["a", "b", "some_name"],
            "Name" => &["A", "Point"],
            "tuple_index" => &[".0", ".12"],
            "path_text" => &["\"/\"", "\"/a/b\""],
            "line_end" => &["\n", ";"],
            "new_line" => &["\n"],
            other => panic!("the grammar has no rule `{other}`"),
        };
        let at = self.below(words.len());
        words[at].to_owned()
    }

    fn body(&mut self, body: &Body, fuel: u32) -> String {
        match body {
            Body::Terminal(text) => text.clone(),
            Body::Rule(name) => self.rule(name, fuel),
            Body::Sequence(all) => {
                let parts: Vec<String> = all.iter().map(|body| self.body(body, fuel)).collect();
                parts.join(" ")
            }
            Body::Choice(all) => {
                let at = self.alternative(all, fuel);
                self.body(&all[at], fuel)
            }
            Body::Optional(body) => {
                if fuel > 0 && self.below(2) == 0 {
                    self.body(body, fuel)
                } else {
                    String::new()
                }
            }
            Body::Repeated(body) => {
                let times = if fuel > 0 { [0, 0, 0, 0, 0, 1, 1, 2][self.below(8)] } else { 0 };
                let parts: Vec<String> = (0..times).map(|_| self.body(body, fuel)).collect();
                parts.join(" ")
            }
        }
    }

    fn alternative(&mut self, all: &[Body], fuel: u32) -> usize {
        let height = |body: &Body| height(body, self.heights).unwrap_or(u32::MAX);
        let least = all.iter().map(height).min().unwrap_or(0);
        let possible: Vec<usize> =
            (0..all.len()).filter(|at| fuel > height(&all[*at]) || height(&all[*at]) == least).collect();
        possible[self.below(possible.len())]
    }
}

fn grammar() -> Rules {
    let blocks = blocks_named("ebnf");
    let [block] = &blocks[..] else { panic!("the reference has one grammar") };
    rules(&block.text)
}

/// Returns the diagnostics of a sentence, except those that the prose of the reference announces.
fn refused(text: &str) -> Option<String> {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("sentence.weir", text));
    let mut found = weir_syntax::parse(source, text).diagnostics;
    found.retain(|one| !BESIDES.contains(&one.code));
    let drawn = weir_syntax::render_all(&sources, &found, Style::Plain);
    (!found.is_empty()).then(|| format!("{drawn}\n{text}"))
}

#[test]
fn every_sentence_of_the_grammar_is_parsed() {
    let rules = grammar();
    let heights = heights(&rules);
    let mut used = BTreeMap::new();
    let sentences = (1..=SENTENCES).map(|seed| {
        let chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // One item is enough, and always exists.
        Sentence { rules: &rules, heights: &heights, chance, used: &mut used }.rule("item", FUEL)
    });
    let faults = sentences.filter_map(|text| Some((text.len(), refused(&text)?)));
    if let Some((_, shortest)) = faults.min() {
        panic!("{shortest}");
    }
    let unused: Vec<_> = rules.keys().filter(|name| *name != "file" && !used.contains_key(*name)).collect();
    assert!(unused.is_empty(), "no sentence has {unused:?}");
}

#[test]
fn every_reserved_word_is_in_the_grammar() {
    let terminals = format!("{:?}", grammar());
    let reference = blocks_named("text").into_iter().find(|block| block.text.starts_with("as atomic"));
    for word in reference.expect("the reference lists the reserved words").text.split_whitespace() {
        assert!(terminals.contains(&format!("Terminal({word:?})")), "the grammar does not use `{word}`");
    }
}
