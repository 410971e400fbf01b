//! edges scratch
use tidy::*;
fn main() {
    let name = std::env::args().nth(1).unwrap();
    let folder = format!("crates/{name}/src");
    let found = imports::references(&folder, &files(&root().join(&folder), ".rs"));
    for c in imports::circles(&found).into_iter().filter(|c| c.len() > 4) {
        for m in &c {
            println!(
                "{m:?} -> {}",
                found[m].iter().filter(|t| c.contains(*t)).map(|t| format!("{t:?}")).collect::<Vec<_>>().join(" ")
            );
        }
        println!();
    }
}
