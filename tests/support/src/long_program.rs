//! Long generated programs, for measuring the compiler and the language server.

use std::fmt::Write as _;

/// Returns a program of about this many lines: records, enums, and `fn`s that call those before them.
pub fn with_lines(lines: usize) -> String {
    let mut text = String::new();
    let mut written = 0;
    let mut part = 0;
    while written < lines {
        let callee = if part % 8 == 0 { "n + 1".to_owned() } else { format!("score{}(n)", part - 1) };
        let whole = format!(
            "/// A post of the kind {part}.\n\
             record Post{part} {{ id: Int, title: Text, tags: List(Text) }}\n\n\
             enum State{part} {{ Draft, Live(since: Int, views: Int), Gone(Text) }}\n\n\
             fn show{part}(post: Post{part}, state: State{part}) -> Text {{\n\
             \x20 let tags = for tag in post.tags {{ \"<{{tag}}>\" }}\n\
             \x20 match state {{\n\
             \x20   Draft => \"draft of {{post.title}}\"\n\
             \x20   Live(views: v, since: s) if v > 100 && s < 10 => \"{{post.title}}: {{v * 2}}\"\n\
             \x20   Live(..=0, _) => \"{{post.title}} {{tags}}\"\n\
             \x20   Live(s, _) => \"{{s + post.id}}\"\n\
             \x20   Gone(why) => why\n\
             \x20 }}\n\
             }}\n\n\
             fn score{part}(n: Int) -> Int {{\n\
             \x20 if n < 0 {{ return 0 }}\n\
             \x20 let half = n / 2\n\
             \x20 let rest = if half > 10 {{ half - 10 }} else {{ {callee} }}\n\
             \x20 rest * 3 - 1\n\
             }}\n\n"
        );
        written += whole.lines().count();
        _ = write!(text, "{whole}");
        part += 1;
    }
    text
}

/// Returns the modules of a program of several files, each with its name and its text of about `lines` lines. A module calls
/// the one before it, and the last text is that of the main file, which calls all modules.
pub fn with_files(files: usize, lines: usize) -> Vec<(String, String)> {
    let module = |at: usize| {
        let text = with_lines(lines).replace("fn score", "pub fn score");
        // Chains of calls are short, as those in a file are: every `fn` is inlined.
        let text = match at % 8 {
            0 => text,
            _ => format!("use part{0}\n\n{1}", at - 1, text.replacen("n + 1", &format!("part{}.score0(n)", at - 1), 1)),
        };
        (format!("part{at}"), text)
    };
    let mut modules: Vec<(String, String)> = (0..files - 1).map(module).collect();
    let uses: Vec<&str> = modules.iter().map(|(name, _)| name.as_str()).collect();
    let total: Vec<String> = uses.iter().map(|name| format!("{name}.score0(n)")).collect();
    let main = format!("use {}\n\nfn total(n: Int) -> Int {{\n  {}\n}}\n", uses.join(", "), total.join(" + "));
    modules.push(("main".to_owned(), main));
    modules
}

/// Returns the modules of a program of several files, like [`with_files`], whose main file has a route for each module. The
/// program needs the module `http`.
pub fn with_routes(files: usize, lines: usize) -> Vec<(String, String)> {
    let mut modules = with_files(files, lines);
    modules.pop();
    let uses: Vec<&str> = modules.iter().map(|(name, _)| name.as_str()).collect();
    let route = |name: &&str| {
        format!(
            "  get \"/{name}/{{n}}\" (n: Int) {{\n    let score = {name}.score0(n)\n    \
             http.text(\"{{score}} of {{{name}.score1(n + 7)}}\")\n  }}\n"
        )
    };
    let routes: String = uses.iter().map(route).collect();
    let main = format!("use http, {}\n\nservice scores on http(port: 8080) {{\n{routes}}}\n", uses.join(", "));
    modules.push(("main".to_owned(), main));
    modules
}
