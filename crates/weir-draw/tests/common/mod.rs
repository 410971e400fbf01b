//! Programs to draw, written in the expression IR and lowered.

use std::sync::Arc;

use weir_host::{
    Effects, Function, FunctionCode, Library, Mode, Module, Outcome, Parameter, ParameterFrom, Passing, Resource,
    Signature, Type, Value, World,
};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Call, Constraint, Let, Op, Program};
use weir_ir::prim::Prim;
use weir_ir::program::{Entry, Flow, FlowRoute, Origin, RouteParameter, SharedValue, Var, Variable};

pub(crate) fn variable(var: u32, name: &str, ty: Type) -> Variable {
    Variable { var: Var(var), name: name.into(), ty }
}

pub(crate) fn bind(var: u32, ty: Type, op: Op) -> Let {
    Let { bound: variable(var, "", ty), op, origin: Origin::default() }
}

pub(crate) fn block(lets: Vec<Let>, result: Atom) -> Block {
    Block { lets, result }
}

pub(crate) fn var(index: u32) -> Atom {
    Atom::Var(Var(index))
}

pub(crate) fn int(value: i64) -> Atom {
    Atom::Value(Value::Int(value))
}

pub(crate) fn text(value: &str) -> Atom {
    Atom::Value(Value::text(value))
}

pub(crate) fn shared(name: &str) -> Atom {
    Atom::Shared(name.into())
}

pub(crate) fn call(function: &str, arguments: Vec<Atom>) -> Op {
    Op::Call(Call::new(function.into(), function.into(), arguments))
}

pub(crate) fn arm(test: ArmTest, payload: Vec<Variable>, body: Block) -> Arm {
    Arm { test, payload, body }
}

pub(crate) fn choose(subject: Atom, arms: Vec<Arm>) -> Op {
    Op::Switch { subject, arms }
}

pub(crate) fn yes() -> ArmTest {
    ArmTest::Value(Value::Bool(true))
}

/// Creates a function that is never run: drawings need only its signature.
pub(crate) fn function(module: &str, name: &str, parameters: &[Passing], result: Type, effects: Effects) -> Function {
    let parameter = |(index, passing): (usize, &Passing)| Parameter {
        name: format!("p{index}").into(),
        ty: Type::Int,
        passing: *passing,
        default: None,
    };
    let signature = Signature {
        module: module.into(),
        name: name.into(),
        doc: "".into(),
        parameters: parameters.iter().enumerate().map(parameter).collect(),
        result,
        failure: None,
        effects,
        state: None,
        batch: None,
        internal: false,
    };
    Function {
        signature,
        batch: None,
        words: None,
        code: FunctionCode::Immediate(Arc::new(|_| Outcome::Value(Value::Unit))),
        types: Vec::new(),
        location: None,
    }
}

pub(crate) fn pure() -> Effects {
    Effects { world: World::Pure, ..Effects::default() }
}

pub(crate) fn library() -> Library {
    let (value, borrow, change) = (Passing::Value, Passing::Borrow, Passing::Change);
    let reads = Effects { world: World::Reads, waits: true, ..Effects::default() };
    let image = Module::new("image", "")
        .function(function("image", "get", &[borrow, borrow], Type::option(Type::Bytes), pure()))
        .function(function("image", "put", &[change, value, value], Type::Unit, pure()))
        .function(function("image", "scale", &[borrow, value], Type::Int, pure()))
        .function(function("image", "to_jpeg", &[borrow, value], Type::Bytes, pure()));
    let files = Module::new("files", "").function(function("files", "read", &[value], Type::Bytes, reads));
    let http = Module::new("http", "")
        .function(function("http", "ok", &[value, value], Type::named("http.Response"), pure()))
        .function(function("http", "bad_request", &[value], Type::named("http.Response"), pure()))
        .function(function("http", "not_found", &[], Type::named("http.Response"), pure()));
    let ledger = Module::new("ledger", "")
        .function(function("ledger", "balance", &[borrow], Type::Int, pure()))
        .function(function("ledger", "add", &[change, value], Type::Unit, pure()))
        .function(function("ledger", "audit", &[value], Type::Int, Effects::default()));
    let mut library = Library::default();
    for module in [image, files, http, ledger] {
        library.add(module).expect("modules have different names");
    }
    library
}

