//! Services as a runtime sees them: requests begin flows, and the results of the flows become responses.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod serving;
mod support;

use ParameterFrom::Path;
use serving::{Service, open, parameter, route};
use support::Client;
use weir::{ParameterFrom, Type, Value};

#[test]
fn unknown_methods_and_paths_are_distinguished() {
    let service = Service::start(vec![
        route("GET", "/a/{one}", vec![parameter("one", Type::Text, Path)]),
        route("DELETE", "/a/{other}", vec![parameter("other", Type::Text, Path)]),
        route("POST", "/b", vec![]),
    ]);
    assert_eq!(service.told("GET", "/a/x", ""), "200 x");
    assert_eq!(service.told("DELETE", "/a/x", ""), "200 x");
    assert_eq!(service.told("GET", "/c", ""), "404 Not Found");
    assert_eq!(service.told("GET", "/a/x/y", ""), "404 Not Found");
    let refused = service.ask("PUT", "/a/x", "");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, DELETE, HEAD, OPTIONS")));
    let refused = service.ask("GET", "/b", "");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, OPTIONS")));
    let options = service.ask("OPTIONS", "/b", "");
    assert_eq!((options.status, options.header("allow")), (204, Some("POST, OPTIONS")));
    let head = service.ask("HEAD", "/a/four", "");
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("4"), 0));
    assert_eq!(head.header("content-type"), Some("text/plain; charset=utf-8"));
}

/// A literal path is more specific than one with a parameter, for its own methods: it doesn't hide the routes of others.
#[test]
fn the_most_specific_route_of_the_method_of_a_request_answers_it() {
    let text = |name: &str| vec![parameter(name, Type::Text, Path)];
    let service = Service::start(vec![
        route("POST", "/items/search", vec![]),
        route("GET", "/items/{id}", text("id")),
        route("PUT", "/{kind}/new", text("kind")),
        route("DELETE", "/{rest..}", text("rest")),
        route("POST", "/files/", vec![]),
        route("GET", "/files/{path..}", text("path")),
    ]);
    assert_eq!(service.told("POST", "/items/search", ""), "200 ");
    assert_eq!(service.told("GET", "/items/search", ""), "200 search");
    assert_eq!(service.told("DELETE", "/items/search", ""), "200 items/search");
    assert_eq!(service.told("PUT", "/items/new", ""), "200 items");
    assert_eq!(service.told("GET", "/items/new", ""), "200 new");
    assert_eq!(service.told("GET", "/files/", ""), "200 ");
    assert_eq!(service.told("POST", "/files/", ""), "200 ");
    let head = service.ask("HEAD", "/items/search", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("6")));
    let allowed = |method, path| {
        let answer = service.ask(method, path, "");
        (answer.status, answer.header("allow").map(str::to_owned))
    };
    let all = |status, methods: &str| (status, Some(format!("{methods}, OPTIONS")));
    assert_eq!(allowed("PUT", "/items/search"), all(405, "POST, GET, DELETE, HEAD"));
    assert_eq!(allowed("OPTIONS", "/items/search"), all(204, "POST, GET, DELETE, HEAD"));
    assert_eq!(allowed("PATCH", "/items/new"), all(405, "GET, PUT, DELETE, HEAD"));
    assert_eq!(allowed("PUT", "/files/"), all(405, "POST, GET, DELETE, HEAD"));
}

