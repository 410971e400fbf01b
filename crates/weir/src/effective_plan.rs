//! Effective plan: the plan of a program, overridden by the options of the command line.

use std::path::{Path, PathBuf};

use weir_ir::graph::Program;
use weir_ir::plan::{Located, Plan};
use weir_runtime::StartError;

use crate::arguments::ExecutionArguments;
use crate::terminal::Terminal;
use crate::{Exit, plan_file};

/// A plan after the overrides, and its file.
pub(crate) struct EffectivePlan {
    pub(crate) plan: Plan,
    /// Plan file, if there is one.
    pub(crate) path: Option<PathBuf>,
}

impl EffectivePlan {
    /// Reads the plan and applies the options.
    ///
    /// # Errors
    /// Prints the errors of the plan, and returns the exit code.
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
            plan.flows_max = Some(given(flows as usize));
        }
        Ok(EffectivePlan { plan, path })
    }

    /// Returns true if there is neither a plan nor an option.
    #[cfg(feature = "tools")]
    pub(crate) fn is_default(&self) -> bool {
        self.path.is_none() && self.plan == Plan::default()
    }

    /// Returns the default engine: the one that is named, else `manual` if there are sections, else the first engine of
    /// the runtime.
    pub(crate) fn engine(&self) -> &str {
        match (&self.plan.engine, self.plan.sections.is_empty()) {
            (Some(engine), _) => &engine.value,
            (None, true) => weir_runtime::ENGINES[0].name,
            (None, false) => "manual",
        }
    }
}

/// A value from the command line, which has no position in the plan.
fn given<T>(value: T) -> Located<T> {
    Located { value, at: 0..0 }
}

/// Returns hints for a program that does not start under its plan.
pub(crate) fn start_hints(error: &StartError) -> &'static [&'static str] {
    match error {
        StartError::Plan(_) => &["options override the plan: omit `--engine`, or remove the sections from the plan"],
        StartError::Prepare(_) => &["this is a bug in Weir or in a linked library"],
        _ => &[],
    }
}
