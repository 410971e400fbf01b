//! The pages that `weir doc` writes, of the library and of programs.

use crate::support::{Scratch, Served, said, say, weir};

#[test]
fn the_page_of_the_library_shows_defaults_as_programs_write_them() {
    let page = say(&["doc"]).output;
    // Without the marks of types.
    let page: String = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    for expected in [
        "log.info(message: Text, …) -&gt; ()",
        "bearer: Option(crypto.Secret) = None",
        "reply_to: Text = &quot;&quot;",
        "timeout: Duration = 30s",
    ] {
        assert!(page.contains(expected), "{expected} is missing");
    }
    assert!(!page.contains(" = #"), "a default is shown as the number of its variant");
}

#[test]
fn the_page_of_a_program_names_what_it_serves_and_asks_for_nothing_outside() {
    let said = say(&["doc", "examples/image_server/main.weir"]);
    assert_eq!(said.code, 0);
    for expected in ["GET /{name}", "writes shared thumbnails", "The image <code>name</code>", "data:image/svg+xml,"] {
        assert!(said.output.contains(expected), "{expected} is missing");
    }
    for outside in ["src=\"http", "href=\"http", "url(", "<script"] {
        assert!(!said.output.contains(outside), "{outside} comes from outside");
    }
}

#[test]
fn the_browser_gets_the_page() {
    let (page, temporary_files) = (Scratch::new("page.html", b""), Scratch::folder("temporary"));
    let with = |browser: &str, output: &[&str]| {
        let arguments = [&["doc", "examples/hello", "--open"], output].concat();
        let mut command = weir(&arguments);
        command.env("BROWSER", browser).env("TMPDIR", temporary_files.path());
        said(command)
    };
    // `cat` shows the file that it is given.
    let shown = with("cat", &["--output", page.path()]);
    assert_eq!((shown.code, shown.messages.as_str()), (0, ""));
    assert!(shown.output.contains("<title>hello</title>"), "{}", shown.output);
    let temporary = with("cat", &[]);
    assert_eq!((temporary.code, temporary.output), (0, shown.output));
    for browser in ["false", "no-such-browser"] {
        let refused = with(browser, &["--output", page.path()]);
        assert_eq!(refused.code, 3, "{browser}");
        assert!(refused.messages.contains(page.path()) && refused.messages.contains(browser), "{}", refused.messages);
    }
}

#[test]
fn the_page_of_the_library_has_every_function() {
    let page = say(&["doc"]).output;
    let library = weir_library::library();
    for (name, module) in &library.modules {
        for (path, function) in &module.functions {
            let is_shown = page.contains(&format!("id=\"{name}.{name}-{}\"", path.replace('_', "-")));
            assert_eq!(is_shown, !function.signature.internal, "{name}.{path}");
        }
    }
}

#[test]
fn the_page_of_a_program_shows_defaults_of_parameters() {
    let text = "/// Cuts.\nfn cut(line: Text, limit: Int = 2 * 40,\n  marks: List(Text) = [\n    // Signs.\n    \"-\",\n    \"+\",\n  ]) -> Int {\n  limit\n}\n";
    let program = Scratch::new("defaults.weir", text.as_bytes());
    let page = say(&["doc", program.path()]).output;
    let signature = page.lines().find(|line| line.contains("limit")).unwrap_or_default();
    insta::assert_snapshot!(signature);
}

