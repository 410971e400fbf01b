//! The setting of one run: a random plan, and changes of thread counts.

use std::fmt;
use std::time::Duration;

use weir_ir::generate::{Case, Random, Recording};
use weir_ir::graph::Node;
use weir_ir::plan::{Plan, is_stateless};
use weir_runtime::{ENGINES, ThreadCountPolicy};

/// Keeps the seeds of settings apart from those of programs.
const SALT: u64 = 0x5e77_1495;
/// Maximal number of sections in a plan.
const SECTIONS_MAX: usize = 5;
/// Maximal number of threads of an engine or a section.
const THREADS_MAX: usize = 4;

/// A setting.
pub(crate) struct Setting {
    /// Text of the plan.
    text: String,
    pub(crate) plan: Plan,
    pub(crate) thread_counts: ThreadCountPolicy,
    /// Waiting behaviour of the functions.
    pub(crate) seed: u64,
}

impl Setting {
    /// Returns the setting of a seed for this case.
    pub(crate) fn random(case: &Case, seed: u64) -> Setting {
        let mut random = Random::new(seed ^ SALT);
        let text = plan(case, &mut random);
        let (plan, problems) = Plan::parse(&text);
        assert_eq!(problems, [], "{text}");
        let period = Duration::from_micros(100 + 100 * random.below(30) as u64);
        let thread_counts = match random.chance(80) {
            true => ThreadCountPolicy::Random { seed: random.number(), period },
            false => ThreadCountPolicy::AsPlanned,
        };
        Setting { text, plan, thread_counts, seed }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(threads: {:?})", self.text, self.thread_counts)
    }
}

/// Generates a plan that divides the flow at random; a node goes into any section, so flows re-enter most of them.
fn plan(case: &Case, random: &mut Random) -> String {
    let engine = random.pick(ENGINES);
    let (threads, flows, queue) = (1 + random.below(THREADS_MAX), 1 + random.below(40), 1 + random.below(5));
    let mut text =
        format!("engine = {:?}\nthreads = {threads}\nflows_max = {flows}\nqueue_length_max = {queue}\n", engine.name);
    if !engine.has_sections() {
        return text;
    }
    let graph = weir_ir::optimize(&case.program, &Recording::new(0).library());
    let mut sections: Vec<Vec<&Node>> = vec![Vec::new(); 1 + random.below(SECTIONS_MAX)];
    for node in &graph.entries[0].flows[0].body.nodes {
        let section = random.below(sections.len() + 1);
        sections.get_mut(section).into_iter().for_each(|section| section.push(node));
    }
    let named = sections.iter().enumerate().filter(|(_, nodes)| !nodes.is_empty());
    named.for_each(|(index, nodes)| text += &section(index, nodes, random));
    text
}

fn section(index: usize, nodes: &[&Node], random: &mut Random) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("{:?}", node.name.as_str())).collect();
    let mut text = format!("[[section]]\nname = \"s{index}\"\nnodes = [{}]\n", names.join(", "));
    if random.chance(60) {
        let engines: Vec<&str> = ENGINES.iter().filter(|row| row.has_sections()).map(|row| row.name).collect();
        text += &format!("engine = {:?}\n", random.pick(&engines));
    }
    if random.chance(60) {
        text += &format!("threads = {}\n", 1 + random.below(THREADS_MAX));
    }
    if random.chance(60) {
        text += &format!("queue_length_max = {}\n", 1 + random.below(4));
    }
    if random.chance(60) && nodes.iter().all(|node| is_stateless(node)) {
        text += &format!("replicas = {}\n", 1 + random.below(5));
    }
    text
}
