//! A start in two parts: what can be checked while another program holds the ports and tables, and the rest.

use std::io;
use std::sync::Arc;

use weir_host::{Failure, Library, Opened, Source, TypeDefinition, Value};
use weir_ir::graph::{Graph, Program};
use weir_ir::program::Entry;
use weir_trace::{Detail, EventKind};

use super::{Options, PreparedProgram, Settings, StartError, StartFailure, make_shared, prepare, run_once};
use crate::engine::EngineSetup;
use crate::event_loop::EventLoop;
use crate::prepare::source_of;
use crate::running::{RunningProgram, run_loops};

/// A program that has passed every check that needs neither its shared values nor its ports: its plan fits, it is prepared, and
/// its sources accept their arguments.
pub struct CheckedStart<'a> {
    program: &'a Program,
    options: Options,
    settings: Settings,
    prepared: PreparedProgram,
    loops: Vec<EventLoop>,
    sources: Vec<EvaluatedSource<'a>>,
}

/// A source that is not open yet, with its arguments.
struct EvaluatedSource<'a> {
    entry: &'a Entry<Graph>,
    source: Arc<dyn Source>,
    arguments: Vec<Value>,
}

impl<'a> CheckedStart<'a> {
    /// Checks a program before it starts.
    ///
    /// # Errors
    /// Fails if the program does not fit the library or the plan, a source refuses its arguments, or the system provides no
    /// thread.
    pub fn check(program: &'a Program, library: &'a Library, options: Options) -> Result<CheckedStart<'a>, StartError> {
        let settings = Settings::resolve(program, &options)?;
        settings.memory.apply();
        let (prepared, arguments) = prepare(program, library, &options, &settings)?;
        let cores = &prepared.instance.helpers.cores;
        let start_loop = |index| EventLoop::start(&*options.platform, cores, index);
        let loop_count = settings.row.loop_count(settings.threads, &prepared.instance);
        let loops = (0..loop_count).map(start_loop).collect::<io::Result<Vec<_>>>()?;
        let first = loops[0].handle().clone();
        let inside = first.enter();
        prepared.instance.first_loop.get_or_init(|| first.clone());
        let mut sources = Vec::new();
        for (index, (entry, body)) in program.entries.iter().zip(&arguments).enumerate() {
            let evaluated = run_once(body, &entry.name, &prepared.instance, &first).map_err(StartError::Source)?;
            let arguments = match evaluated {
                Value::Record(arguments) => arguments.to_vec(),
                _ => Vec::new(),
            };
            sources.push(EvaluatedSource { entry, source: source_of(library, program, index)?, arguments });
        }
        drop(inside);
        let checked = CheckedStart { program, options, settings, prepared, loops, sources };
        checked.check_sources()?;
        Ok(checked)
    }

    fn check_sources(&self) -> Result<(), StartError> {
        let types: Arc<[TypeDefinition]> = self.program.types.clone().into();
        for EvaluatedSource { entry, source, arguments } in &self.sources {
            let checked = source.check(arguments, &entry.routes(&types), &self.prepared.instance.environment);
            checked.map_err(|failure| refused(entry, failure))?;
        }
        Ok(())
    }

    /// Creates the shared values, opens the sources, and begins to run.
    ///
    /// # Errors
    /// Fails if a shared value or source cannot be created, or the system refuses.
    pub fn start(self) -> Result<RunningProgram, StartError> {
        let CheckedStart { program, options, settings, prepared, loops, sources } = self;
        let first = loops[0].handle().clone();
        let inside = first.enter();
        make_shared(program, &prepared, &first)?;
        let opened = open(program, sources, &prepared)?;
        let engine = settings.row.start(&EngineSetup {
            planned: settings.planned(program, &options.plan, &prepared.instance),
            thread_counts: options.thread_counts,
            flows_max: settings.flows_max,
            platform: &options.platform,
            handle: &first,
        })?;
        drop(inside);
        Ok(run_loops(loops, prepared.instance, opened, engine, settings.drain_within))
    }
}

fn open(
    program: &Program,
    sources: Vec<EvaluatedSource<'_>>,
    prepared: &PreparedProgram,
) -> Result<Vec<Arc<dyn Opened>>, StartError> {
    let instance = &prepared.instance;
    let types: Arc<[TypeDefinition]> = program.types.clone().into();
    let mut opened = Vec::new();
    for EvaluatedSource { entry, source, arguments } in sources {
        let source = source.open(arguments, entry.routes(&types), &instance.environment);
        let source = source.map_err(|failure| refused(entry, failure))?;
        let description: Arc<str> = source.describe().into();
        let entry = opened.len() as u32;
        instance.record(Detail::Log, || EventKind::SourceOpened { entry, description });
        opened.push(source);
    }
    Ok(opened)
}

fn refused(entry: &Entry<Graph>, failure: Failure) -> StartError {
    StartError::Source(StartFailure { name: entry.name.clone(), path: String::new(), failure })
}
