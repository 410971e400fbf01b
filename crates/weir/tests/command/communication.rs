//! The example `communication`: its driver runs against its services, and counts reads and writes as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::support::{Scratch, Served, read_answer, repository, said, say, weir};

const SERVICES: &str = "examples/communication";
const DRIVER: &str = "examples/communication/driver.weir";

/// The route of each handler of the workload: its service, its method and its path.
const ROUTES: [(&str, &str); 20] = [
    ("Connect", "messenger post /presence"),
    ("Disconnect", "messenger delete /presence"),
    ("SetPresence", "messenger put /presence"),
    ("GetPresence", "messenger get /presence/{user}"),
    ("GetUpdates", "messenger get /updates"),
    ("GetMessages", "messenger post /messages"),
    ("SendInvite", "messenger post /conversations/{conversation}/invites/{user}"),
    ("SendMessage", "messenger post /conversations/{conversation}"),
    ("AddGroup", "address_book put /groups/{name}"),
    ("UpdateGroup", "address_book patch /groups/{name}"),
    ("RemoveGroup", "address_book delete /groups/{name}"),
    ("GetGroups", "address_book get /groups"),
    ("AddContact", "address_book put /contacts/{name}"),
    ("UpdateContact", "address_book patch /contacts/{name}"),
    ("RemoveContact", "address_book delete /contacts/{name}"),
    ("GetContacts", "address_book get /contacts"),
    ("SendLetter", "mail post /messages"),
    ("GetLetter", "mail get /messages/{id}"),
    ("DeleteLetter", "mail delete /messages/{id}"),
    ("GetLetterList", "mail get /messages"),
];

/// Runs the services on free ports. Returns also their addresses, each as a `config` of the driver.
fn services(data: &Scratch) -> (Served, Vec<String>) {
    let mut command = weir(&["run", SERVICES, "--data", data.path()]);
    for port in ["auth_port=0", "messenger_port=0", "address_book_port=0", "mail_port=0"] {
        command.args(["--set", port]);
    }
    command.env("WEIR_CREDENTIALS_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
    let served = Served::spawn(command);
    let addresses = served.greeting.split("http://").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let services = ["auth", "messenger", "address_book", "mail"].iter().zip(addresses);
    let set: Vec<String> = services.map(|(name, address)| format!("{name}=http://{address}")).collect();
    assert_eq!(set.len(), 4, "{}", served.greeting);
    (served, set)
}

#[test]
fn the_driver_counts_its_requests_and_all_of_them_are_answered() {
    let data = Scratch::folder("communication");
    let (served, set) = services(&data);
    let mut driver = weir(&["run", DRIVER, "--set", "clients=1", "--set", "part=400"]);
    set.iter().for_each(|set| _ = driver.args(["--set", set]));
    let ended = said(driver);
    assert!(
        ended.output.contains("223 requests, 203 reads and 104 writes of tables"),
        "{}{}",
        ended.output,
        ended.messages
    );
    assert_eq!(ended.code, 0, "{}", ended.messages);
    served.stop();
}

/// A browser for the script of the page: it logs in, runs two polls, and prints the requests and what is shown.
const BROWSER: &str = r#"
const requests = [], shown = [], listeners = {}, polls = []
const json = value => ({ ok: true, headers: { get: () => "application/json" }, text: async () => JSON.stringify(value) })
const text = value => ({ ok: true, headers: { get: () => "text/plain" }, text: async () => value })
const answers = {
  "POST A/accounts/ada": text("credentials"), "POST /presence": text(""), "GET B/contacts": json([]), "POST /buddies": json([]),
  "GET /updates": json(1), "POST /messages": json([{ from: "bob", conversation: "c", text: "hi" }]),
  "GET M/messages?after=0": json([[7, ["eve", "hello"]]]), "GET M/messages?after=7": json([]),
}
globalThis.document = {
  body: { dataset: { auth: "A", book: "B", mail: "M" } },
  createElement: () => ({}),
  getElementById: id => ({
    append: item => shown.push(id + " " + item.textContent),
    addEventListener: (_, listener) => listeners[id] = listener,
  }),
}
globalThis.FormData = class { values() { return ["ada", "password"] } }
globalThis.alert = error => { console.log(error); process.exit(1) }
globalThis.fetch = async (url, { method }) => {
  requests.push(method + " " + url)
  return answers[method + " " + url]
}
globalThis.setTimeout = repeat => {
  polls.push(repeat)
  if (polls.length < 2) return repeat()
  console.log([...requests, ...shown].join("\n"))
  process.exit(0)
}
"#;

#[test]
fn the_page_polls_the_messenger_and_the_mail() {
    if !Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: node is not installed");
        return;
    }
    let data = Scratch::folder("communication-page");
    let (served, set) = services(&data);
    let address = set.iter().find_map(|set| set.strip_prefix("messenger=http://")).expect("the messenger is there");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("the request is sent");
    let page = String::from_utf8(read_answer(stream).body).expect("a text");
    served.stop();
    let script = page.split_once("<script>").and_then(|(_, rest)| rest.split_once("</script>")).expect("a script").0;
    let act = "listeners.login({ preventDefault() {}, target: {} })";
    let run = Scratch::new("page.js", format!("{BROWSER}{script}\n{act}\n").as_bytes());
    let printed = Command::new("node").arg(run.path()).output().expect("node is installed");
    let printed = String::from_utf8(printed.stdout).expect("a text");
    let lines: Vec<&str> = printed.lines().collect();
    let polls = |request: &str| lines.iter().filter(|line| **line == request).count();
    assert_eq!((polls("GET /updates"), polls("GET M/messages?after=0")), (2, 1), "{printed}");
    assert_eq!(polls("GET M/messages?after=7"), 1, "the second poll asks for what follows: {printed}");
    assert!(lines.contains(&"messages bob: hi") && lines.contains(&"mail eve: hello"), "{printed}");
}

