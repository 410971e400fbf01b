//! The example `communication`: its driver runs against its services, and counts reads and writes as they are.

use std::collections::BTreeMap;

use crate::support::{Scratch, Served, repository, said, say, weir};

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

#[test]
fn the_driver_counts_its_requests_and_all_of_them_are_answered() {
    let data = Scratch::folder("communication");
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
