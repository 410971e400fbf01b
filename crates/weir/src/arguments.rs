//! Command line of `run`, which is that of `weir-run`; and what all commands share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, ValueEnum};
use weir_library::log::{LogFormat, LogLevel, LogSettings};

use crate::terminal::ErrorFormat;
use crate::{Exit, programs};

/// Runs a Weir program until it ends or is stopped
#[derive(Debug, Parser)]
#[command(name = "weir-run", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

pub(crate) const EXIT_CODES: &str = "Exit codes: 0 success, 1 errors in the program, 2 invalid command line, \
    3 error of the environment (a file cannot be read, a port is in use), 130 stopped by a second signal.";

/// Arguments of `weir run`.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// Program, or folder with a `main.weir`; `-` reads standard input
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) execution: ExecutionArguments,
    /// Folder that `files` reads from; default: the folder of the program, without programs and plans
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Folder of the program's tables, in a file `NAME.db`; default: the folder of the program
    #[arg(long, value_name = "DIR", conflicts_with = "tables")]
    pub(crate) data: Option<PathBuf>,
    /// PostgreSQL database of the program's tables, such as postgres://shop@db.example/shop; overrides the plan
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) tables: Option<String>,
    /// Maximum size of the file cache in megabytes; 0 disables it. Default: 64
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32))]
    pub(crate) files_kept: Option<u32>,
    /// Memory that the program may use, such as 512mb; beyond it, new flows are refused. Default: 80 % of the machine's or of
    /// the container's
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub(crate) memory: Option<u64>,
    /// Listen on this port instead of the one in the program; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArguments,
    /// Least important messages of the module `log` that are written
    #[arg(long, value_enum, default_value_t = LogLevelArgument::Info)]
    pub(crate) log_level: LogLevelArgument,
    /// Format of the log: messages of the module `log`, failures, and the start and end of the program
    #[arg(long, value_enum, default_value_t = LogFormatArgument::Text)]
    pub(crate) log_format: LogFormatArgument,
    /// Format of diagnostics, and of what else keeps the program from starting. Default: human; json with `--log-format json`
    #[arg(long, value_enum)]
    error_format: Option<ErrorFormat>,
    /// The process was started by `weir run --watch`, which is at the other end of its standard input
    #[arg(long, hide = true)]
    pub(crate) watched: bool,
}

/// The levels of `log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevelArgument {
    Debug,
    Info,
    Warn,
    Error,
}

/// The formats of `log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArgument {
    Text,
    Json,
}

impl RunArguments {
    /// Returns the format of diagnostics.
    pub(crate) fn error_format(&self) -> ErrorFormat {
        self.error_format.unwrap_or(match self.log_format {
            LogFormatArgument::Text => ErrorFormat::Human,
            LogFormatArgument::Json => ErrorFormat::Json,
        })
    }

    /// Returns the settings of the log.
    pub(crate) fn log_settings(&self) -> LogSettings {
        LogSettings {
            level: match self.log_level {
                LogLevelArgument::Debug => LogLevel::Debug,
                LogLevelArgument::Info => LogLevel::Info,
                LogLevelArgument::Warn => LogLevel::Warn,
                LogLevelArgument::Error => LogLevel::Error,
            },
            format: match self.log_format {
                LogFormatArgument::Text => LogFormat::Text,
                LogFormatArgument::Json => LogFormat::Json,
            },
        }
    }
}

/// Values of the program's `config` declarations.
#[derive(Args, Debug)]
pub(crate) struct ConfigurationArguments {
    /// Value of a `config` of the program; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// File with values of `config` and `secret`: TOML, `name = value`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Options that override the plan.
#[derive(Args, Debug)]
pub(crate) struct ExecutionArguments {
    /// Engine that runs the flows; overrides the plan. Default: event
    #[arg(long, value_name = "ENGINE", value_parser = engines())]
    pub(crate) engine: Option<String>,
    /// Plan; default: the file beside the program, `main.plan.toml` for `main.weir`
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Number of threads; overrides the plan. Default: the number of cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Maximum number of flows in progress; further ones are refused, by HTTP with status 503. Overrides the plan.
    /// Default: 10000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=FLOWS_MAX))]
    pub(crate) flows_max: Option<u32>,
}

/// Returns the engines of the runtime, by name.
fn engines() -> PossibleValuesParser {
    weir_runtime::ENGINES.iter().map(|row| PossibleValue::new(row.name).help(row.doc)).into()
}

/// Parses a command line.
///
/// # Errors
/// Returns the exit code if nothing is left to do: help was requested, or the command line is wrong. The message has been
/// printed.
pub(crate) fn read<A: Parser, I: IntoIterator<Item: Into<OsString> + Clone>>(arguments: I) -> Result<A, Exit> {
    A::try_parse_from(arguments).map_err(|error| {
        // If standard error is closed, the message is lost.
        let _ = error.print();
        if error.use_stderr() { Exit::Usage } else { Exit::Success }
    })
}

/// The maximum of `--flows-max`, as in a plan.
const FLOWS_MAX: i64 = weir_ir::plan::FLOWS_MAX as i64;

/// The least memory of a program: less would not hold the runtime itself. Chosen by judgement.
const MEMORY_MIN: u64 = 16 << 20;

fn memory_size(text: &str) -> Result<u64, String> {
    let size = weir_ir::plan::parse_size(text).filter(|bytes| *bytes >= MEMORY_MIN);
    size.ok_or_else(|| "expected a size of at least 16mb, such as `512mb` or `2gb`".to_owned())
}
