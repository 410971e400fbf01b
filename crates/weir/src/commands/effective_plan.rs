//! What a program is run on: the plan, with what the command line says in the place of what the plan says.

use std::path::{Path, PathBuf};

use weir_ir::graph::Program;
use weir_ir::plan::{Located, Plan};
use weir_runtime::StartError;

use crate::arguments::ExecutionArguments;
use crate::terminal::Terminal;
use crate::{Exit, plan_file};

/// A plan, and where it comes from.
pub(crate) struct EffectivePlan {
    pub(crate) plan: Plan,
    /// Its file, where there is one.
    pub(crate) path: Option<PathBuf>,
}

impl EffectivePlan {
    /// The plan of these arguments.
    ///
    /// # Errors
    /// Says what is wrong with the plan's file, and gives the exit code.
    pub(crate) fn of(
        file: &Path,
        arguments: &ExecutionArguments,
        program: &Program,
        terminal: &mut Terminal,
    ) -> Result<EffectivePlan, Exit> {
        let read = plan_file::read(file, arguments.plan.as_deref(), program, terminal)?;
        let (path, mut plan) = read.map_or((None, Plan::default()), |(path, plan)| (Some(path), plan));
        if let Some(engine) = &arguments.engine {
            plan.engine = Some(given(engine.as_str().into()));
        }
        if let Some(threads) = arguments.threads {
            plan.threads = Some(given(threads.into()));
        }
        if let Some(flows) = arguments.flows_max {
            plan.flows = Some(given(flows as usize));
        }
        Ok(EffectivePlan { plan, path })
    }

    /// Whether nothing is said: no plan, and nothing in the command line.
    pub(crate) fn is_default(&self) -> bool {
        self.path.is_none() && self.plan == Plan::default()
    }

    /// The engine of what names none: the runtime's first, or one that has sections where the plan has some.
    pub(crate) fn engine(&self) -> &str {
        match (&self.plan.engine, self.plan.sections.is_empty()) {
            (Some(engine), _) => &engine.value,
            (None, true) => weir_runtime::ENGINES[0].name,
            (None, false) => "manual",
        }
    }
}

/// Something that the command line says, which has no place in the plan's text.
fn given<T>(value: T) -> Located<T> {
    Located { value, at: 0..0 }
}

/// What to do where a program does not start on what was chosen for it.
pub(crate) fn start_hints(error: &StartError) -> &'static [&'static str] {
    match error {
        StartError::Plan(_) => &["the command line goes before the plan: leave `--engine` to the plan, or cut nothing"],
        StartError::Prepare(_) => &["this is a fault of Weir, or of a library that was linked in"],
        _ => &[],
    }
}