/// `{name}` goes before `{name..}` where paths first differ, in one method, too.
#[test]
fn parameters_go_before_rests_of_paths() {
    let texts = |names: &[&str]| names.iter().map(|name| parameter(name, Type::Text, Path)).collect::<Vec<_>>();
    let service = Service::start(vec![
        route("GET", "/items/{id}", texts(&["id"])),
        route("GET", "/items/{path..}", texts(&["path"])),
        route("GET", "/{kind}/new", texts(&["kind"])),
        route("GET", "/{any..}", texts(&["any"])),
        route("PUT", "/img-{id}", texts(&["id"])),
        route("PUT", "/{name}.png", texts(&["name"])),
        route("POST", "/a/{x}/y", texts(&["x"])),
        route("POST", "/a/{z..}", texts(&["z"])),
        route("POST", "/{x}/{z..}", texts(&["x", "z"])),
        route("DELETE", "/a/{x}", texts(&["x"])),
        route("HEAD", "/items/{one}", texts(&["one"])),
        route("HEAD", "/users/{rest..}", texts(&["rest"])),
        route("GET", "/users/{id}", texts(&["id"])),
    ]);
    let expected = [
        ("GET", "/items/7", "200 7"),
        ("GET", "/items/new", "200 new"),
        ("GET", "/items/7/new", "200 7/new"),
        ("GET", "/items/", "200 "),
        ("GET", "/other/new", "200 other"),
        ("GET", "/other/new/x", "200 other/new/x"),
        ("GET", "/users/9/new", "200 users/9/new"),
        ("PUT", "/img-1.png", "200 1.png"),
        ("PUT", "/1.png", "200 1"),
        ("POST", "/a/b/y", "200 b"),
        ("POST", "/a/b/z", "200 b/z"),
        ("POST", "/a/", "200 "),
        ("POST", "/b/y", "200 b|y"),
    ];
    for (method, path, answer) in expected {
        assert_eq!(service.told(method, path, ""), answer, "{method} {path}");
    }
    let length = |path| service.ask("HEAD", path, "").header("content-length").map(str::to_owned);
    assert_eq!(length("/users/9"), Some("1".into()), "of `get`");
    assert_eq!(length("/users/9/new"), Some("5".into()), "of `head`");
    let allowed = |path| service.ask("PATCH", path, "").header("allow").map(str::to_owned);
    assert_eq!(allowed("/a/b").as_deref(), Some("GET, POST, DELETE, HEAD, OPTIONS"));
    assert_eq!(allowed("/1.png").as_deref(), Some("GET, PUT, HEAD, OPTIONS"));
}

#[test]
fn a_route_beyond_ascii_is_found_in_every_encoding() {
    let text = |name: &str| vec![parameter(name, Type::Text, Path)];
    let service = Service::start(vec![
        route("GET", "/\u{fc}", vec![]),
        route("GET", "/a b/{name}", text("name")),
        route("GET", "/100%", vec![]),
        route("POST", "/%c3%bc/x", vec![]),
    ]);
    for path in ["/%C3%BC", "/%c3%bc"] {
        assert_eq!(service.told("GET", path, ""), "200 ", "{path}");
        assert_eq!(service.told("POST", &format!("{path}/x"), ""), "200 ", "{path}");
    }
    assert_eq!(service.told("GET", "/a%20b/%61%2Fb", ""), "200 a/b");
    assert_eq!(service.told("GET", "/%61%20%62/c", ""), "200 c");
    assert_eq!(service.told("GET", "/a%2520b/c", ""), "404 Not Found");
    assert_eq!(service.told("GET", "/100%25", ""), "200 ");
}

#[test]
fn the_options_of_a_server_are_the_methods_of_its_routes() {
    let service =
        Service::start(vec![route("GET", "/a", vec![]), route("POST", "/b", vec![]), route("GET", "/b", vec![])]);
    let options = service.ask("OPTIONS", "*", "");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, POST, HEAD, OPTIONS")));
}

