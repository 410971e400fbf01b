//! Command line of `weir`: its commands, their options and defaults.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use weir_ir::passes::{EXPR_PASSES, GRAPH_PASSES, LOWERING};

use crate::arguments::{ConfigurationArguments, EXIT_CODES, ExecutionArguments, RunArguments};
use crate::programs;
use crate::terminal::ErrorFormat;

/// Weir, a language for internet services and stream jobs
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program until it ends or is stopped
    Run(RunCommand),
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
    /// Show the tables of a program, and what a start would change in its database; exits with 1 if it would fail
    Tables(TablesArguments),
    /// Watch a running program: its routes, sections, threads and queues
    Top(TopArguments),
    /// Serve an editor over standard input and output (Language Server Protocol)
    Lsp,
}

/// Arguments of `weir run`.
#[derive(Args, Debug)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// Restart the program whenever its file changes and has no errors
    #[arg(long)]
    pub(crate) watch: bool,
}

/// Arguments of `weir tables`.
#[derive(Args, Debug)]
pub(crate) struct TablesArguments {
    /// Program, or folder with a `main.weir`; `-` reads standard input
    #[arg(default_value = ".", value_parser = programs::program_argument())]
    pub(crate) file: PathBuf,
    /// Folder of the program's tables; default: the folder of the program
    #[arg(long, value_name = "DIR", conflicts_with = "tables")]
    pub(crate) data: Option<PathBuf>,
    /// PostgreSQL database of the program's tables, such as postgres://shop@db.example/shop; overrides the plan
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) tables: Option<String>,
    /// Copy the database to this new file instead; the program may run meanwhile
    #[arg(long, value_name = "PATH", conflicts_with = "tables")]
    pub(crate) backup: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArguments,
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
    /// Format of diagnostics, and of the explanation
    #[arg(long, value_enum, default_value_t = ErrorFormat::Human)]
    pub(crate) error_format: ErrorFormat,
    /// Fail if there are warnings
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Print the queries of each request, in rounds, and the reason for each wait
    #[arg(long, value_enum, value_name = "SUBJECT")]
    pub(crate) explain: Option<ExplainedSubject>,
}

/// The subject that `weir check --explain` explains.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExplainedSubject {
    /// Input and output
    Io,
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
    #[arg(long, conflicts_with = "fold")]
    pub(crate) all: bool,
    /// Draw each `fn` of the program as one node (with `--format svg` and `dot`)
    #[arg(long)]
    pub(crate) fold: bool,
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
    /// Also apply the edits that warnings suggest without being certain: they rename and remove what is unused
    #[arg(long)]
    pub(crate) suggestions: bool,
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
    /// Run only the tests whose whole name is that of `--filter`
    #[arg(long, requires = "filter")]
    pub(crate) exact: bool,
    /// Time limit of each test in seconds, such as 5 or 5s
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) time_limit: u32,
    /// PostgreSQL database in which each test has stored tables of its own; default: tables in memory. What the database
    /// holds stays as it is: the tests use new schemas, which are dropped afterwards
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) tables: Option<String>,
    /// Seed of the random numbers that each test draws
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArguments,
}

/// Arguments of `weir doc`.
#[derive(Args, Debug)]
pub(crate) struct DocArguments {
    /// Program, or folder with a `main.weir`; or a module or function of the library, such as `http` or `list.map`; without one,
    /// the whole library is documented
    #[arg(value_parser = programs::program_argument())]
    pub(crate) file: Option<PathBuf>,
    /// Output file; default: standard output, or a temporary file with `--open`
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Open the page in the browser: the program that `BROWSER` names, or that of the desktop
    #[arg(long)]
    pub(crate) open: bool,
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

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok().filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "it is a whole number of seconds from 1 on, such as 5 or 5s".to_owned())
}
