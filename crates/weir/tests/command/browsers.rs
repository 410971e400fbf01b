//! Encrypted cookies and forms, as browsers keep and send them.

use std::io::{Read, Write};

use crate::support::{Scratch, Served, said, weir};

const LOGIN: &str = r#"use http

record Session { user: Text, roles: List(Text) }
record Credentials { name: Text, password: Text }

secret key: Bytes
secret old_key: Bytes

service accounts on http(port: 8080, cookie_keys: KEYS) {
  get "/" (encrypted_cookie session: Option(Session)) {
    let found = session else { return http.status(401, "log in")? }
    http.text("{found.user} {found.roles.length()}")
  }
  post "/login" (form sent: Credentials) {
    if sent.password != "secret" { return http.status(401, "wrong")? }
    let session = Session { user: sent.name, roles: ["a", "b"] }
    http.redirect("/") |> http.with_encrypted_cookie("session", session, max_age: 1h)?
  }
}
"#;
/// 32 bytes each, in base64.
const KEYS: [(&str, &str); 2] = [
    ("WEIR_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("WEIR_OLD_KEY", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="),
];

/// Runs the service with these keys.
fn start(keys: &str) -> Served {
    start_version(&LOGIN.replace("KEYS", keys))
}

/// Runs a version of the service.
fn start_version(text: &str) -> Served {
    let program = Scratch::new("login.weir", text.as_bytes());
    let mut command = weir(&["run", program.path(), "--port", "0"]);
    command.envs(KEYS);
    Served::spawn(command)
}

/// Sends a request with these lines of a header, and returns the whole answer.
fn exchange(served: &Served, first: &str, fields: &str, body: &str) -> String {
    let mut stream = served.connect();
    let length = body.len();
    let head = format!("{first} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is a text");
    answer
}

/// Returns the status and the body of a page for a browser with this cookie.
fn page(served: &Served, cookie: &str) -> (String, String) {
    let answer = exchange(served, "GET /", &format!("Cookie: {cookie}\r\n"), "");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a body");
    (head[9..12].to_owned(), body.to_owned())
}

#[test]
fn an_encrypted_cookie_outlives_the_program_and_the_replacement_of_its_key() {
    let first = start("[old_key]");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let refused = exchange(&first, "POST /login", form, "name=ada&password=wrong");
    assert!(refused.starts_with("HTTP/1.1 401 ") && !refused.contains("set-cookie"), "{refused}");
    let answer = exchange(&first, "POST /login", form, "name=ada&password=secret");
    let set = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie is set");
    let (cookie, attributes) = set.split_once("; ").expect("it has attributes");
    assert_eq!(attributes, "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=3600");
    assert!(cookie.starts_with("__Host-session=") && !cookie.contains("ada"), "{cookie}");
    let (logged_in, logged_out) = (("200".to_owned(), "ada 2".to_owned()), ("401".to_owned(), "log in".to_owned()));
    assert_eq!(page(&first, cookie), logged_in);
    assert_eq!(page(&first, &format!("{cookie}x")), logged_out);
    assert_eq!(page(&first, &cookie.replace("session", "user")), logged_out);
    assert_eq!(first.stop().0, Some(0));
    for (keys, found) in [("[key, old_key]", &logged_in), ("[key]", &logged_out)] {
        let next = start(keys);
        assert_eq!(&page(&next, cookie), found, "{keys}");
        assert_eq!(next.stop().0, Some(0));
    }
    // What it contains would be JSON of the other type as well.
    let fields = ("roles: List(Text) }", "roles: List(Text), may_delete: Bool = true }");
    let session = ("roles: [\"a\", \"b\"]", "roles: [\"a\", \"b\"], may_delete: false");
    let next = LOGIN.replace("KEYS", "[old_key]").replace(fields.0, fields.1).replace(session.0, session.1);
    let next = start_version(&next);
    assert_eq!(page(&next, cookie), logged_out);
    assert_eq!(next.stop().0, Some(0));
}

