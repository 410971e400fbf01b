//! Level graphs whose nodes may be functions, or maps of functions, with graphs of their own (Ohua's thesis, §4.5.2): as the
//! text of a program, and flattened.

use std::fmt::Write as _;

use bench_harness::random;

use crate::level_graph::{LevelGraph, LevelNode};

/// The probability that a node is a function or a map.
const MODULES: f64 = 0.4;

/// The levels that the graph of a function has at most.
const INNER_LEVELS: usize = 5;

/// The elements of the list of a map.
const ELEMENTS: usize = 3;

/// Keeps the numbers of a program small.
const MODULUS: i64 = 1_000_003;

/// The module that a node is.
enum Module {
    Function(LevelGraph),
    Map(LevelGraph),
}

/// The nodes that become modules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Modules {
    /// Functions only.
    Functions,
    /// Maps only.
    Maps,
    /// Both.
    Both,
}

/// A level graph some of whose nodes are modules.
pub(crate) struct ModularGraph {
    graph: LevelGraph,
    modules: Vec<Option<Module>>,
}

impl ModularGraph {
    /// Generates a graph of this many levels over this many sources.
    pub(crate) fn random(levels: usize, sources: usize, modules: Modules, seed: &mut u64) -> ModularGraph {
        let graph = LevelGraph::random(levels, sources, seed);
        let modules = graph.0.iter().map(|_| {
            if (random(seed) >> 11) as f64 / (1u64 << 53) as f64 >= MODULES {
                return None;
            }
            let inner = LevelGraph::random(1 + (random(seed) >> 33) as usize % INNER_LEVELS, sources, seed);
            let is_map = match modules {
                Modules::Functions => false,
                Modules::Maps => true,
                Modules::Both => (random(seed) >> 40).is_multiple_of(2),
            };
            Some(if is_map { Module::Map(inner) } else { Module::Function(inner) })
        });
        ModularGraph { modules: modules.collect(), graph }
    }

    /// Returns the graph as a program in Weir: a `fn` for each module, and straight text.
    pub(crate) fn program(&self, sources: usize) -> String {
        let names: Vec<String> = (0..sources).map(|source| format!("source{source}")).collect();
        let mut text = format!("use {}, test, sink\n\n", names.join(", "));
        let mut body = String::new();
        for (index, (node, module)) in self.graph.0.iter().zip(&self.modules).enumerate() {
            let inputs: Vec<String> = node.inputs.iter().map(|input| format!("n{input}")).collect();
            let value = match module {
                None => asked(node.source, &sum(index, &inputs, "x")),
                Some(Module::Function(inner)) => {
                    let parameters: Vec<String> = (0..inputs.len().max(1)).map(|at| format!("a{at}")).collect();
                    _ = writeln!(
                        text,
                        "fn f{index}({}: Int) -> Int {{\n{}}}\n",
                        parameters.join(": Int, "),
                        lines(inner, &parameters)
                    );
                    let arguments = if inputs.is_empty() { vec!["x".to_owned()] } else { inputs };
                    format!("f{index}({})", arguments.join(", "))
                }
                Some(Module::Map(inner)) => {
                    _ = writeln!(text, "fn f{index}(a0: Int) -> Int {{\n{}}}\n", lines(inner, &["a0".to_owned()]));
                    let first = sum(index, &inputs, "x");
                    _ = writeln!(body, "  let s{index} = {first}");
                    let elements: Vec<String> = (0..ELEMENTS).map(|at| format!("s{index} + {at}")).collect();
                    _ = writeln!(body, "  let r{index} = for e in [{}] {{ f{index}(e) }}", elements.join(", "));
                    format!("fold t = 0 for r in r{index} {{ (t + r) % {MODULUS} }}")
                }
            };
            _ = writeln!(body, "  let n{index} = {value}");
        }
        let last = self.graph.0.len() - 1;
        format!("{text}for x in test.feed(0) {{\n{body}  sink.keep(n{last})\n}}\n")
    }

    /// Returns the graph with the nodes of each function in its place, and those of a map once for each element.
    pub(crate) fn flattened(&self) -> LevelGraph {
        let mut nodes: Vec<LevelNode> = Vec::new();
        let mut places: Vec<usize> = Vec::new();
        for (node, module) in self.graph.0.iter().zip(&self.modules) {
            let inputs: Vec<usize> = node.inputs.iter().map(|input| places[*input]).collect();
            let root = match module {
                None => {
                    nodes.push(LevelNode { source: node.source, inputs });
                    nodes.len() - 1
                }
                Some(Module::Function(inner)) => copied(inner, |leaf| nth(&inputs, leaf), &mut nodes),
                Some(Module::Map(inner)) => {
                    let roots = (0..ELEMENTS).map(|_| copied(inner, |_| inputs.clone(), &mut nodes)).collect();
                    nodes.push(LevelNode { source: None, inputs: roots });
                    nodes.len() - 1
                }
            };
            places.push(root);
        }
        LevelGraph(nodes)
    }
}

/// Returns the one input that a leaf of a function uses.
fn nth(inputs: &[usize], leaf: usize) -> Vec<usize> {
    inputs.get(leaf % inputs.len().max(1)).into_iter().copied().collect()
}

/// Adds the nodes of an inner graph, whose leaves get these inputs; returns the place of its root.
fn copied(inner: &LevelGraph, inputs_of_leaf: impl Fn(usize) -> Vec<usize>, nodes: &mut Vec<LevelNode>) -> usize {
    let first = nodes.len();
    for (index, node) in inner.0.iter().enumerate() {
        let inputs = match node.inputs.is_empty() {
            true => inputs_of_leaf(index),
            false => node.inputs.iter().map(|input| first + input).collect(),
        };
        nodes.push(LevelNode { source: node.source, inputs });
    }
    nodes.len() - 1
}

/// Returns the statements of the body of a function, whose leaves use one of the parameters each.
fn lines(inner: &LevelGraph, parameters: &[String]) -> String {
    let mut text = String::new();
    for (index, node) in inner.0.iter().enumerate() {
        let inputs: Vec<String> = node.inputs.iter().map(|input| format!("m{input}")).collect();
        let value = asked(node.source, &sum(index, &inputs, &parameters[index % parameters.len()]));
        _ = writeln!(text, "  let m{index} = {value}");
    }
    _ = writeln!(text, "  m{}", inner.0.len() - 1);
    text
}

fn sum(index: usize, inputs: &[String], otherwise: &str) -> String {
    let terms = if inputs.is_empty() { otherwise.to_owned() } else { inputs.join(" + ") };
    format!("({terms} + {index}) % {MODULUS}")
}

fn asked(source: Option<usize>, argument: &str) -> String {
    source.map_or_else(|| argument.to_owned(), |source| format!("source{source}.get({argument})"))
}