#[test]
fn responses_forbid_browsers_to_guess_their_type() {
    let service = Service::start(vec![route("GET", "/a", vec![])]);
    for path in ["/a", "/missing"] {
        assert_eq!(service.ask("GET", path, "").header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

#[test]
fn flows_without_a_response_are_answered() {
    let routes = ["/failing", "/failing/2", "/full", "/nonsense"].map(|path| route("GET", path, vec![]));
    let service = Service::start(routes.into());
    assert_eq!(service.told("GET", "/failing", ""), "500 Internal Server Error");
    assert_eq!(service.told("GET", "/nonsense", ""), "500 Internal Server Error");
    let full = service.ask("GET", "/full", "");
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
}

#[test]
fn a_service_that_cannot_run_says_why() {
    let refused = |routes, arguments| open(routes, arguments).err().unwrap().message.to_string();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let twice = || route("GET", "/a", vec![]);
    let opaque = route("GET", "/{a}", vec![parameter("a", Type::named("image.Ppm"), Path)]);
    let limited = |name: &str, value| {
        let library = weir_library::library();
        let parameters = &library.modules["http"].sources["http"].0.parameters;
        let mut arguments: Vec<Value> = parameters.iter().map(|p| p.default.clone().unwrap_or(Value::Int(0))).collect();
        arguments[parameters.iter().position(|parameter| &*parameter.name == name).unwrap()] = value;
        refused(vec![], arguments)
    };
    assert_eq!(limited("connections_max", Value::Int(0)), "`connections_max` must be at least 1");
    assert_eq!(limited("connections_max", Value::Int(-1)), "`connections_max` cannot be -1");
    assert_eq!(limited("idle_timeout", Value::Duration(-1)), "`idle_timeout` cannot be -1ns");
    assert_eq!(limited("header_bytes_max", Value::Size(10)), "`header_bytes_max` must be at least 1024b");
    assert_eq!(
        [
            refused(vec![], vec![Value::Int(port.into())]),
            refused(vec![], vec![Value::Int(65_536)]),
            refused(vec![], vec![Value::Int(0), Value::text("here")]),
            refused(vec![twice(), twice()], vec![Value::Int(0)]),
            refused(vec![opaque], vec![Value::Int(0)]),
        ],
        [
            format!(
                "cannot listen at 127.0.0.1:{port}: another program listens there; stop it, or choose another port"
            ),
            "`port` must be 0 to 65535, not 65536".into(),
            "`address` must be an IP address such as 127.0.0.1, or `localhost`, not \"here\"".into(),
            "route GET /a: is defined twice".into(),
            "route GET /{a}: that part of a request cannot hold `a: image.Ppm`".into(),
        ]
    );
}

#[test]
fn a_flow_that_takes_too_long_is_given_up_and_answered_503() {
    let limits = [("answer_timeout", Value::Duration(50_000_000))];
    let routes = ["GET", "PUT", "POST"].map(|method| route(method, "/never", vec![]));
    let service = Service::start_with(routes.into_iter().chain([route("GET", "/", vec![])]).collect(), &limits);
    let mut client = Client::connect(service.address);
    // What a request does that is sent once more is the same, unless it is a `POST`.
    for (method, after) in [("GET", Some("1")), ("PUT", Some("1")), ("POST", None)] {
        client.send(&format!("{method} /never HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
        let answer = client.answer_to(method);
        assert_eq!((answer.status, answer.header("retry-after")), (503, after), "{method}");
        let is_unknown =
            String::from_utf8_lossy(&answer.body).contains("nobody knows whether the request has taken effect");
        assert_eq!(is_unknown, after.is_none(), "{method}");
    }
    service.flows.given_up.wait_for(3);
    // The connection stays usable.
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_to("GET").status, 200);
}

#[test]
fn a_flow_that_still_waits_at_the_end_of_the_grace_period_is_given_up_and_answered_503() {
    let limits = [("shutdown_grace", Value::Duration(50_000_000))];
    let service = Service::start_with(vec![route("GET", "/never", vec![])], &limits);
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(service.address)).collect();
    clients.iter_mut().for_each(|client| client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n"));
    service.wait_for_begun(3);
    service.stop();
    for mut client in clients {
        let answer = client.answer_to("GET");
        let fields = ["retry-after", "connection"].map(|name| answer.header(name));
        assert_eq!((answer.status, fields), (503, [Some("1"), Some("close")]));
        client.rest();
    }
    service.flows.given_up.wait_for(3);
}

#[test]
fn a_flow_is_cancelled_when_its_client_disconnects() {
    let service = Service::start(vec![route("GET", "/never", vec![])]);
    for given_up in 1..=3 {
        let mut client = Client::connect(service.address);
        client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
        service.wait_for_begun(given_up);
        drop(client);
        service.flows.given_up.wait_for(given_up);
    }
}

/// Sends a request with these header fields; returns the status, the media type and the body of the response.
fn told(service: &Service, request: &str, fields: &str) -> (u16, String, String) {
    let mut client = Client::connect(service.address);
    client.send(&format!("{request} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n{fields}\r\n"));
    let answer = client.answer_to("POST");
    let media_type = answer.header("content-type").unwrap_or_default().to_owned();
    (answer.status, media_type, String::from_utf8(answer.body).unwrap())
}

#[test]
fn errors_are_problem_details_for_clients_that_prefer_json() {
    let service = Service::start(vec![route("POST", "/failing", vec![]), route("POST", "/full", vec![])]);
    let json = |request| told(&service, request, "Accept: application/json\r\n");
    let problem = |status, title: &str| {
        (status, "application/problem+json".to_owned(), format!("{{\"title\":\"{title}\",\"status\":{status}}}"))
    };
    assert_eq!(json("POST /nowhere"), problem(404, "Not Found"));
    assert_eq!(json("POST /failing"), problem(500, "Internal Server Error"));
    assert_eq!(json("POST /full"), problem(503, "Service Unavailable"));
    assert_eq!(json("PUT /full"), problem(405, "Method Not Allowed"));
    let plain = (404, "text/plain; charset=utf-8".to_owned(), "Not Found".to_owned());
    for accept in ["", "Accept: */*\r\n", "Accept: text/html, application/json;q=0.5\r\n"] {
        assert_eq!(told(&service, "POST /nowhere", accept), plain, "{accept}");
    }
}

#[test]
fn a_request_whose_url_and_host_differ_is_refused() {
    let service = Service::start(vec![route("GET", "/a", vec![])]);
    for url in ["http://a/a", "http://A/a", "/a"] {
        assert_eq!(told(&service, &format!("GET {url}"), "").0, 200, "{url}");
    }
    for url in ["http://b/a", "http://a:80/a"] {
        let (status, _, text) = told(&service, &format!("GET {url}"), "");
        assert_eq!((status, text.as_str()), (400, "`Host` differs from the host of the URL"), "{url}");
    }
}

#[test]
fn pages_of_other_sites_cannot_write_unless_the_service_says_so() {
    let routes = || vec![route("POST", "/a", vec![]), route("GET", "/a", vec![])];
    let service = Service::start(routes());
    for fields in ["Sec-Fetch-Site: cross-site\r\n", "Origin: https://b.example\r\n", "Origin: null\r\n"] {
        let (status, _, text) = told(&service, "POST /a", fields);
        assert_eq!((status, text.as_str()), (403, "a page of another site sent this request"), "{fields}");
        assert_eq!(told(&service, "GET /a", fields).0, 200, "{fields}");
    }
    for fields in ["", "Origin: http://a\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
        assert_eq!(told(&service, "POST /a", fields).0, 200, "{fields}");
    }
    let open = Service::start_with(routes(), &[("cross_site_writes", Value::Bool(true))]);
    assert_eq!(told(&open, "POST /a", "Sec-Fetch-Site: cross-site\r\n").0, 200);
}

#[test]
fn pages_of_other_sites_cannot_write_either_if_they_repeat_their_fields() {
    let service = Service::start(vec![route("POST", "/a", vec![])]);
    let mut client = Client::connect(service.address);
    let (site, origin) = ("Sec-Fetch-Site: cross-site\r\n", "Origin: https://b.example\r\n");
    for (fields, status) in [("", 200), (site, 403), ("", 200), (origin, 403), (site, 403), ("", 200)] {
        // The server remembers the fields of the first two.
        for _ in 0..4 {
            client.send(&format!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n{fields}\r\n"));
            assert_eq!(client.answer_to("POST").status, status, "{fields}");
        }
    }
}