fn response() -> Type {
    Type::named("http.Response")
}

/// Creates `op?`: the payload of `Ok`, or the end of the flow.
fn tried(result: u32, ok: u32, ty: &Type) -> Op {
    let failure = variable(ok + 1000, "", Type::Failure);
    let fails = block(vec![bind(ok + 2000, Type::Never, Op::Fail(var(ok + 1000)))], Atom::Value(Value::Unit));
    choose(
        var(result),
        vec![
            arm(ArmTest::Tag(Value::OK), vec![variable(ok + 3000, "", ty.clone())], block(vec![], var(ok + 3000))),
            arm(ArmTest::Tag(Value::ERR), vec![failure], fails),
        ],
    )
}

/// Returns Flux's image server.
pub(crate) fn image_server() -> Program {
    let parameter = |name: &str, from, default| RouteParameter { name: name.into(), from, default };
    let flow = Flow {
        name: "get /{name}".into(),
        route: Some(FlowRoute {
            method: "GET".into(),
            pattern: "/{name}".into(),
            parameters: vec![
                parameter("name", ParameterFrom::Path, None),
                parameter("scale", ParameterFrom::Query, Some(Value::Int(8))),
            ],
        }),
        parameters: vec![variable(0, "name", Type::Text), variable(1, "scale", Type::Int)],
        result: response(),
        body: image_body(),
        former_sites: Vec::new(),
    };
    program("images", "http.http", vec![flow], &["thumbnails"])
}

fn image_body() -> Block {
    let mut bindings = scale_checks();
    bindings.extend([
        bind(16, Type::Text, Op::Prim(Prim::Interpolate, vec![var(0), text("/"), var(1)])),
        bind(17, Type::option(Type::Bytes), call("image.get", vec![shared("thumbnails"), var(16)])),
        bind(
            18,
            Type::Bytes,
            choose(
                var(17),
                vec![
                    arm(ArmTest::Tag(Value::SOME), vec![variable(19, "hit", Type::Bytes)], block(vec![], var(19))),
                    arm(ArmTest::Tag(Value::NONE), vec![], image_miss()),
                ],
            ),
        ),
        bind(40, response(), call("http.ok", vec![var(18), text("image/jpeg")])),
    ]);
    block(bindings, var(40))
}

/// The checks that the scale is 1 to 8, and the answer if it is not.
fn scale_checks() -> Vec<Let> {
    let refuse = block(
        vec![
            bind(13, response(), call("http.bad_request", vec![text("scale must be 1 to 8")])),
            bind(14, Type::Never, Op::Return(var(13))),
        ],
        Atom::Value(Value::Unit),
    );
    vec![
        bind(10, Type::Bool, Op::Prim(Prim::Less, vec![var(1), int(1)])),
        bind(
            11,
            Type::Bool,
            choose(
                var(10),
                vec![
                    arm(yes(), vec![], block(vec![], Atom::Value(Value::Bool(true)))),
                    arm(
                        ArmTest::Otherwise,
                        vec![],
                        block(vec![bind(9, Type::Bool, Op::Prim(Prim::Greater, vec![var(1), int(8)]))], var(9)),
                    ),
                ],
            ),
        ),
        bind(
            12,
            Type::Unit,
            choose(
                var(11),
                vec![
                    arm(yes(), vec![], refuse),
                    arm(ArmTest::Otherwise, vec![], block(vec![], Atom::Value(Value::Unit))),
                ],
            ),
        ),
    ]
}

