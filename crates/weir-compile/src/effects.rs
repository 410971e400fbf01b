//! Effect inference: the resources that a `fn` reads or writes, itself and through the `fn`s that it calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use weir_host::{Mode, Resource, Signature, Text, World};

/// The effects of a `fn` or a flow, including those of every `fn` that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectSummary {
    /// The resources that it touches, and whether it writes them.
    pub resources: BTreeMap<Resource, Mode>,
    /// True if a call in it may wait.
    pub waits: bool,
}

impl EffectSummary {
    /// Returns whether there are no effects: nothing is touched, and nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && !self.waits
    }

    /// Adds access to a resource. The strongest mode wins.
    pub(crate) fn touch(&mut self, resource: Resource, mode: Mode) {
        let known = self.resources.entry(resource).or_insert(mode);
        *known = (*known).max(mode);
    }

    /// Adds the effects of calling a host function, except those on its arguments. `site` names the call.
    pub(crate) fn call(&mut self, signature: &Signature, site: &str) {
        match signature.effects.world {
            World::Pure => {}
            World::Reads => self.touch(Resource::World(signature.module.clone()), Mode::Read),
            World::Writes => self.touch(Resource::World(signature.module.clone()), Mode::Write),
        }
        if signature.state.is_some() {
            self.touch(Resource::State(Text::from(site)), Mode::Write);
        }
        self.waits |= signature.effects.waits || signature.effects.blocking;
    }

    /// Adds all effects of `other`.
    pub(crate) fn join(&mut self, other: &EffectSummary) {
        for (resource, mode) in &other.resources {
            self.touch(resource.clone(), *mode);
        }
        self.waits |= other.waits;
    }
}

/// A line for people: ``changes `thumbnails`, reads the world outside by `files` ``.
impl fmt::Display for EffectSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.resources.is_empty() {
            return f.write_str("touches nothing");
        }
        for (at, (resource, mode)) in self.resources.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let verb = if *mode == Mode::Read { "reads" } else { "changes" };
            write!(f, "{comma}{verb} ")?;
            match resource {
                Resource::Shared(name) | Resource::Constraint(name) => write!(f, "`{name}`")?,
                Resource::World(module) => write!(f, "the world outside by `{module}`")?,
                Resource::State(site) => write!(f, "the state of `{}`", site.split('@').next().unwrap_or(site))?,
            }
        }
        Ok(())
    }
}

/// The direct effects of a body, and the `fn`s that it calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyEffects {
    pub(crate) own: EffectSummary,
    /// The names of the `fn`s.
    pub(crate) callees: BTreeSet<Arc<str>>,
}

/// Returns the transitive effects of each `fn`, given its own and its callees. A recursive call, which is reported elsewhere,
/// adds nothing.
pub(crate) fn close(own: &[&EffectSummary], callees: &[BTreeSet<usize>]) -> Vec<EffectSummary> {
    let mut closed: Vec<Option<EffectSummary>> = vec![None; own.len()];
    for at in 0..own.len() {
        close_one(at, own, callees, &mut closed);
    }
    closed.into_iter().map(Option::unwrap_or_default).collect()
}

/// Visits the callees first. The stack is explicit because a call chain may be as long as the program.
fn close_one(at: usize, own: &[&EffectSummary], callees: &[BTreeSet<usize>], closed: &mut [Option<EffectSummary>]) {
    let mut stack = vec![(at, false)];
    let mut begun = BTreeSet::new();
    while let Some((at, callees_done)) = stack.pop() {
        if closed[at].is_some() {
            continue;
        }
        if callees_done {
            let mut effects = own[at].clone();
            for callee in &callees[at] {
                if let Some(Some(known)) = closed.get(*callee) {
                    effects.join(&known.clone());
                }
            }
            closed[at] = Some(effects);
        } else if begun.insert(at) {
            stack.push((at, true));
            stack.extend(callees[at].iter().map(|callee| (*callee, false)));
        }
    }
}
