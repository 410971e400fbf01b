//! Sources of streams: begins a flow for each element, with back-pressure.
//!
//! A source of the library implements [`Stream`]: a loop that passes each element to an [`Emitter`]. The rest is the
//! same for all sources and done here:
//! 1. an element waits until there is room for its flow, which puts back-pressure on the stream's input;
//! 2. when the program stops, the loop is dropped at its current wait;
//! 3. afterwards, and at the end of the input, the source waits for the flows that have begun.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::{JoinSet, yield_now};
use weir::{
    Begun, Environment, Failure, Flows, ListenProtocol, LocalFuture, Loops, Module, Opened, Parameter, Passing,
    Progress, Route, Source, SourceProblem, SourceSignature, Stop, Type, Value,
};

use crate::bad_elements::{BadElements, StreamElement};

/// Number of elements after which the stream yields to the other tasks of its event loop, if no flow had to wait.
const YIELD_AFTER: u32 = 64;

/// An open stream of elements.
pub(crate) trait Stream: Send + Sync + 'static {
    /// The number of event loops on which the stream runs.
    const LOOPS: Loops = Loops::One;

    /// True if the stream reads the standard input.
    const READS_STANDARD_INPUT: bool = false;

    /// Describes the stream's input, for the start-up message.
    fn describe(&self) -> String;

    /// Returns the amount of input consumed after `elements` elements, and the total amount, if known.
    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        None
    }

    /// Emits all elements. The future is dropped when the program stops.
    fn run(&self, emitter: Emitter) -> impl Future<Output = Result<(), Failure>>;
}

/// Definition of a source: its signature, and the function that opens it.
pub(crate) struct StreamDefinition<S> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) element: Type,
    pub(crate) ordered: bool,
    pub(crate) open: fn(&SourceArguments<'_>) -> Result<S, Failure>,
}

impl<S: Stream> StreamDefinition<S> {
    /// Adds the source to the module.
    pub(crate) fn within(self, module: Module) -> Module {
        self.added(module, None)
    }

    /// Adds the source, which listens at its parameters `port` and `address`, to the module.
    pub(crate) fn listening_within(self, module: Module, protocol: ListenProtocol) -> Module {
        self.added(module, Some(protocol))
    }

    fn added(self, module: Module, listens: Option<ListenProtocol>) -> Module {
        let is_duration = |(index, parameter): (usize, &Parameter)| {
            (parameter.ty == Type::Duration).then(|| (index, parameter.name.to_string()))
        };
        let durations = self.parameters.iter().enumerate().filter_map(is_duration).collect();
        let signature = SourceSignature {
            module: module.name.clone(),
            name: self.name.into(),
            doc: self.doc.into(),
            parameters: self.parameters,
            element: Some(self.element),
            answer: None,
            ordered: self.ordered,
        };
        module.source(signature, Arc::new(StreamSource { open: self.open, listens, durations }))
    }
}

/// Creates a required parameter of a source.
pub(crate) fn parameter(name: &str, ty: Type) -> Parameter {
    Parameter { name: name.into(), ty, passing: Passing::Value, default: None }
}

/// Creates an optional parameter of a source.
pub(crate) fn optional(name: &str, ty: Type, default: Value) -> Parameter {
    Parameter { default: Some(default), ..parameter(name, ty) }
}

/// Creates the parameter that chooses between skipping malformed elements and ending at the first.
pub(crate) fn strict() -> Parameter {
    optional("strict", Type::Bool, Value::Bool(false))
}

/// Arguments with which a source is opened.
pub(crate) struct SourceArguments<'a> {
    arguments: &'a [Value],
    /// The values that the embedder provides.
    pub(crate) environment: &'a Environment,
}

