//! Command line: commands, options and defaults.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use weir_ir::passes::{EXPR_PASSES, GRAPH_PASSES, LOWERING};

use crate::{Exit, programs};

/// Weir, a language for internet services and stream jobs
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success, 1 errors in the program, 2 invalid command line, \
    3 error of the environment (a file cannot be read, a port is in use), 130 stopped by a second signal.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program until it ends or is stopped
    Run(RunArguments),
    /// Check programs and their plans, and print errors and warnings
    Check(CheckArguments),
    /// Print the graph of a program
    Graph(GraphArguments),
    /// Explain the code of a diagnostic
    Explain(ExplainArguments),
    /// Format programs
    Fmt(FmtArguments),
    /// Apply the fixes of diagnostics that are certain to be right
    Fix(FixArguments),
    /// Create a folder with a working service
    New(NewArguments),
    /// Run the tests of programs
    Test(TestArguments),
    /// Write the documentation of a program, or of the standard library, as an HTML page
    Doc(DocArguments),
    /// Show how a plan divides a program into sections
    Plan(PlanArguments),
    /// Watch a running program: its routes, sections, threads and queues
    Top(TopArguments),
    /// Serve an editor over standard input and output (Language Server Protocol)
    Lsp,
}

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
    /// Format of diagnostics
    #[arg(long, value_enum, default_value_t = ErrorFormat::Human)]
    pub(crate) error_format: ErrorFormat,
    /// Restart the program whenever its file changes and has no errors
    #[arg(long)]
    pub(crate) watch: bool,
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

/// Arguments of `weir plan`.
#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// Program, or folder with a `main.weir`
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) execution: ExecutionArguments,
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) flows_max: Option<u32>,
}

/// Arguments of `weir top`.
#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// Name or process id of the program; default: the only one that runs
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: Option<String>,
    /// Print one table and exit; implied if the output is not a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Format of the table
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub(crate) format: TableFormat,
}

/// Arguments of `weir check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Programs, or folders of programs; `-` reads standard input
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// Format of diagnostics
    #[arg(long, value_enum, default_value_t = ErrorFormat::Human)]
    pub(crate) error_format: ErrorFormat,
    /// Fail if there are warnings
    #[arg(long)]
    pub(crate) deny_warnings: bool,
}

/// Arguments of `weir graph`.
#[derive(Args, Debug)]
pub(crate) struct GraphArguments {
    /// Program, or folder with a `main.weir`; `-` reads standard input
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    /// Format of the graph
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,
    /// Output file; default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Colour the sections of this plan; default: the plan beside the program
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Show every node, including control nodes
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the program in this representation, as text: `expr` before all passes, `graph` behind all of them
    #[arg(long, value_enum)]
    pub(crate) ir: Option<Ir>,
    /// Print the program as it is after this pass
    #[arg(long, value_name = "PASS", value_parser = passes())]
    pub(crate) after: Option<String>,
    /// List the passes in their order
    #[arg(long)]
    pub(crate) passes: bool,
    /// Show how long each pass takes for the program
    #[arg(long)]
    pub(crate) time_passes: bool,
    /// Show which nodes run as one piece of bytecode, its instructions, and why it ends where it ends
    #[arg(long, conflicts_with_all = ["ir", "after", "passes", "time_passes", "all"])]
    pub(crate) regions: bool,
}

/// Arguments of `weir explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// Code, such as E0101; without one, all codes are listed
    pub(crate) code: Option<String>,
}

/// Arguments of `weir fmt`.
#[derive(Args, Debug)]
pub(crate) struct FmtArguments {
    /// Programs, or folders of programs; `-` formats standard input to standard output
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing, and fail if a file is not formatted
    #[arg(long)]
    pub(crate) check: bool,
}

/// Arguments of `weir fix`.
#[derive(Args, Debug)]
pub(crate) struct FixArguments {
    /// Programs, or folders of programs; `-` fixes standard input to standard output
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing, and fail if a file could be fixed
    #[arg(long)]
    pub(crate) check: bool,
}

/// Arguments of `weir new`.
#[derive(Args, Debug)]
pub(crate) struct NewArguments {
    /// Folder to create; its last component becomes the name of the service
    pub(crate) path: PathBuf,
    /// Create a Cargo project with host functions in Rust
    #[arg(long)]
    pub(crate) rust: bool,
}

/// Arguments of `weir test`.
#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// Programs, or folders of programs
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// Run only the tests whose names contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Time limit of each test in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) time_limit: u32,
    /// Seed of the random numbers that each test draws
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArguments,
}

/// Arguments of `weir doc`.
#[derive(Args, Debug)]
pub(crate) struct DocArguments {
    /// Program, or folder with a `main.weir`; without one, the standard library is documented
    #[arg(value_parser = programs::program_argument())]
    pub(crate) file: Option<PathBuf>,
    /// Output file; default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The formats of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// Text with source excerpts
    Human,
    /// One JSON object per line
    Json,
}

/// The formats of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Columns
    Text,
    /// One JSON object
    Json,
}

/// The formats of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Indented outline
    Text,
    /// Graphviz source
    Dot,
    /// SVG image
    Svg,
}

/// A representation of a program between its text and its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ir {
    /// Expressions: a sequence of bindings for each flow
    Expr,
    /// Graphs: nodes with typed ports, and edges for resources
    Graph,
}

impl Ir {
    /// Returns its word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Ir::Expr => "expr",
            Ir::Graph => "graph",
        }
    }
}

/// Returns the names of the passes.
fn passes() -> PossibleValuesParser {
    let exprs = EXPR_PASSES.iter().map(|pass| PossibleValue::new(pass.name).help(pass.caption));
    let graphs = GRAPH_PASSES.iter().map(|pass| PossibleValue::new(pass.name).help(pass.caption));
    exprs.chain([PossibleValue::new(LOWERING)]).chain(graphs).into()
}

/// Returns the engines of the runtime, by name.
fn engines() -> PossibleValuesParser {
    weir_runtime::ENGINES.iter().map(|row| PossibleValue::new(row.name).help(row.doc)).into()
}

impl Arguments {
    /// Parses a command line.
    ///
    /// # Errors
    /// Returns the exit code if nothing is left to do: help was requested, or the command line is wrong. The message
    /// has been printed.
    pub(crate) fn read<I: IntoIterator<Item: Into<OsString> + Clone>>(arguments: I) -> Result<Arguments, Exit> {
        Arguments::try_parse_from(arguments).map_err(|error| {
            // If standard error is closed, the message is lost.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Success }
        })
    }
}

/// The least memory of a program: less would not hold the runtime itself. Chosen by judgement.
const MEMORY_MIN: u64 = 16 << 20;

fn memory_size(text: &str) -> Result<u64, String> {
    let size = weir_ir::plan::parse_size(text).filter(|bytes| *bytes >= MEMORY_MIN);
    size.ok_or_else(|| "expected a size of at least 16mb, such as `512mb` or `2gb`".to_owned())
}
