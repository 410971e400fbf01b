//! Templates: texts from outside stay texts, as a tokenizer of the HTML standard and a browser read the pages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use html5gum::{Token, Tokenizer};

use crate::streams::Folder;
use crate::support::Served;

const PAGE: &str = r#"use http

record Named { name: Text }

fn page(x: Text) -> Html {
  let json = html"<script type='application/json' id='data'>{Named { name: x }}</script>"
  let script = html"<script>/* a comment */ const text = {x}, all = {[Named { name: x }]};</script>"
  html"""
    <!DOCTYPE html>
    <html lang="en">
      <head><meta charset="utf-8"><title>{x}</title><meta name="description" content="{x}">{json}{script}</head>
      <body class='{x}' data-x="{x}">
        <p>{x}</p><textarea name=t>{x}</textarea>
        <a class="whole" href="{x}">{x}</a> <a class="path" href="/users/{x}?q={x}#{x}">{x}</a>
        <a class="host" href='https://a.example/{x}'>a</a> <form action="{x}"><input value='{x}'></form>
        <img src="{x}" alt="{x}"><svg><title>{x}</title><a xlink:href="{x}"><text>{x}</text></a></svg>
        <q cite="/{x}/{x}/end">a</q><svg>{for y in [x] { html"<rect data-y='{y}'/><text>{y}</text>" }}</svg>
        <noscript><p title="{x}">{x}</p></noscript><select><option selected='{x == "a"}'>{x}</select>
        {html"<b title='{x}'>{x}</b>"}{for y in [x, x] { html"<i>{y}</i>" }}{if x != "" { html"<u>{x}</u>" }}
      </body>
    </html>
    """
}

service pages on http(port: 8080) {
  get "/" (x: Text) {
    http.html(page(x))
  }
}
"#;

/// Texts that become code where they are not escaped, or not for their context. All of them would set `pwned`.
const PAYLOADS: &[&str] = &[
    "<script>pwned=1</script>",
    "</script><script>pwned=1</script>",
    "</title><script>pwned=1</script>",
    "</textarea><script>pwned=1</script>",
    "</style><script>pwned=1</script>",
    "--><script>pwned=1</script>",
    "<!--<script>",
    "<![CDATA[<script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "<svg onload=pwned=1>",
    "<svg/onload=pwned=1//",
    "\"><img src=x onerror=pwned=1>",
    "'><img src=x onerror=pwned=1>",
    "\" onmouseover=\"pwned=1\" x=\"",
    "' onfocus='pwned=1' autofocus='",
    "` onload=`pwned=1`",
    " onload=pwned=1 ",
    "javascript:pwned=1",
    "JaVaScRiPt:pwned=1",
    " javascript:pwned=1",
    "\tjavascript:pwned=1",
    "java\tscript:pwned=1",
    "java\nscript:pwned=1",
    "\u{1}javascript:pwned=1",
    "\u{0}javascript:pwned=1",
    "javascript\u{0}:pwned=1",
    "javascript&colon;pwned=1",
    "javascript&#58;pwned=1",
    "&#106;avascript:pwned=1",
    "javascript%3Apwned=1",
    "javascript://a.example/%0Apwned=1",
    "vbscript:pwned=1",
    "data:text/html,<script>pwned=1</script>",
    "data:text/html;base64,PHNjcmlwdD5wd25lZD0xPC9zY3JpcHQ+",
    "view-source:javascript:pwned=1",
    "//evil.example",
    "\\\\evil.example",
    "https://evil.example/\"onclick=\"pwned=1",
    "../../../admin",
    ".",
    "..",
    "%2e%2e",
    "evil.example",
    "evil.example/a.js",
    "sol",
    "lt;",
    "alert(1)//",
    "\npwned=1//",
    "</noscript><script>pwned=1</script>",
    "?a=1&b=2#c",
    "';pwned=1;//",
    "\";pwned=1;//",
    "\\\";pwned=1;//",
    "\\",
    "*/pwned=1;/*",
    "${pwned=1}",
    "`;pwned=1;`",
    "\u{2028}pwned=1\u{2029}",
    "</ScRiPt ><script>pwned=1</script>",
    "<!--",
    "-->",
    "]]>",
    "&lt;script&gt;pwned=1&lt;/script&gt;",
    "&amp;",
    "{x}",
    "{{constructor.constructor('pwned=1')()}}",
    "\u{feff}<script>pwned=1</script>",
    "+ADw-script+AD4-pwned=1+ADw-/script+AD4-",
    "\u{ff1c}script\u{ff1e}pwned=1",
    "é\u{1f600}",
    "__proto__",
    "<p>a</p><!-- b -->",
    "",
];