#[test]
fn the_page_of_a_program_tells_which_columns_a_route_reads_and_writes() {
    let program = "use http\n\n\
        record User { id: Int, name: Text, mood: Text }\n\
        record Message { id: Int, from: Int, text: Text, read: Bool }\n\
        table users: User key id auto unique name\n\
        table messages: Message key id auto references from: users cascade\n\n\
        fn renamed(id: Int, name: Text) -> Result(()) {\n  users.update(id, |user| User { ..user, name })?\n  Ok(())\n}\n\n\
        service api on http(port: 8080) {\n  \
          get \"/mood/{id}\" (id: Int) { http.json(users[id].map(|user| user.mood)) }\n  \
          get \"/inbox\" { http.json(for m in messages limit 9 { (m.text, users[m.from].map(|user| user.name)) }) }\n  \
          get \"/all\" { http.json(for user in users { user }) }\n  \
          put \"/name/{id}\" (id: Int, name: Text) {\n    renamed(id, name)?\n    http.text(\"\")\n  }\n  \
          put \"/mood/{id}\" (id: Int, mood: Text) {\n    http.json(users.update(id, |user| User { ..user, mood })?)\n  }\n  \
          put \"/named/{id}\" (id: Int, mood: Text) {\n    \
            http.json(users.update(id, |user| User { ..user, mood })?.map(|user| user.name))\n  }\n  \
          put \"/whole/{id}\" (id: Int) {\n    let other = users[1]\n    users.update(id, |old| other else { old })?\n    \
            http.text(\"\")\n  }\n  \
          put \"/copy/{id}\" (id: Int) {\n    atomic users {\n      let first = users[1] else { return http.not_found() }\n      \
            users.update(id, |_| User { ..first, id })?\n    }\n    http.text(\"\")\n  }\n  \
          post \"/read\" {\n    messages.update_all(|m| m.read == false, |m| Message { ..m, read: true })?\n    \
            http.text(\"\")\n  }\n  \
          post \"/\" (from: Int, text: Text) { http.json(messages.insert(Message { from, text, read: false })?) }\n  \
          get \"/moods\" {\n    http.json(for (mood, theirs) in (for user in users { user }).group_by(|user| user.mood) {\n      \
            (mood, theirs.length())\n    })\n  }\n  \
          delete \"/{id}\" (id: Int) { http.json(users.delete(id)?) }\n}\n";
    let file = Scratch::new("columns.weir", program.as_bytes());
    let said = say(&["doc", file.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    let effects: Vec<&str> = said.output.split("<p class=\"effects\">").skip(1).collect();
    let effects = effects.iter().map(|rest| rest.split_once('<').map_or(*rest, |(effects, _)| effects));
    insta::assert_snapshot!(effects.collect::<Vec<_>>().join("\n"));
}

/// Defaults of routes are shown as the program writes them, on the page and when the program starts.
#[test]
fn defaults_of_routes_are_shown_as_programs_write_them() {
    let text = r#"use http

enum Order { Newest as "new", Cheapest }

service shop on http(port: 0) {
  get "/" (order: Order = Cheapest, word: Text = "", orders: List(Order) = [Newest], page: Option(Int) = Some(1)) {
    http.json((order, word, orders, page))
  }
}
"#;
    let program = Scratch::new("route-defaults.weir", text.as_bytes());
    let page = say(&["doc", program.path()]).output;
    for default in ["Cheapest", "&quot;&quot;", "[Newest]", "Some(1)"] {
        assert!(page.contains(&format!("in the query, or <code>{default}</code>")), "{default} is missing");
    }
    let served = Served::start(program.path(), &[]);
    let shown =
        "order: Order = Cheapest, word: Text = \"\", orders: List(Order) = [Newest], page: Option(Int) = Some(1)";
    assert!(served.greeting.contains(shown), "{}", served.greeting);
}

#[test]
fn a_module_and_a_function_are_documented_as_text() {
    let module = say(&["doc", "duration"]).output;
    assert!(module.starts_with("Functions on durations"), "{module}");
    assert!(module.contains(
        "fn duration.min(duration: Duration, other: Duration) -> Duration\n    Returns the shorter duration."
    ));
    let function = say(&["doc", "http.problem"]).output;
    assert!(function.starts_with("fn http.problem(status: Int"), "{function}");
    assert!(function.contains("Effects: pure."), "{function}");
    assert!(say(&["doc", "tcp.lines"]).output.contains("address: Text = \"127.0.0.1\""));
    let missing = say(&["doc", "http.txt"]);
    assert!(missing.messages.contains("`http` has no `txt`") && missing.messages.contains("`weir doc http` lists"));
    assert!(say(&["doc", "nowhere.weir"]).messages.contains("no such file"));
}

#[test]
fn a_type_and_a_function_of_one_name_have_two_anchors() {
    let page = say(&["doc"]).output;
    let mut anchors: Vec<&str> = page.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    anchors.sort_unstable();
    let all = anchors.len();
    anchors.dedup();
    assert_eq!(anchors.len(), all);
}
