//! The shared values that a transaction restores if it is taken back: those that are no tables, and that it changes.
//!
//! Its step holds them exclusively, and the constraint of the database of its tables, by which the store tells whoever ends the step
//! whether the transaction has committed (`StepEnd::has_completed`). If all are kept in memory, that is the program's own database. Its
//! commit is one that nothing takes back behind the step.
//!
//! A value that cannot be cloned cannot be restored, and neither can one that steps hold per session, because other sessions change
//! it meanwhile. A transaction that changes such a value is reported.

use weir_host::{Mode, Passing, Resource, Text, Type, Value};
use weir_ir::expr::{Atom, Block, Call, Constraint, Op, Origin};
use weir_syntax::{Code, Diagnostic};

use super::Lowering;
use super::databases::database;
use crate::lang_items::{BEGIN, COMMIT, TABLES};

/// A call that changes a shared value.
#[derive(Clone, Copy)]
struct ValueChange {
    at: Origin,
    has_result: bool,
}

impl Lowering<'_, '_> {
    /// Returns the shared values that a transaction with this body restores, and the constraints that it holds therefore. `stores` is
    /// true if it holds the constraint of a database anyway: then all that it uses is held before that.
    pub(super) fn restored_in(&mut self, body: &mut Block, stores: bool) -> (Vec<Constraint>, Vec<Text>) {
        let mut restored: Vec<Text> = Vec::new();
        for (name, change) in self.changed_values(body) {
            if self.can_be_restored(&name, change) && !restored.contains(&name) {
                restored.push(name);
            }
        }
        restored.sort();
        if restored.is_empty() {
            return (Vec::new(), restored);
        }
        begin_restoring(body);
        let held = restored.iter().map(|name| self.scoped(Resource::Shared(name.clone()), Mode::Write));
        let constraints = if stores { Vec::new() } else { held.chain([database(TABLES.into())]).collect() };
        (constraints, restored)
    }

    /// Returns the shared values that are no tables and that a block changes, with each change.
    fn changed_values(&self, body: &Block) -> Vec<(Text, ValueChange)> {
        let mut changed = Vec::new();
        body.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let Some(function) = self.context.library.function(&call.function) else { return };
            for (atom, parameter) in call.arguments.iter().zip(&function.signature.parameters) {
                if let Atom::Shared(name) = atom
                    && parameter.passing == Passing::Change
                    && !self.program.declarations.tables.contains_key(name.as_str())
                {
                    let change = ValueChange { at: binding.origin, has_result: binding.bound.ty != Type::Unit };
                    changed.push((name.clone(), change));
                }
            }
        });
        changed
    }

    /// Returns whether a shared value can be restored; otherwise reports that the transaction changes it.
    fn can_be_restored(&mut self, name: &Text, ValueChange { at, has_result }: ValueChange) -> bool {
        let Some(shared) = self.program.declarations.shared.get(name.as_str()) else { return false };
        let is_part = self.program.per_session.contains(name.as_str()) && !shared.per_session;
        let is_opaque = self.is_move_only(&shared.ty.to_type());
        if !is_part && !is_opaque {
            return true;
        }
        let span = self.context.span(at);
        let name = self.context.name_at(name, span);
        let message = format!("the transaction changes `{name}`, which could not be taken back");
        // Nobody would take a call such as `get` of a cache for a change.
        let is_read = is_opaque && has_result;
        let changes = if is_read { "counts as a change of" } else { "changes" };
        let why = match is_opaque {
            true => "cannot be copied",
            false => "is held per session, so that other sessions change it meanwhile",
        };
        let label = format!("{changes} `{name}`, which {why}");
        let hint = match is_read {
            true => "call it before the `atomic` if the transaction needs its result, and behind it otherwise",
            false => "change it behind the `atomic`",
        };
        let diagnostic = Diagnostic::new(Code::TransactionBody, message).at(span, label).hint(hint);
        self.context.report_once(diagnostic);
        false
    }
}

/// Tells the transaction of a block that its step restores shared values, and the commit that decides that nothing takes it back: that
/// of the last stored table, or of any one in memory, which does not fail.
fn begin_restoring(body: &mut Block) {
    let yes = Atom::Value(Value::Bool(true));
    let is_last = |call: &Call| call.arguments.last() == Some(&yes);
    let mut stores = false;
    body.each_binding(&mut |binding| {
        stores |= matches!(&binding.op, Op::Call(call) if is_commit(call) && is_last(call))
    });
    body.each_binding_mut(&mut |binding| {
        let Op::Call(call) = &mut binding.op else { return };
        if call.function == Text::from(BEGIN) {
            call.arguments[1] = yes.clone();
        } else if is_commit(call) && (!stores || is_last(call)) {
            call.arguments[2] = yes.clone();
        }
    });
}

fn is_commit(call: &Call) -> bool {
    call.function == Text::from(COMMIT)
}