/// The arm for an image that is not in the cache.
fn image_miss() -> Block {
    let result = |ty: Type| Type::result(ty, Type::Failure);
    let missing = block(
        vec![bind(23, response(), call("http.not_found", vec![])), bind(24, Type::Never, Op::Return(var(23)))],
        Atom::Value(Value::Unit),
    );
    block(
        vec![
            bind(20, Type::Text, Op::Prim(Prim::Interpolate, vec![text("images/"), var(0), text(".ppm")])),
            bind(21, result(Type::Bytes), call("files.read", vec![var(20)])),
            bind(
                22,
                Type::Bytes,
                choose(
                    var(21),
                    vec![
                        arm(ArmTest::Tag(Value::OK), vec![variable(25, "ppm", Type::Bytes)], block(vec![], var(25))),
                        arm(ArmTest::Tag(Value::ERR), vec![], missing),
                    ],
                ),
            ),
            bind(30, result(Type::Int), call("image.scale", vec![var(22), var(1)])),
            bind(31, Type::Int, tried(30, 31, &Type::Int)),
            bind(32, result(Type::Bytes), call("image.to_jpeg", vec![var(31), int(85)])),
            bind(33, Type::Bytes, tried(32, 33, &Type::Bytes)),
            bind(34, Type::Unit, call("image.put", vec![shared("thumbnails"), var(16), var(33)])),
        ],
        var(33),
    )
}

/// Returns a program with a body for each element, an atomic step, a loop and a failure on purpose.
pub(crate) fn ledger() -> Program {
    let body = block(
        vec![
            bind(
                2,
                Type::list(Type::Int),
                Op::Map { list: var(0), element: variable(10, "amount", Type::Int), body: ledger_element() },
            ),
            bind(3, Type::Int, Op::Prim(Prim::Length, vec![var(2)])),
            bind(
                4,
                Type::Int,
                Op::Loop {
                    init: vec![var(3)],
                    state: vec![variable(30, "left", Type::Int)],
                    body: ledger_round(),
                    at_most: 5,
                },
            ),
            bind(5, Type::Int, call("ledger.audit", vec![var(4)])),
        ],
        Atom::Value(Value::Unit),
    );
    let flow = Flow {
        name: "csv.rows".into(),
        route: None,
        parameters: vec![variable(0, "amounts", Type::list(Type::Int))],
        result: Type::Unit,
        body,
        former_sites: Vec::new(),
    };
    program("csv.rows", "csv.rows", vec![flow], &["book"])
}

/// The body for each element: an atomic step, and a call.
fn ledger_element() -> Block {
    let constraint = Constraint { resource: Resource::Shared("book".into()), mode: Mode::Write, per_session: false };
    block(
        vec![
            bind(
                11,
                Type::Int,
                Op::Atomic {
                    constraints: vec![constraint],
                    restores: Vec::new(),
                    session: None,
                    cancellable: false,
                    body: ledger_step(),
                },
            ),
            bind(17, Type::Int, call("ledger.audit", vec![var(11)])),
        ],
        var(17),
    )
}

fn ledger_step() -> Block {
    block(
        vec![
            bind(12, Type::Int, call("ledger.balance", vec![shared("book")])),
            bind(13, Type::Bool, Op::Prim(Prim::Less, vec![var(12), var(10)])),
            bind(
                14,
                Type::Unit,
                choose(
                    var(13),
                    vec![
                        arm(
                            yes(),
                            vec![],
                            block(vec![bind(15, Type::Never, Op::Fail(text("not covered")))], Atom::Value(Value::Unit)),
                        ),
                        arm(
                            ArmTest::Otherwise,
                            vec![],
                            block(
                                vec![bind(16, Type::Unit, call("ledger.add", vec![shared("book"), var(10)]))],
                                Atom::Value(Value::Unit),
                            ),
                        ),
                    ],
                ),
            ),
        ],
        var(12),
    )
}

fn ledger_round() -> Block {
    block(
        vec![
            bind(31, Type::Int, call("ledger.audit", vec![var(30)])),
            bind(32, Type::Bool, Op::Prim(Prim::Less, vec![var(31), int(3)])),
            bind(33, Type::tuple(vec![Type::Int, Type::Bool]), Op::Prim(Prim::Record, vec![var(31), var(32)])),
        ],
        var(33),
    )
}

pub(crate) fn program(name: &str, source: &str, flows: Vec<Flow<Block>>, values: &[&str]) -> Program {
    let nothing = || block(vec![], Atom::Value(Value::Unit));
    Program {
        types: vec![],
        inlined_calls: vec![],
        shared: values
            .iter()
            .map(|value| SharedValue {
                name: (*value).into(),
                ty: Type::named("image.Cache"),
                per_session: false,
                init: nothing(),
            })
            .collect(),
        entries: vec![Entry { name: name.into(), source: source.into(), arguments: nothing(), ordered: false, flows }],
    }
}
