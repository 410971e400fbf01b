//! Services as a runtime sees them: requests become inputs of flows, and the flows' results become answers.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod support;

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use support::{Answer, Client, PATIENCE};
use weir::{
    Begun, Failure, Field, Flows, HostType, LocalFuture, Opened, ParameterFrom, Route, RouteParameter, Stop, Text,
    Type, TypeDefinition, TypeShape, Value, Variant,
};
use weir_events::Signal;
use weir_library::http;

/// Shows the inputs of each flow in its answer; the route of `/failing` fails, that of `/full` has no room.
struct Shown {
    routes: Arc<[Route]>,
    begun: Mutex<Vec<usize>>,
    given_up: Arc<Gate>,
}

impl Flows for Shown {
    fn begin(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        self.begun.lock().unwrap().push(entry);
        let answer = match &*self.routes[entry].pattern {
            "/failing" => Err(Failure::function("the reason is secret")),
            "/full" => return Begun::Full,
            "/nonsense" => Ok(Value::Int(1)),
            "/never" => return self.never(),
            _ => http::text(&inputs.iter().map(Value::to_string).collect::<Vec<_>>().join("|")).into_value(),
        };
        match entry % 2 {
            0 => Begun::Done(answer),
            _ => Begun::Going(Box::pin(async {
                tokio::task::yield_now().await;
                answer
            })),
        }
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(std::future::pending())
    }
}

impl Shown {
    /// A flow that waits for ever, and says when it is given up.
    fn never(&self) -> Begun {
        let given_up = GivenUp(Arc::clone(&self.given_up));
        Begun::Going(Box::pin(async move {
            let _given_up = given_up;
            std::future::pending().await
        }))
    }
}

/// A flow that has begun.
struct GivenUp(Arc<Gate>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap() += 1;
        self.0.changed.notify_all();
    }
}

/// How many flows were given up.
#[derive(Default)]
struct Gate {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    fn wait_for(&self, count: usize) {
        let reached = self.changed.wait_timeout_while(self.count.lock().unwrap(), PATIENCE, |seen| *seen < count);
        assert!(!reached.unwrap().1.timed_out(), "no flow was given up");
    }
}

struct Service {
    address: std::net::SocketAddr,
    flows: Arc<Shown>,
    stop: Signal,
    thread: Option<JoinHandle<()>>,
}

fn parameter(name: &str, ty: Type, from: ParameterFrom) -> RouteParameter {
    RouteParameter { name: name.into(), ty, from, default: None }
}

fn route(method: &str, pattern: &str, parameters: Vec<RouteParameter>) -> Route {
    Route { method: method.into(), pattern: pattern.into(), parameters, types: definitions() }
}

fn field(name: &str, ty: Type) -> Field {
    Field { name: name.into(), ty }
}

fn definitions() -> Arc<[TypeDefinition]> {
    let variant = |name: &str, fields| Variant { name: name.into(), fields };
    let define = |name: &str, shape| TypeDefinition { name: name.into(), doc: Text::default(), shape };
    Arc::new([
        define(
            "Post",
            TypeShape::Record(vec![
                field("title", Type::Text),
                field("tags", Type::list(Type::Text)),
                field("stars", Type::option(Type::Int)),
                field("shape", Type::named("Shape")),
            ]),
        ),
        define(
            "Shape",
            TypeShape::Enum(vec![
                variant("Dot", vec![]),
                variant("Circle", vec![field("0", Type::Float)]),
                variant("Box", vec![field("width", Type::Int), field("height", Type::Int)]),
                variant("Pair", vec![field("0", Type::Int), field("1", Type::Int)]),
            ]),
        ),
        define("Order", TypeShape::Enum(vec![variant("Up", vec![]), variant("Down", vec![])])),
    ])
}

fn open(routes: Vec<Route>, arguments: Vec<Value>) -> Result<Arc<dyn Opened>, Failure> {
    let library = weir_library::library();
    let (signature, source) = &library.modules["http"].sources["http"];
    let mut all = arguments;
    all.extend(signature.parameters[all.len()..].iter().map(|parameter| parameter.default.clone().unwrap()));
    source.open(all, routes.into(), &library.environment)
}

impl Service {
    fn start(routes: Vec<Route>) -> Service {
        Service::start_with(routes, &[])
    }

    /// A service with these limits.
    fn start_with(routes: Vec<Route>, limits: &[(&str, Value)]) -> Service {
        let flows =
            Arc::new(Shown { routes: routes.clone().into(), begun: Mutex::default(), given_up: Arc::default() });
        let library = weir_library::library();
        let (signature, _) = &library.modules["http"].sources["http"];
        let given = |name: &str| limits.iter().find(|(limit, _)| *limit == name).map(|(_, value)| value.clone());
        let arguments = signature.parameters.iter().map(|parameter| match &*parameter.name {
            "port" => Value::Int(0),
            name => given(name).unwrap_or_else(|| parameter.default.clone().unwrap()),
        });
        let opened = open(routes, arguments.collect()).unwrap();
        let address = opened.describe().strip_prefix("http://").unwrap().parse().unwrap();
        let stop = Signal::new();
        let (stopping, flowing) = (stop.clone(), Arc::clone(&flows));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let stop = Stop::new(stopping.fired());
            tokio::task::LocalSet::new().block_on(&runtime, opened.run(flowing, stop)).unwrap();
        });
        Service { address, flows, stop, thread: Some(thread) }
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        let mut client = Client::connect(self.address);
        let length = body.len();
        client.send(&format!("{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"));
        client.answer_to(method)
    }

    /// The status and the body of the answer.
    fn told(&self, method: &str, target: &str, body: &str) -> String {
        let answer = self.ask(method, target, body);
        format!("{} {}", answer.status, String::from_utf8(answer.body).unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.fire();
        let _ = self.thread.take().unwrap().join();
    }
}

