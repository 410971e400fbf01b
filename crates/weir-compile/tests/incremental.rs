//! After every edit of a program of several files, the incremental check gives what a check from scratch gives: the same
//! diagnostics, types, references and program.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod mutator;

use std::collections::BTreeMap;

use mutator::Numbers;
use test_support::fixture;
use weir_compile::{CheckCache, Checked, ModuleFile, ModuleFiles, ModulePlace, ProgramFiles};
use weir_host::Library;
use weir_syntax::{SourceFile, SourceId, Sources, Style, render_all};

const SHOP: &str = include_str!("incremental/shop.weir");

/// Edits that concern other files, or that move what is behind them: a text and its replacement.
const EDITS: [(&str, &str); 51] = [
    ("pi = 3", "pi = 4"),
    ("rate = 7", "rate = 9"),
    ("rate = 7", "rate = \"7\""),
    ("pub fn area", "fn area"),
    ("fn twice", "pub fn twice"),
    ("pub fn ", "fn "),
    ("\nfn ", "\npub fn "),
    ("(shape: Shape) -> Int", "(shape: Shape, scale: Int = 1) -> Int"),
    ("(shape: Shape) -> Int", "(form: Shape) -> Int"),
    ("-> Int", "-> Float"),
    ("-> Int", "-> Text"),
    ("Int", "Text"),
    ("radius: Int", "radius: Int, width: Int"),
    ("Square(Int)", "Square(Int), Point"),
    ("Square(side)", "Square(_)"),
    ("left > right", "left == right"),
    ("left > right", "true"),
    ("pub record Order", "record Order"),
    ("price: Int = price_of_one", "price: Int"),
    ("price: Int = price_of_one", "price: Int = 1"),
    ("price: Int = price_of_one", "cost: Int = price_of_one"),
    ("shared ledger = accounts.new()", "shared ledger = accounts.new() per session"),
    ("constraint disk on files.write", "constraint disk on files.write, read files"),
    ("constraint disk on files.write", "constraint disk"),
    ("atomic ledger, disk", "atomic disk, ledger"),
    ("atomic ledger, disk", "atomic ledger, disk per session"),
    ("use shapes", "use shapes, store"),
    ("use shapes", ""),
    ("use orders\n", "use orders, report\n"),
    ("use prices.tax", "use prices.tax as prices"),
    ("visits = 0", "visits = 0.5"),
    ("service shop", "service store"),
    ("on failure of orders.place as failure", "on failure of orders.total as failure"),
    ("fn unused(order: Order) -> Int { order.price }", ""),
    ("fold sum = 0", "fold sum = total(0)"),
    ("place(1, shapes", "place(id: 1, shapes"),
    ("place(1, shapes", "place(shape: shapes.Shape.Circle(1), shapes"),
    ("pub table", "table"),
    ("table totals", "pub table totals"),
    ("table likes", "table sales"),
    ("table totals: Total key sale", "table totals: Total key (sale, total)"),
    ("orders.sales cascade", "orders.sales"),
    ("orders.sales cascade", "orders.total"),
    ("default(count: 1)", ""),
    ("key id auto", "key id"),
    ("count: Int }", "count: Int, day: Int }"),
    ("atomic orders.sales, totals", "atomic totals"),
    ("\n\npub table", "\n\nfn sales() -> Int { 1 }\n\npub table"),
    ("\n\n", "\n// a comment\n\n"),
    ("\n\n", "\nfn late(n: Int) -> Int { n // 2\n}\n"),
    ("\n\n", "\npub fn late(n: Int) -> Int { let unread = n; 4 }\n\n"),
];

/// Returns the library of the fixture with the module that stores tables.
fn library() -> Library {
    let mut library = fixture::library();
    let mut standard = weir_library::library();
    let tables = standard.modules.shift_remove("tables").unwrap();
    library.add(tables).unwrap();
    library
}

/// The modules of a program, by their names; that of the main file is `main`.
type Files = BTreeMap<String, String>;

struct Modules<'f>(&'f Files);

impl ModuleFiles for Modules<'_> {
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
        let name = place.names.join("/");
        let text = self.0.get(&name).cloned();
        text.map_or(ModuleFile::Missing, |text| ModuleFile::Found { name: format!("{name}.weir"), text })
    }
}

fn files_in(text: &str) -> Files {
    let sections = text.split("// ").filter_map(|section| section.split_once(".weir\n"));
    sections.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

fn checked(files: &Files, library: &Library, cache: &mut CheckCache) -> (Checked, Sources) {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("main.weir", files["main"].as_str()));
    let program =
        ProgramFiles::load_again(source, sources.file_mut(source), library, &mut Modules(files), &mut cache.trees);
    let checked = weir_compile::check_program(program, sources.file(source), library, cache);
    (checked, sources)
}