#[test]
fn keys_that_are_missing_or_too_short_are_refused() {
    let program = Scratch::new("login.weir", LOGIN.replace("KEYS", "[key, old_key]").as_bytes());
    let mut command = weir(&["run", program.path(), "--port", "0"]);
    let ended = said({
        command.envs([KEYS[0], ("WEIR_OLD_KEY", "c2hvcnQ=")]);
        command
    });
    let reason = "a key of `cookie_keys` has 5 bytes, and needs 32 or more; `openssl rand -base64 32` makes one";
    assert!(ended.code != 0 && ended.messages.contains(reason), "{}", ended.messages);
    let without = Scratch::new("login.weir", LOGIN.replace("KEYS", "[]").as_bytes());
    let checked = said(weir(&["check", without.path()]));
    assert!(checked.messages.contains("and the service has no `cookie_keys`"), "{}", checked.messages);
}

const FORMS: &str = r#"use html, http

record Order {
  item: Text,
  count: Int = 1,
  gift: Bool = true,
  sizes: List(Int),
  grid: List(List(Int)) = [],
  picture: Option(html.Part),
}

service shop on http(port: 8080) {
  post "/" (form order: Order) {
    let picture = order.picture.map(|part| "{part.media_type else { "" }} {part.content.length()}") else { "none" }
    http.text("{order.item} {order.count} {order.gift} {order.sizes} {picture}")
  }
}
"#;