/// Returns `text` with every byte percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "%{byte:02x}");
        all
    })
}

/// The markup of a page: the tags with the names of their attributes.
fn shape(page: &str) -> Vec<String> {
    tokens(page)
        .into_iter()
        .filter_map(|token| match token {
            Token::StartTag(tag) => {
                let names: Vec<String> = tag.attributes.keys().map(|name| lossy(name)).collect();
                Some(format!("<{} {names:?}>", lossy(&tag.name)))
            }
            Token::EndTag(tag) => Some(format!("</{}>", lossy(&tag.name))),
            Token::Comment(_) => Some("<!---->".into()),
            Token::Doctype(_) => Some("<!DOCTYPE>".into()),
            _ => None,
        })
        .collect()
}

fn tokens(page: &str) -> Vec<Token> {
    let mut emitter = html5gum::DefaultEmitter::default();
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(page, emitter).map(|token| token.expect("the page is in memory")).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the values of an attribute, and the texts inside of an element.
fn parts(page: &str, attribute: &str, element: &str) -> (Vec<String>, Vec<String>) {
    let (mut values, mut texts, mut inside) = (Vec::new(), Vec::new(), None::<String>);
    for token in tokens(page) {
        match token {
            Token::StartTag(tag) => {
                values.extend(tag.attributes.get(attribute.as_bytes()).map(|value| lossy(value)));
                inside = (&**tag.name == element.as_bytes()).then(String::new);
            }
            Token::String(text) => inside.iter_mut().for_each(|inside| inside.push_str(&lossy(&text))),
            Token::EndTag(_) => texts.extend(inside.take()),
            _ => {}
        }
    }
    (values, texts)
}

/// Returns the scheme by which a browser interprets a URL: it ignores spaces in front, and tabs and line ends anywhere.
fn scheme(url: &str) -> Option<String> {
    let url: String = url.trim_start_matches(|c: char| c <= ' ').replace(['\t', '\n', '\r'], "");
    let head = url.split(['/', '?', '#', '\\']).next()?;
    head.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase())
}

fn page_of(served: &Served, payload: &str) -> String {
    let answer = served.get(&format!("/?x={}", encoded(payload)));
    assert_eq!((answer.status, answer.kind.as_str()), (200, "text/html; charset=utf-8"), "{payload:?}");
    String::from_utf8(answer.body).expect("the page is UTF-8")
}

#[test]
fn no_text_changes_the_markup_around_it() {
    let folder = Folder::new("templates", PAGE);
    let served = Served::start(&folder.program(), &[]);
    let expected = shape(&page_of(&served, "harmless"));
    assert!(expected.iter().any(|tag| tag.starts_with("<u ")), "{expected:?}");
    for payload in PAYLOADS {
        let page = page_of(&served, payload);
        let found = shape(&page);
        // An empty text is the one that the `if` of the page leaves out.
        let wanted: Vec<String> = expected
            .iter()
            .filter(|tag| !payload.is_empty() || !tag.contains("u ") && **tag != "</u>")
            .cloned()
            .collect();
        assert_eq!(found, wanted, "{payload:?} changes the markup of\n{page}");
        let seen = payload.replace('\0', "\u{fffd}");
        let (values, texts) = parts(&page.replace('\0', "\u{fffd}"), "data-x", "p");
        assert_eq!((values, texts), (vec![seen.clone()], vec![seen]), "{payload:?} is not shown as it is in\n{page}");
        for url in ["href", "src", "action", "xlink:href"].iter().flat_map(|name| parts(&page, name, "p").0) {
            let scheme = scheme(&url).unwrap_or_else(|| "https".into());
            assert!(["https", "http", "about"].contains(&&*scheme), "{payload:?} leads to {url}");
        }
        for url in parts(&page, "cite", "q").0 {
            let segments: Vec<&str> = url.split('/').collect();
            assert!(
                matches!(segments[..], ["", first, second, "end"] if first == second),
                "{payload:?} leads to {url}"
            );
            assert!(!["", ".", "..", "%2e%2e"].contains(&segments[1]), "{payload:?} leads to {url}");
        }
        let (_, scripts) = parts(&page, "id", "script");
        let data: serde_json::Value = serde_json::from_str(&scripts[0]).expect("the data is JSON");
        assert_eq!(data["name"], *payload, "{}", scripts[0]);
        let value = scripts[1].split_once("const text = ").expect("the script has its text").1;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
        assert_eq!(values.next().expect("there is one").expect("the value is JSON"), *payload, "{}", scripts[1]);
        assert!(!scripts[1].contains(['<', '\u{2028}', '\u{2029}']), "{}", scripts[1]);
    }
}