use ParameterFrom::{Body, Path, Query};

#[test]
fn parts_of_the_path_and_the_query_become_inputs() {
    let mut scale = parameter("scale", Type::Int, Query);
    scale.default = Some(Value::Int(8));
    let service = Service::start(vec![
        route("GET", "/{name}", vec![parameter("name", Type::Text, Path), scale]),
        route("GET", "/a/{x}/{y}", vec![parameter("y", Type::Int, Path), parameter("x", Type::Bool, Path)]),
        route(
            "GET",
            "/all",
            vec![
                parameter("order", Type::named("Order"), Query),
                parameter("ratio", Type::Float, Query),
                parameter("maybe", Type::option(Type::Text), Query),
                parameter("many", Type::list(Type::Int), Query),
                parameter("size", Type::option(Type::Size), Query),
                parameter("wait", Type::option(Type::Duration), Query),
            ],
        ),
        route("GET", "/files/{rest..}", vec![parameter("rest", Type::Text, Path)]),
    ]);
    for (target, told) in [
        ("/hills", "200 hills|8"),
        ("/hills?scale=3", "200 hills|3"),
        ("/hills?other=1&scale=-3&", "200 hills|-3"),
        ("/a%20b%2Fc+d%e2%82%ac?scale=%33", "200 a b/c+d€|3"),
        ("/a/true/-7", "200 -7|true"),
        ("/all?order=Down&ratio=0.5", "200 #1|0.5|#0|[]|#0|#0"),
        ("/all?order=Up&ratio=1&maybe=a+b%26&many=1&many=2", "200 #0|1.0|#1(\"a b&\")|[1, 2]|#0|#0"),
        ("/all?order=Up&ratio=1&maybe=&size=64mb&wait=200ms", "200 #0|1.0|#1(\"\")|[]|#1(64mb)|#1(200ms)"),
        ("/files/a/b%2e/c", "200 a/b./c"),
    ] {
        assert_eq!(service.told("GET", target, ""), told, "{target}");
    }
}

#[test]
fn what_is_not_of_its_type_gets_a_400_that_names_it() {
    let service = Service::start(vec![
        route("GET", "/{number}", vec![parameter("number", Type::Int, Path), parameter("scale", Type::Int, Query)]),
        route("GET", "/text/{name}", vec![parameter("name", Type::Text, Path)]),
        route(
            "GET",
            "/all",
            vec![
                parameter("order", Type::option(Type::named("Order")), Query),
                parameter("yes", Type::option(Type::Bool), Query),
                parameter("ratio", Type::option(Type::Float), Query),
                parameter("many", Type::list(Type::Int), Query),
                parameter("size", Type::option(Type::Size), Query),
            ],
        ),
    ]);
    for (target, told) in [
        ("/1", "400 `scale` in the query: is missing, expected a whole number"),
        ("/1?scale=big", "400 `scale` in the query: expected a whole number, found \"big\""),
        ("/1?scale=", "400 `scale` in the query: expected a whole number, found \"\""),
        ("/1?scale=1&scale=2", "400 `scale` in the query: is given twice"),
        ("/1?scale=%zz", "400 `scale` in the query: not UTF-8 in percent-encoding"),
        ("/1?scale=%ff", "400 `scale` in the query: not UTF-8 in percent-encoding"),
        (
            "/x?scale=9223372036854775808",
            "400 `number` in the path: expected a whole number, found \"x\"\n\
             `scale` in the query: expected a whole number, found \"9223372036854775808\"",
        ),
        ("/text/%", "400 `name` in the path: not UTF-8 in percent-encoding"),
        ("/text/%c0%af", "400 `name` in the path: not UTF-8 in percent-encoding"),
        ("/all?order=Left", "400 `order` in the query: expected one of `Up`, `Down`, found \"Left\""),
        ("/all?yes=1", "400 `yes` in the query: expected `true` or `false`, found \"1\""),
        ("/all?ratio=inf", "400 `ratio` in the query: expected a number, found \"inf\""),
        ("/all?many=1&many=a", "400 `many` in the query: expected a whole number, found \"a\""),
        ("/all?size=64", "400 `size` in the query: expected a size such as `64mb`, found \"64\""),
        ("/all?size=99999999999tb", "400 `size` in the query: expected a size such as `64mb`, found \"99999999999tb\""),
    ] {
        assert_eq!(service.told("GET", target, ""), told, "{target}");
    }
    assert!(service.flows.begun.lock().unwrap().is_empty(), "no flow has begun");
}

