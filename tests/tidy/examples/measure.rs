//! measure scratch
use tidy::*;
fn main() {
    circles();
    let mut all = Vec::new();
    let mut lens = Vec::new();
    for folder in ["crates", "benches", "examples", "tests"] {
        for file in files(&root().join(folder), ".rs") {
            let source = source::scan(&file.text).expect(&file.path);
            for found in &source.comments {
                if comments::interrogative(&found.text).is_some() {
                    println!("COMMENT {}:{}: {}", file.path, found.line, found.text);
                }
            }
            for f in source.functions {
                if f.lines > 60 {
                    println!("LONG {}:{} {} {}", file.path, f.line, f.name, f.lines);
                }
                lens.push(f.lines);
            }
            if file.path.contains("/src/") {
                for t in source.types {
                    all.push((t.text, file.path.clone()));
                }
            }
        }
    }
    lens.sort();
    println!(
        "FUNCTIONS {} median {} p90 {} max {}",
        lens.len(),
        lens[lens.len() / 2],
        lens[lens.len() * 9 / 10],
        lens[lens.len() - 1]
    );
    all.sort();
    let mut i = 0;
    while i < all.len() {
        let j = (i..all.len()).take_while(|&k| all[k].0 == all[i].0).last().unwrap() + 1;
        if j - i > 1 {
            println!(
                "TYPE {} {} {}",
                j - i,
                all[i].0,
                all[i..j].iter().map(|x| x.1.replace("crates/", "")).collect::<Vec<_>>().join(" ")
            );
        }
        i = j;
    }
}
pub fn circles() {
    for name in crates() {
        let folder = format!("crates/{name}/src");
        let found = imports::references(&folder, &files(&root().join(&folder), ".rs"));
        for c in imports::circles(&found) {
            println!("CIRCLE {name} {} {}", c.len(), c.into_iter().collect::<Vec<_>>().join(" "));
        }
    }
}