const PLACES: &str = r#"use http

fn page(x: Text, y: Text) -> Html {
  let chosen = html"<option selected='{x == "a"}'>a</option><b class='{if x == "a" { "known" }}'>{if x == "a" { x }}</b>"
  let links = html"<a href='/{x}'>1</a><a href='/{x}/{y}/'>2</a><a href='/a{x}/?q={x}'>3</a><a href='{x}{y}'>4</a>"
  let drawn = html"<svg>{for z in [x, y] { html"<text class='{z}'>{z}</text>" }}{if x == "a" { html"<rect/>" }}</svg>"
  html"{chosen}\n{links}\n{drawn}"
}

service pages on http(port: 8080) {
  get "/" (x: Text, y: Text) {
    http.html(page(x, y))
  }
}
"#;

#[test]
fn each_place_shows_a_value_in_its_own_way() {
    let folder = Folder::new("places", PLACES);
    let served = Served::start(&folder.program(), &[]);
    let page = |query: &str| String::from_utf8(served.get(query).body).expect("the page is UTF-8");
    let invalid = "about%3Ainvalid";
    assert_eq!(
        page("/?x=a&y=%3Cb"),
        "<option selected>a</option><b class='known'>a</b>\n\
         <a href='/a'>1</a><a href='/a/%3Cb/'>2</a><a href='/aa/?q=a'>3</a><a href='a%3Cb'>4</a>\n\
         <svg><text class='a'>a</text><text class='&lt;b'>&lt;b</text><rect/></svg>"
    );
    assert_eq!(
        page("/?x=&y=.."),
        format!(
            "<option>a</option><b class=''></b>\n<a href='/'>1</a><a href='/{invalid}/{invalid}/'>2</a>\
             <a href='/a/?q='>3</a><a href='{invalid}'>4</a>\n\
             <svg><text class=''></text><text class='..'>..</text></svg>"
        )
    );
}

/// Chromium reads the pages of all payloads, and one that is not escaped, as a control.
#[test]
fn a_browser_runs_no_text_as_code() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].iter().find_map(|name| which(name)) else {
        eprintln!("skipped: Chromium is not installed");
        return;
    };
    assert_eq!(faults_in_browser(&browser, PAGE), "complete");
    let unescaped = PAGE.replace("use http", "use html, http").replace("<p>{x}</p>", "<p>{html.unescaped(x)}</p>");
    let faults = faults_in_browser(&browser, &unescaped);
    assert!(faults.starts_with("0 "), "a script that runs is not seen: {faults}");
}

/// Returns the numbers of the payloads that a browser runs as code or changes, followed by "complete".
fn faults_in_browser(browser: &Path, program: &str) -> String {
    let folder = Folder::new("browser", program);
    let served = Served::start(&folder.program(), &[]);
    let count = PAYLOADS.len();
    let mut all = format!(
        "<!DOCTYPE html><meta charset=utf-8><script>let count = 0; function seen(index, pwned, protocols, same) {{ \
         const unsafe = protocols.some(p => !['https:', 'http:', 'about:', 'file:', 'mailto:'].includes(p)); \
         if (pwned || !same || unsafe) document.title += ' ' + index; \
         if (++count == {count}) document.title += ' complete'; }}</script>"
    );
    for (index, payload) in PAYLOADS.iter().enumerate() {
        let wanted = serde_json::Value::from(*payload).to_string().replace('<', "\\u003c");
        let check = format!(
            "<script>parent.seen({index}, window.pwned, [...document.querySelectorAll('a:not(svg a),form,img')].map(e => \
             e.protocol ?? new URL(e.action ?? e.src, 'https://a.example').protocol), text === {wanted} && \
             [...document.querySelectorAll('q')].every(q => {{ const url = new URL(q.getAttribute('cite'), 'https://a.example'); \
             return url.host === 'a.example' && url.pathname.split('/').length === 4; }}))</script>"
        );
        let page = page_of(&served, payload).replace("</body>", &format!("{check}</body>"));
        folder.write(&format!("{index}.html"), &page);
        let _ = write!(all, "<iframe src='{index}.html'></iframe>");
    }
    folder.write("all.html", &all);
    let file = folder.program().replace("main.weir", "all.html");
    let profile = format!("--user-data-dir={}", folder.program().replace("main.weir", "profile"));
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", &profile]);
    let output = command.args(["--virtual-time-budget=20000", "--dump-dom", &format!("file://{file}")]).output();
    let dom = String::from_utf8_lossy(&output.expect("Chromium starts").stdout).into_owned();
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or("", |(title, _)| title).trim().to_owned()
}

/// Returns the path of an installed program.
fn which(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