impl SourceArguments<'_> {
    /// Returns the whole number at this index.
    pub(crate) fn int(&self, index: usize) -> Result<i64, Failure> {
        match self.arguments.get(index) {
            Some(Value::Int(int)) => Ok(*int),
            _ => Err(Failure::argument("a whole number is missing")),
        }
    }

    /// Returns the text at this index.
    pub(crate) fn text(&self, index: usize) -> Result<&str, Failure> {
        match self.arguments.get(index) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(Failure::argument("a text is missing")),
        }
    }

    /// Returns the Boolean at this index.
    pub(crate) fn bool(&self, index: usize) -> Result<bool, Failure> {
        match self.arguments.get(index) {
            Some(Value::Bool(bool)) => Ok(*bool),
            _ => Err(Failure::argument("`true` or `false` is missing")),
        }
    }

    /// Returns the policy for malformed elements that the argument of the parameter [`strict`], at this index, chooses.
    pub(crate) fn bad_elements(&self, index: usize) -> Result<BadElements, Failure> {
        Ok(if self.bool(index)? { BadElements::EndStream } else { BadElements::Skip })
    }

    /// Returns the duration at this index, which must be positive.
    pub(crate) fn duration(&self, index: usize, name: &str) -> Result<std::time::Duration, Failure> {
        positive(self.arguments.get(index), name)
    }
}

fn positive(duration: Option<&Value>, name: &str) -> Result<std::time::Duration, Failure> {
    match duration {
        Some(Value::Duration(nanos @ 1..)) => Ok(std::time::Duration::from_nanos(nanos.unsigned_abs())),
        _ => Err(Failure::argument(format!("`{name}` must be greater than zero"))),
    }
}

/// A source that opens a stream.
struct StreamSource<S> {
    open: fn(&SourceArguments<'_>) -> Result<S, Failure>,
    listens: Option<ListenProtocol>,
    /// The parameters that are durations, by index, with their names. All must be positive.
    durations: Vec<(usize, String)>,
}

impl<S: Stream> Source for StreamSource<S> {
    fn open(
        &self,
        arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        let stream = (self.open)(&SourceArguments { arguments: &arguments, environment })?;
        Ok(Arc::new(OpenStream { stream, elements: Arc::default() }))
    }

    fn listens(&self) -> Option<ListenProtocol> {
        self.listens
    }

    fn reads_standard_input(&self) -> bool {
        S::READS_STANDARD_INPUT
    }

    fn loops(&self) -> Loops {
        S::LOOPS
    }

    fn faults(&self, arguments: &[Option<Value>], _routes: &Arc<[Route]>) -> Vec<(usize, Failure)> {
        let fault = |(index, name): &(usize, String)| {
            let known = arguments.get(*index)?.as_ref()?;
            Some((*index, positive(Some(known), name).err()?))
        };
        self.durations.iter().filter_map(fault).collect()
    }
}

struct OpenStream<S> {
    stream: S,
    /// Number of elements emitted.
    elements: Arc<AtomicU64>,
}

impl<S: Stream> Opened for OpenStream<S> {
    fn describe(&self) -> String {
        self.stream.describe()
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

/// Sink for the elements of a stream. Clones serve several tasks of one stream on the same event loop.
#[derive(Clone)]
pub(crate) struct Emitter {
    flows: Arc<dyn Flows>,
    /// The flows that have not ended.
    running: Rc<RefCell<JoinSet<Result<Value, Failure>>>>,
    /// Number of elements since the last yield.
    since_yield: Rc<Cell<u32>>,
    /// Number of elements emitted on all event loops.
    elements: Arc<AtomicU64>,
}

impl Emitter {
    /// Begins a flow for the element, or reports that it was skipped.
    pub(crate) async fn emit_or_report(&self, element: StreamElement) {
        match element {
            StreamElement::Begins(value) => self.emit(value).await,
            StreamElement::Skipped(failure) => {
                self.report(SourceProblem::ElementSkipped(failure));
                self.yield_at_times().await;
            }
        }
    }

    /// Reports something that went wrong while the stream goes on.
    pub(crate) fn report(&self, problem: SourceProblem) {
        self.flows.report(problem);
    }

    /// Begins a flow for the element as soon as there is room. The runtime reports a failure of the flow.
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
        self.yield_at_times().await;
    }

    /// Yields to the other tasks of the event loop once in [`YIELD_AFTER`] calls.
    async fn yield_at_times(&self) {
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