#[test]
fn a_form_is_read_in_either_encoding() {
    let program = Scratch::new("forms.weir", FORMS.as_bytes());
    let served = Served::start(program.path(), &[]);
    let told = |media_type: &str, body: &str| {
        let fields = format!("Content-Type: {media_type}\r\n");
        let answer = exchange(&served, "POST /", &fields, body);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a body");
        format!("{} {body}", &head[9..12])
    };
    let urlencoded = "application/x-www-form-urlencoded; charset=utf-8";
    assert_eq!(told(urlencoded, "item=a+b&count=3&gift=on&sizes=1&sizes=2"), "200 a b 3 true [1, 2] none");
    assert_eq!(told(urlencoded, "item=a"), "200 a 1 false [] none");
    assert_eq!(told(urlencoded, "count=3"), "400 `item` in the form: missing, expected a text");
    let wrong = "400 `count` in the form: expected a whole number, found \"x\"";
    assert_eq!(told(urlencoded, "item=a&count=x"), wrong);
    let wrong = "400 `grid[1]` in the form: expected a whole number, found \"x\"";
    assert_eq!(told(urlencoded, "item=a&grid=[1,%22x%22]"), wrong);
    let multipart = "multipart/form-data; boundary=X";
    let field = |name: &str, more: &str, content: &str| {
        format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{content}\r\n")
    };
    let file = |name: &str, content: &str| {
        field("picture", &format!("; filename=\"{name}\"\r\nContent-Type: image/png"), content)
    };
    let item = field("item", "", "a");
    assert_eq!(told(multipart, &format!("{item}{}--X--\r\n", file("a.png", "xyz"))), "200 a 1 false [] image/png 3");
    // The form has lost its file, of which only the name has come, or a text.
    let lost = "400 `picture` in the form: a text, expected a file; the form needs `enctype=\"multipart/form-data\"`";
    assert!(told(urlencoded, "item=a&picture=a.png").starts_with(lost));
    let parts = format!("{item}{}--X--\r\n", field("picture", "; filename*=UTF-8''a.png", "xyz"));
    assert!(told(multipart, &parts).starts_with(lost), "{}", told(multipart, &parts));
    assert_eq!(told(urlencoded, "item=a&picture=&gift=&sizes=&sizes=7"), "200 a 1 false [7] none");
    // No file was chosen.
    assert_eq!(told(multipart, &format!("{item}{}--X--\r\n", file("", ""))), "200 a 1 false [] none");
    assert!(told(multipart, &item).starts_with("400 the form is malformed"));
    for other in ["text/plain", "application/json", "multipart/form-data", "multipart/mixed; boundary=X"] {
        assert!(told(other, "item=a").starts_with("415 the body must be a form"), "{other}");
    }
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_list_in_a_list_of_a_form_is_sent_by_tests_as_it_is_read() {
    let test = "test \"a grid\" {\n  let order = Order { item: \"a\", gift: true, sizes: [], grid: [[1, 2], [3]], picture: None }\n  \
                expect shop.post(\"/grid\", order).text()? == \"[[1, 2], [3]]\"\n}\n";
    let route = "  post \"/grid\" (form order: Order) { http.text(\"{order.grid}\") }\n}\n";
    let program = FORMS.strip_suffix("}\n").expect("the service ends there").to_owned() + route + test;
    let program = Scratch::new("grid.weir", program.as_bytes());
    let tested = said(weir(&["test", program.path()]));
    assert_eq!(tested.code, 0, "{}{}", tested.output, tested.messages);
}

const SITE: &str = r#"use http

service site on http(port: 8080) {
  get "/{path..}" (path: Text) { http.file("site/{path}", index: "index.html") else { http.not_found() } }
  get "/assets/{path..}" (path: Text) { http.text("<{path}>") }
  get "/assets/list/" { http.text("a list") }
  get "/assets/list/{path..}" (path: Text) { http.text("item {path}") }
}
"#;

#[test]
fn the_rest_of_a_path_may_be_empty() {
    let folder = Scratch::folder("site");
    let (program, site) = (format!("{}/main.weir", folder.path()), format!("{}/site", folder.path()));
    std::fs::write(&program, SITE).expect("the folder is ours");
    std::fs::create_dir(&site).and_then(|()| std::fs::write(format!("{site}/index.html"), "home")).expect("it is ours");
    let served = Served::start(&program, &[]);
    let told = |path: &str| String::from_utf8(served.get(path).body).expect("a text");
    assert_eq!([told("/"), told("/assets/"), told("/assets/a/b")], ["home", "<>", "<a/b>"]);
    assert_eq!([told("/assets/list/"), told("/assets/list/a")], ["a list", "item a"]);
    // Neither is a path without the `/`.
    assert_eq!([served.get("/assets").status, served.get("/none").status], [404, 404]);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_folder_is_redirected_as_its_path_is_written_and_preconditions_hold() {
    let folder = Scratch::folder("written");
    let (program, pages) = (format!("{}/main.weir", folder.path()), format!("{}/site/docs/a:b", folder.path()));
    std::fs::write(&program, SITE).expect("the folder is ours");
    std::fs::create_dir_all(&pages).and_then(|()| std::fs::write(format!("{pages}/index.html"), "page")).expect("ours");
    let served = Served::start(&program, &[]);
    let place = |path: &str| {
        let answer = exchange(&served, &format!("GET {path}"), "", "").to_lowercase();
        let line = answer.lines().find(|line| line.starts_with("location: ")).unwrap_or("none").to_owned();
        line.trim_start_matches("location: ").to_owned()
    };
    assert_eq!(
        [place("/docs/a:b"), place("/docs%2Fa:b"), place("/docs%2fa%3Ab")],
        ["a%3ab/", "./docs%2fa:b/", "./docs%2fa%3ab/"]
    );
    for path in ["/docs/a:b/", "/docs%2Fa:b/", "/docs%2fa%3Ab/"] {
        assert_eq!(served.get(path).body, b"page", "{path}");
    }
    let status = |method: &str, fields: &str| {
        let answer = exchange(&served, &format!("{method} /docs/a:b/"), fields, "");
        let length = answer.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("none").to_owned();
        format!("{} {length}", &answer[9..12])
    };
    assert_eq!(status("HEAD", "Range: bytes=0-1\r\n"), "200 4");
    assert_eq!(status("GET", "Range: bytes=0-1\r\n"), "206 2");
    assert_eq!([status("GET", "If-Match: \"x\"\r\n"), status("HEAD", "If-Match: \"x\"\r\n")], ["412 0", "412 0"]);
    assert_eq!([status("GET", "If-Match: *\r\n"), status("HEAD", "If-Match: *\r\n")], ["200 4", "200 4"]);
    assert_eq!(served.stop().0, Some(0));
}
