//! How a stream begins a flow for each of its elements.
//!
//! A source of the library is a [`Stream`]: a loop that hands each element to a [`Emitter`]. All else is the same for all
//! and done here:
//! 1. an element waits until there is room for its flow, so that pressure runs back to what the stream reads;
//! 2. when the program stops, the loop is dropped where it waits;
//! 3. then, and at the end of the input, the flows that have begun are waited for.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::{JoinSet, yield_now};
use weir::{
    Begun, Environment, Failure, Flows, LocalFuture, Loops, Module, Opened, Parameter, Passing, Progress, Route,
    Source, SourceSignature, Stop, Type, Value,
};

/// Elements after which others on the event loop get their turn, where no flow had to wait.
const YIELD_AFTER: u32 = 64;

/// Something that gives elements, opened and ready to.
pub(crate) trait Stream: Send + Sync + 'static {
    /// What it reads, for the start-up message.
    fn describe(&self) -> String;

    /// On how many event loops it gives them.
    fn loops(&self) -> Loops {
        Loops::One
    }

    /// How much of its input was given with so many elements, and how much the input is, where that is known.
    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        None
    }

    /// Gives all its elements. Dropped where it waits when the program stops.
    fn run(&self, emitter: Emitter) -> impl Future<Output = Result<(), Failure>>;
}

/// What a program says of a source, and how it is opened.
pub(crate) struct StreamDefinition<S> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) element: Type,
    pub(crate) ordered: bool,
    pub(crate) open: fn(&SourceArguments<'_>) -> Result<S, Failure>,
}

impl<S: Stream> StreamDefinition<S> {
    /// The module with this source in it.
    pub(crate) fn within(self, module: Module) -> Module {
        let signature = SourceSignature {
            module: module.name.clone(),
            name: self.name.into(),
            doc: self.doc.into(),
            parameters: self.parameters,
            element: Some(self.element),
            answer: None,
            ordered: self.ordered,
        };
        module.source(signature, Arc::new(StreamSource(self.open)))
    }
}

/// A parameter of a source that has to be given.
pub(crate) fn parameter(name: &str, ty: Type) -> Parameter {
    Parameter { name: name.into(), ty, passing: Passing::Value, default: None }
}

/// A parameter of a source that may be left out.
pub(crate) fn optional(name: &str, ty: Type, default: Value) -> Parameter {
    Parameter { default: Some(default), ..parameter(name, ty) }
}

/// What a source is opened with.
pub(crate) struct SourceArguments<'a> {
    arguments: &'a [Value],
    /// What the embedder gave.
    pub(crate) environment: &'a Environment,
}

impl SourceArguments<'_> {
    /// The whole number at this place.
    pub(crate) fn int(&self, index: usize) -> Result<i64, Failure> {
        match self.arguments.get(index) {
            Some(Value::Int(int)) => Ok(*int),
            _ => Err(Failure::argument("a whole number is missing")),
        }
    }

    /// The text at this place.
    pub(crate) fn text(&self, index: usize) -> Result<&str, Failure> {
        match self.arguments.get(index) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(Failure::argument("a text is missing")),
        }
    }

    /// The truth value at this place.
    pub(crate) fn bool(&self, index: usize) -> Result<bool, Failure> {
        match self.arguments.get(index) {
            Some(Value::Bool(bool)) => Ok(*bool),
            _ => Err(Failure::argument("`true` or `false` is missing")),
        }
    }

    /// The span of time at this place, which must be longer than nothing.
    pub(crate) fn duration(&self, index: usize, name: &str) -> Result<std::time::Duration, Failure> {
        match self.arguments.get(index) {
            Some(Value::Duration(nanos @ 1..)) => Ok(std::time::Duration::from_nanos(nanos.unsigned_abs())),
            _ => Err(Failure::argument(format!("`{name}` must be longer than nothing"))),
        }
    }
}

/// A source that opens a stream.
struct StreamSource<S>(fn(&SourceArguments<'_>) -> Result<S, Failure>);

impl<S: Stream> Source for StreamSource<S> {
    fn open(
        &self,
        arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        let stream = (self.0)(&SourceArguments { arguments: &arguments, environment })?;
        Ok(Arc::new(OpenStream { stream, elements: Arc::default() }))
    }
}

struct OpenStream<S> {
    stream: S,
    /// How many were given.
    elements: Arc<AtomicU64>,
}

impl<S: Stream> Opened for OpenStream<S> {
    fn describe(&self) -> String {
        self.stream.describe()
    }

    fn loops(&self) -> Loops {
        self.stream.loops()
    }

    fn progress(&self) -> Option<Progress> {
        let elements = self.elements.load(Ordering::Relaxed);
        let (done, whole) = self.stream.extent(elements)?;
        Some(Progress { elements, done, whole })
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move { run_stream(&*self, flows, stop).await })
    }
}

async fn run_stream(open: &OpenStream<impl Stream>, flows: Arc<dyn Flows>, stop: Stop) -> Result<(), Failure> {
    let begun = Rc::new(RefCell::default());
    let emitter =
        Emitter { flows, running: Rc::clone(&begun), since_yield: Rc::default(), elements: Arc::clone(&open.elements) };
    let ended = tokio::select! {
        biased;
        () = stop.stopped().into_future() => Ok(()),
        ended = open.stream.run(emitter) => ended,
    };
    let mut begun: JoinSet<_> = begun.take();
    while begun.join_next().await.is_some() {}
    ended
}

/// Where a stream gives its elements. Its clones are for the tasks of one stream, which share an event loop.
#[derive(Clone)]
pub(crate) struct Emitter {
    flows: Arc<dyn Flows>,
    /// The flows that are not through.
    running: Rc<RefCell<JoinSet<Result<Value, Failure>>>>,
    /// Elements since others had their turn.
    since_yield: Rc<Cell<u32>>,
    /// How many were given, on all event loops.
    elements: Arc<AtomicU64>,
}

impl Emitter {
    /// Begins a flow for the element as soon as there is room. A failure of the flow is the runtime's to tell.
    pub(crate) async fn emit(&self, element: Value) {
        let mut inputs = vec![element];
        loop {
            match self.flows.begin_detached(0, &mut inputs) {
                Begun::Done(_) => break,
                Begun::Pending(flow) => {
                    self.keep(flow);
                    break;
                }
                Begun::Full => self.flows.room().await,
            }
        }
        self.elements.fetch_add(1, Ordering::Relaxed);
        self.since_yield.set((self.since_yield.get() + 1) % YIELD_AFTER);
        if self.since_yield.get() == 0 {
            yield_now().await;
        }
    }

    fn keep(&self, flow: LocalFuture<Result<Value, Failure>>) {
        let mut running = self.running.borrow_mut();
        running.spawn_local(flow);
        while running.try_join_next().is_some() {}
    }
}