/// Fails if the services do not have the handlers and the numbers of tables that their page says.
#[test]
fn the_services_have_the_handlers_and_tables_of_the_paper() {
    let read = |file: &str| std::fs::read_to_string(repository().join(SERVICES).join(file)).expect("the file is there");
    let (program, page) = (read("main.weir"), read("README.md"));
    assert!(page.contains("They have 4, 20, 9 and 4 handlers, and 1, 3, 2 and 2 tables."));
    let mut of_paper = 0;
    for (service, handlers, tables) in
        [("Auth", 4, 1), ("InstantMessenger", 20, 3), ("AddressBook", 9, 2), ("Mail", 4, 2)]
    {
        let part = program.split_once(&format!("\n// {service}")).expect("a part of each service").1;
        let end = part.find("\n// ").unwrap_or(part.len());
        let part = part[..end].split("\ntest \"").next().expect("a part");
        let lines: Vec<&str> = part.lines().collect();
        let declared = lines.iter().filter(|line| line.starts_with("table ")).count();
        let is_route = |line: &str| {
            ["get", "post", "put", "delete", "patch"]
                .iter()
                .any(|method| line.trim_start().strip_prefix(method).is_some_and(|rest| rest.starts_with(" \"/")))
        };
        let names = lines.windows(2).filter(|two| is_route(two[1])).map(|two| {
            let name = two[0].trim_start().strip_prefix("/// ").expect("the name of a handler");
            name.split(':').next().expect("a name").to_owned()
        });
        let names: BTreeSet<String> = names.collect();
        assert_eq!((names.len(), declared), (handlers, tables), "{service}: {names:?}");
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {service} | "))).expect("a row");
        let (paper, ours) = row.trim_end_matches('|').split_once(" | ").expect("two cells");
        let listed = |cell: &str| -> Vec<String> {
            cell.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
        };
        of_paper += listed(paper).len();
        assert_eq!(names, listed(paper).into_iter().chain(listed(ours)).collect(), "{service}");
    }
    assert_eq!(of_paper, 24, "the handlers of Figure 14, and `GetInterface`");
}

/// Fails if the numbers of the driver are not those of the statements in the routes.
#[test]
fn the_driver_knows_how_often_each_handler_reads_and_writes() {
    let graph = say(&["graph", SERVICES, "--ir", "expr"]);
    let statements = statements(&graph.output);
    let driver = std::fs::read_to_string(repository().join(DRIVER)).expect("the driver is there");
    for (handler, route) in ROUTES {
        let share = driver.split_once(&format!("(Handler.{handler}, ")).expect("a share of each handler").1;
        let share = share.split_once(')').expect("a tuple").0;
        let numbers: Vec<usize> = share.split(", ").skip(1).map(|number| number.parse().expect("a number")).collect();
        assert_eq!(numbers, statements[route], "{handler}");
    }
}

/// Returns the numbers of statements that read, and that write, of each route.
fn statements(graph: &str) -> BTreeMap<String, [usize; 2]> {
    const WRITES: [&str; 7] = ["insert", "upsert", "replace", "replace_rows", "delete", "delete_all", "delete_rows"];
    // A query reads each table that it joins.
    const READS: [&str; 10] =
        ["get", "row", "get_all", "get_each", "select", "column", "join", "joined_table", "count", "sum"];
    let (mut found, mut service, mut route) = (BTreeMap::new(), "", String::new());
    for line in graph.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["entry", name, ..] => service = name,
            ["flow", ..] => {
                route = format!("{service} {}", line.split('"').nth(1).expect("a name"));
                found.insert(route.clone(), [0, 0]);
            }
            _ => {}
        }
        if let Some(name) = line.split_once(" call tables.").and_then(|(_, call)| call.split_whitespace().next()) {
            let counts = found.entry(route.clone()).or_insert([0, 0]);
            // A placed change is a change, and the read of a change is a read.
            let name = name.strip_prefix("place_").or(name.strip_suffix("_to_change")).unwrap_or(name);
            counts[0] += usize::from(READS.contains(&name));
            counts[1] += usize::from(WRITES.contains(&name));
        }
    }
    found
}
