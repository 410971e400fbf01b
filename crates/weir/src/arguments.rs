//! The command line: every command, option and default.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use weir_ir::passes::{EXPR_PASSES, GRAPH_PASSES, LOWERING};

use crate::{Exit, programs};

/// One program, one graph, one plan: a language for internet services and stream jobs.
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the program is wrong, 2 the command line is wrong, \
    3 the surroundings are wrong (a file cannot be read, a port is taken), 130 stopped at once by a second signal.";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program until it ends or is told to stop
    Run(RunArguments),
    /// Say what is wrong with programs
    Check(CheckArguments),
    /// Show a program's graph
    Graph(GraphArguments),
    /// Explain a diagnostic's code
    Explain(ExplainArguments),
    /// Format programs in the one style
    Fmt(FmtArguments),
    /// Make a folder with a service that runs
    New(NewArguments),
    /// Run the tests of programs
    Test(TestArguments),
    /// Write the documentation of a program, or of the standard library, as one HTML page
    Doc(DocArguments),
    /// Show what a plan means for a program: its sections, and why
    Plan(PlanArguments),
    /// Watch a running program: its routes, sections, threads and queues
    Top(TopArguments),
    /// Answer an editor on standard input and output, in the Language Server Protocol
    Lsp,
}

/// Arguments of `weir run`.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// The program, or the folder of its `main.weir`; `-` reads it from standard input
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) execution: ExecutionArguments,
    /// The folder below which `files` reads; default: the program's own
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// How many megabytes of files that were read are kept, each as long as it is unchanged; 0 keeps none. Default: 64
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32))]
    pub(crate) files_kept: Option<u32>,
    /// Listen on this port instead of the program's; 0 takes any that is free
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// How to write diagnostics
    #[arg(long, value_enum, default_value_t = ErrorFormat::Human)]
    pub(crate) error_format: ErrorFormat,
    /// Run it again whenever the file changes and is right
    #[arg(long)]
    pub(crate) watch: bool,
}

/// Arguments of `weir plan`.
#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// The program, or the folder of its `main.weir`
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) execution: ExecutionArguments,
}

/// What a program is run on.
#[derive(Args, Debug)]
pub(crate) struct ExecutionArguments {
    /// What gives threads to flows; goes before the plan. Default: event
    #[arg(long, value_name = "ENGINE", value_parser = engines())]
    pub(crate) engine: Option<String>,
    /// The plan; default: the one beside the program, `main.plan.toml` for `main.weir`
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// How many threads it has; goes before the plan. Default: one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// How many flows may wait; more are refused, as HTTP with 503. Goes before the plan. Default: 10000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) flows_max: Option<u32>,
}

/// Arguments of `weir top`.
#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// The program, by its name or the number of its process; default: the only one that runs
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: Option<String>,
    /// Write one table and end, as where the output is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// How to write the table
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub(crate) format: TableFormat,
}

/// Arguments of `weir check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// The programs, or folders of programs; `-` reads one from standard input
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// How to write diagnostics
    #[arg(long, value_enum, default_value_t = ErrorFormat::Human)]
    pub(crate) error_format: ErrorFormat,
}

/// Arguments of `weir graph`.
#[derive(Args, Debug)]
pub(crate) struct GraphArguments {
    /// The program, or the folder of its `main.weir`; `-` reads it from standard input
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    /// What the picture is
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,
    /// Where it is written; default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Tint the sections of this plan; default: the one beside the program
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Show every node, plumbing included
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
}

/// Arguments of `weir explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The code, such as E0101; without one, all are listed
    pub(crate) code: Option<String>,
}

/// Arguments of `weir fmt`.
#[derive(Args, Debug)]
pub(crate) struct FmtArguments {
    /// The programs, or folders of programs; `-` formats standard input to standard output
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing, and fail where a file is not formatted
    #[arg(long)]
    pub(crate) check: bool,
}

/// Arguments of `weir new`.
#[derive(Args, Debug)]
pub(crate) struct NewArguments {
    /// The folder; its last part names the service
    pub(crate) path: PathBuf,
    /// Make a Cargo project with functions of its own
    #[arg(long)]
    pub(crate) rust: bool,
}

/// Arguments of `weir test`.
#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// The programs, or folders of programs
    #[arg(default_value = ".")]
    pub(crate) files: Vec<PathBuf>,
    /// Run only the tests whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
}

/// Arguments of `weir doc`.
#[derive(Args, Debug)]
pub(crate) struct DocArguments {
    /// The program, or the folder of its `main.weir`; without one, the library is documented
    #[arg(value_parser = programs::program_argument())]
    pub(crate) file: Option<PathBuf>,
    /// Where the page is written; default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// With the source around the place
    Human,
    /// One JSON object on one line each
    Json,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// In columns
    Text,
    /// One JSON object
    Json,
}

/// What a picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// An indented outline
    Text,
    /// Graphviz
    Dot,
    /// A picture for browsers
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

/// The engines of the runtime, by name.
fn engines() -> PossibleValuesParser {
    weir_runtime::ENGINES.iter().map(|row| PossibleValue::new(row.name).help(row.doc)).into()
}

impl Arguments {
    /// The command line of this process.
    ///
    /// # Errors
    /// Gives the exit code where there is nothing more to do: help was asked for, or the command line is wrong, which has
    /// been said.
    pub(crate) fn read<I: IntoIterator<Item: Into<OsString> + Clone>>(arguments: I) -> Result<Arguments, Exit> {
        Arguments::try_parse_from(arguments).map_err(|error| {
            // Where even this cannot be written there is nobody to tell.
            let _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Success }
        })
    }
}