#[test]
fn bodies_become_values_of_their_types() {
    let service = Service::start(vec![
        route("POST", "/post", vec![parameter("post", Type::named("Post"), Body)]),
        route("POST", "/text", vec![parameter("text", Type::Text, Body)]),
        route("POST", "/bytes", vec![parameter("bytes", Type::Bytes, Body)]),
        route("POST", "/maybe", vec![parameter("maybe", Type::option(Type::Int), Body)]),
        route(
            "POST",
            "/map",
            vec![parameter("map", Type::map(Type::Text, Type::tuple(vec![Type::Int, Type::Bool])), Body)],
        ),
    ]);
    for (target, body, told) in [
        ("/post", r#"{"shape":"Dot","title":"a","tags":[],"more":1}"#, r#"200 ("a", [], #0, #0)"#),
        (
            "/post",
            r#"{"title":"ä","tags":["x","y"],"stars":3,"shape":{"Circle":2}}"#,
            r#"200 ("ä", ["x", "y"], #1(3), #1(2.0))"#,
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"stars":null,"shape":{"Box":{"height":1,"width":2}}}"#,
            r#"200 ("", [], #0, #2(2, 1))"#,
        ),
        ("/post", r#"{"title":"","tags":[],"shape":{"Pair":[1,2]}}"#, r#"200 ("", [], #0, #3(1, 2))"#),
        ("/text", "as it is", "200 as it is"),
        ("/bytes", "four", "200 bytes(4)"),
        ("/maybe", "", "200 #0"),
        ("/maybe", "5", "200 #1(5)"),
        ("/map", r#"{"a":[1,true]}"#, r#"200 ["a": (1, true)]"#),
    ] {
        assert_eq!(service.told("POST", target, body), told, "{body}");
    }
    for (target, body, told) in [
        ("/post", "", "400 body: not JSON: EOF while parsing a value at line 1 column 0"),
        ("/post", "{]", "400 body: not JSON: key must be a string at line 1 column 2"),
        ("/post", "[]", "400 body: expected an object, found a list of 0"),
        ("/post", r#"{"tags":[]}"#, "400 body.title: is missing, expected a text"),
        ("/post", r#"{"title":1}"#, "400 body.title: expected a text, found `1`"),
        ("/post", r#"{"title":"","tags":["a",null]}"#, "400 body.tags[1]: expected a text, found `null`"),
        ("/post", r#"{"title":"","tags":[],"stars":1.5}"#, "400 body.stars: expected a whole number, found `1.5`"),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":"Line"}"#,
            "400 body.shape: expected one of `Dot`, `Circle`, `Box`, `Pair`, found \"Line\"",
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":{"Circle":"x"}}"#,
            "400 body.shape.Circle: expected a number, found \"x\"",
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":{"Box":{"width":1}}}"#,
            "400 body.shape.Box.height: is missing, expected a whole number",
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":"Circle"}"#,
            "400 body.shape.Circle: expected a payload of 1 fields",
        ),
        ("/map", r#"{"a":[1]}"#, "400 body.a: expected a list, found a list of 1"),
    ] {
        assert_eq!(service.told("POST", target, body), told, "{body}");
    }
    let deep = "[".repeat(100_000);
    assert!(service.told("POST", "/post", &deep).starts_with("400 body: not JSON: recursion limit exceeded"));
    let mut client = Client::connect(service.address);
    client.send_all_it_takes(b"POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\xff\xfe");
    assert_eq!(client.answer().status, 400);
    let large = "x".repeat(2 * 1024 * 1024 + 1);
    assert_eq!(service.told("POST", "/text", &large), "413 Payload Too Large");
}

#[test]
fn methods_and_paths_that_are_not_there_are_told_apart() {
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

#[test]
fn flows_that_give_no_answer_get_one() {
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
            "`port` is 65536, it must be 0 to 65535".into(),
            "`address` is \"here\", it must be an IP address such as 127.0.0.1".into(),
            "route GET /a: is there twice".into(),
            "route GET /{a}: a request cannot hold `a: image.Ppm` there".into(),
        ]
    );
}

#[test]
fn a_flow_that_takes_too_long_is_given_up_and_answered_503() {
    let limits = [("answer_timeout", Value::Duration(50_000_000))];
    let service = Service::start_with(vec![route("GET", "/never", vec![]), route("GET", "/", vec![])], &limits);
    let mut client = Client::connect(service.address);
    client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.answer_to("GET");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    service.flows.given_up.wait_for(1);
    // The connection goes on.
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_to("GET").status, 200);
}

#[test]
fn a_flow_whose_client_has_gone_is_given_up() {
    let service = Service::start(vec![route("GET", "/never", vec![])]);
    for given_up in 1..=3 {
        let mut client = Client::connect(service.address);
        client.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
        while service.flows.begun.lock().unwrap().len() < given_up {
            std::thread::yield_now();
        }
        drop(client);
        service.flows.given_up.wait_for(given_up);
    }
}