/// Returns all that a check finds, without the places of files in the text of the program.
fn findings((checked, sources): &(Checked, Sources)) -> String {
    let file = sources.file(SourceId(0));
    let place = |offset: u32| format!("{}+{}", file.part_at(offset).name, offset - file.part_at(offset).start);
    let mut lines = vec![render_all(sources, &checked.diagnostics, Style::Plain)];
    for part in file.parts() {
        let types = (part.start..part.end).step_by(3).filter_map(|offset| checked.type_at(offset));
        lines.extend(types.map(|(span, ty)| format!("{} {}: {ty}", place(span.start), place(span.end))));
    }
    let references = checked.references();
    let mut names: Vec<String> =
        references.map(|found| format!("{} {:?} {}", place(found.span.start), found.symbol, found.defines)).collect();
    names.sort();
    lines.extend(names);
    let programs = checked.expr.iter().chain(&checked.tests).map(weir_ir::print::expr);
    lines.extend(programs.map(|program| in_files(&program, &place)));
    lines.join("\n")
}

/// Replaces the offsets in a printed program, `@751..766`, and those of calls that a failure has left, by their places in files.
fn in_files(program: &str, place: &impl Fn(u32) -> String) -> String {
    let marked = |line: &str| if line.contains("propagate(") { line.replace("\", ", "\", @") } else { line.to_owned() };
    let program = program.lines().map(marked).collect::<Vec<_>>().join("\n");
    let mut parts = program.split('@');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        let start = part[..digits].parse().map_or_else(|_| "@".to_owned(), place);
        let length = part[digits..].strip_prefix("..").map_or(0, |end| {
            let end: String = end.chars().take_while(char::is_ascii_digit).collect();
            end.len() + 2
        });
        shown = format!("{shown}{start}{}", &part[digits + length..]);
    }
    shown
}

#[track_caller]
fn assert_same(files: &Files, library: &Library, cache: &mut CheckCache, seed: u64) -> bool {
    let again = checked(files, library, cache);
    let first = checked(files, library, &mut CheckCache::default());
    pretty_assert(&findings(&again), &findings(&first), &format!("seed {seed}: {files:#?}"));
    again.0.expr.is_some()
}

#[track_caller]
fn pretty_assert(again: &str, first: &str, program: &str) {
    let differs = again.lines().zip(first.lines()).find(|(again, first)| again != first);
    assert!(again == first, "again and at first: {differs:#?}\n{program}");
}

/// Edits a file: one of the edits above at a place that has it, or a random one.
fn edit(text: &str, numbers: &mut Numbers) -> String {
    let (old, new) = EDITS[numbers.next(EDITS.len())];
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    if places.is_empty() || numbers.next(6) == 0 {
        return mutator::mutated(&[mutator::pieces(text)], numbers);
    }
    let at = places[numbers.next(places.len())];
    format!("{}{new}{}", &text[..at], &text[at + old.len()..])
}

#[test]
fn the_program_is_right() {
    let (library, files) = (library(), files_in(SHOP));
    let checked = checked(&files, &library, &mut CheckCache::default());
    let errors: Vec<_> = checked.0.diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{}", render_all(&checked.1, &checked.0.diagnostics, Style::Plain));
}

#[test]
fn random_edits_of_files_give_what_a_check_from_scratch_gives() {
    let library = library();
    let (mut right, mut wrong) = (0, 0);
    for seed in 1..=60 {
        let mut numbers = Numbers::new(seed);
        let mut cache = CheckCache::default();
        let original = files_in(SHOP);
        let mut files = original.clone();
        assert_same(&files, &library, &mut cache, seed);
        for _ in 0..8 {
            let names: Vec<&String> = original.keys().collect();
            let edited = names.iter().find(|name| files[**name] != original[**name]);
            match edited.filter(|_| numbers.next(5) < 3) {
                Some(name) => files.insert((*name).clone(), original[*name].clone()),
                None => {
                    let name = names[numbers.next(names.len())];
                    files.insert(name.clone(), edit(&files[name], &mut numbers))
                }
            };
            match assert_same(&files, &library, &mut cache, seed) {
                true => right += 1,
                false => wrong += 1,
            }
        }
    }
    assert!(right > 100 && wrong > 100, "edits leave {right} programs right and make {wrong} wrong");
}
