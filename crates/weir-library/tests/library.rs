//! The standard library as the compiler sees it, and its sources as a runtime sees them.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use weir::{Begun, Flows, FunctionCode, LocalFuture, Parameter, SourceProblem, Stop, Type, Value, World};

fn parameters(parameters: &[Parameter]) -> String {
    let shown = parameters.iter().map(|Parameter { name, ty, passing, default }| {
        let by = match passing {
            weir::Passing::Value => "",
            weir::Passing::Borrow => "&",
            weir::Passing::Change => "&mut ",
            weir::Passing::Start => "at start ",
            weir::Passing::Typed => "typed ",
            weir::Passing::Named => "named ",
            weir::Passing::TypeOf(_) => "type of the result ",
        };
        let default = default.as_ref().map(|default| format!(" = {default}")).unwrap_or_default();
        format!("{name}: {by}{ty}{default}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn every_function_has_its_signature() {
    let library = weir_library::library();
    let mut lines = Vec::new();
    for module in library.modules.values() {
        for function in module.functions.values() {
            let signature = &function.signature;
            let mark = match signature.effects.world {
                World::Pure => "pure ",
                World::Reads => "reads ",
                World::Writes => "",
            };
            let blocking = if signature.effects.blocking { "blocking " } else { "" };
            let (path, result) = (signature.path(), signature.call_type());
            lines.push(format!("{mark}{blocking}{path}({}) -> {result}", parameters(&signature.parameters)));
            assert!(!signature.doc.is_empty(), "{path} says what it does");
        }
        for (source, _) in module.sources.values() {
            let element = source.element.as_ref().or(source.answer.as_ref()).unwrap();
            lines.push(format!(
                "source {}.{}({}) of {element}",
                source.module,
                source.name,
                parameters(&source.parameters)
            ));
        }
        lines.extend(
            module.types.values().map(|definition| format!("type {}: {:?}", definition.name, definition.shape)),
        );
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// Returns true if values of the type may be large.
fn may_be_large(ty: &Type) -> bool {
    match ty {
        Type::Text | Type::Bytes | Type::List(_) | Type::Map(_) => true,
        Type::Named(name) => name.as_str() == "Json",
        _ => false,
    }
}

/// A function over data of users that returns at once, and declares no units, holds up all flows of its thread while it runs. A
/// function may be added here if the time that it takes is bounded, or that of reading one short argument, such as a key.
#[test]
fn functions_over_data_that_declare_no_units_are_those_of_a_bounded_time() {
    let library = weir_library::library();
    let functions = library.modules.values().flat_map(|module| module.functions.values());
    let found = functions.filter(|function| {
        let signature = &function.signature;
        let is_immediate = matches!(function.code, FunctionCode::Immediate(_)) && !signature.effects.blocking;
        let is_large = signature.parameters.iter().any(|parameter| may_be_large(&parameter.ty));
        is_immediate && is_large && !signature.effects.declares_units
    });
    let found: Vec<String> = found.map(|function| function.signature.path().to_string()).collect();
    insta::assert_snapshot!(found.join("\n"));
}

/// A function that waits for what another flow of the program may do, such as answer a request, must not hold its thread meanwhile.
/// A function may be added here if it waits for time, for the operating system, for a table or for a
/// computation alone.
#[test]
fn functions_that_hold_their_thread_while_they_wait_wait_for_no_other_flow() {
    let library = weir_library::library();
    let functions = library.modules.values().flat_map(|module| module.functions.values());
    let holding = functions.filter(|function| {
        let effects = &function.signature.effects;
        effects.waits && !effects.awaits_peer
    });
    let found: Vec<String> = holding.map(|function| function.signature.path().to_string()).collect();
    let holding = "http.file, files.read, time.sleep, time.back_off, time.wait_for_attempt, tables.row, udp.send, \
                   crypto.hash_password, crypto.password_matches";
    assert_eq!(found.join(", "), holding);
}

/// Accepts two flows at a time, and completes them when asked for room.
#[derive(Default)]
struct TwoAtATime {
    going: Arc<AtomicUsize>,
    most: AtomicUsize,
    elements: Mutex<Vec<Value>>,
    ended: Arc<AtomicUsize>,
    release: Arc<Notify>,
}

impl Flows for TwoAtATime {
    fn begin(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        assert_eq!((entry, inputs.len()), (0, 1));
        if self.going.load(Ordering::SeqCst) == 2 {
            return Begun::Full;
        }
        self.most.fetch_max(self.going.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        self.elements.lock().unwrap().append(inputs);
        let (going, ended, release) = (Arc::clone(&self.going), Arc::clone(&self.ended), Arc::clone(&self.release));
        Begun::Pending(Box::pin(async move {
            tokio::task::yield_now().await;
            going.fetch_sub(1, Ordering::SeqCst);
            ended.fetch_add(1, Ordering::SeqCst);
            release.notify_one();
            Ok(Value::Unit)
        }))
    }

    fn room(&self) -> LocalFuture<()> {
        let release = Arc::clone(&self.release);
        Box::pin(async move { release.notified().await })
    }

    fn report(&self, problem: SourceProblem) {
        panic!("{problem:?}");
    }
}

/// Runs a source until it ends or has begun `count` flows.
fn run(path: &str, arguments: Vec<Value>, count: usize) -> Arc<TwoAtATime> {
    let library = weir_library::library();
    let (module, name) = path.split_once('.').unwrap();
    let opened = library.modules[module].sources[name].1.open(arguments, Arc::new([]), &library.environment).unwrap();
    let flows = Arc::new(TwoAtATime::default());
    let watched = Arc::clone(&flows);
    let stop = Stop::new(weir_events::from_future_with(move || {
        let watched = Arc::clone(&watched);
        async move {
            while watched.elements.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        }
    }));
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    let running = opened.run(Arc::clone(&flows) as Arc<dyn Flows>, stop);
    runtime
        .block_on(async { tokio::time::timeout(std::time::Duration::from_secs(20), running).await })
        .unwrap()
        .unwrap();
    flows
}

#[test]
fn a_range_begins_a_flow_for_each_number_and_waits_for_room() {
    let flows = run("stream.range", vec![Value::Int(-2), Value::Int(300)], usize::MAX);
    let numbers: Vec<Value> = (-2..300).map(Value::Int).collect();
    assert_eq!(*flows.elements.lock().unwrap(), numbers);
    assert_eq!((flows.most.load(Ordering::SeqCst), flows.ended.load(Ordering::SeqCst)), (2, 302));
    assert!(run("stream.range", vec![Value::Int(5), Value::Int(5)], usize::MAX).elements.lock().unwrap().is_empty());
}

#[test]
fn a_source_that_is_stopped_ends_what_has_begun() {
    for (path, arguments) in
        [("stream.range", vec![Value::Int(0), Value::Int(i64::MAX)]), ("time.every", vec![Value::Duration(1_000_000)])]
    {
        let flows = run(path, arguments, 10);
        assert!(flows.elements.lock().unwrap().len() >= 10, "{path}");
        assert_eq!(flows.ended.load(Ordering::SeqCst), flows.elements.lock().unwrap().len(), "{path}");
    }
}

#[test]
fn ticks_need_an_interval() {
    let library = weir_library::library();
    let every = &library.modules["time"].sources["every"].1;
    for nanos in [0, -1] {
        assert!(every.open(vec![Value::Duration(nanos)], Arc::new([]), &library.environment).is_err());
    }
}

#[test]
fn the_elements_of_every_source_are_types_that_programs_know() {
    let library = weir_library::library();
    for (source, _) in library.modules.values().flat_map(|module| module.sources.values()) {
        if let Some(weir::Type::Named(name)) = &source.element {
            assert!(library.definition(name).is_some(), "{name} of {}.{}", source.module, source.name);
        }
    }
}
