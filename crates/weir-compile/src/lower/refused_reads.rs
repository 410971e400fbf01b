//! Reads in transactions on the tables of an existing database, which PostgreSQL may refuse because other programs are in the way: the
//! step then fails as it does if its commit is refused.
//!
//! The read keeps its failure ([`Call::keeps_failure`]). One of the kind `conflict` leaves the step, if there is a `fn` or `retry` around
//! it that can fail with it; every other failure ends the flow, as that of any read.

use weir_host::{FailureKind, Passing, Signature, Type, Value};
use weir_ir::expr::{Atom, Call, Op};
use weir_syntax::Span;

use super::branch::FallibleValue;
use super::{Lowering, Transaction};

impl Lowering<'_, '_> {
    /// Emits a call of the module `tables` in the transaction of the step with this index.
    pub(super) fn call_in_transaction(
        &mut self,
        call: Call,
        (step, transaction): (usize, &Transaction),
        (signature, ty): (&Signature, Type),
        span: Span,
    ) -> Atom {
        let around = self.steps[step].frame_count;
        let may_be_refused = signature.effects.may_end
            && signature.parameters.first().is_some_and(|table| table.passing == Passing::Borrow)
            && matches!(call.arguments.first(), Some(Atom::Shared(table)) if self.is_beside(table, transaction));
        if !may_be_refused || !self.is_of_existing(transaction) || self.frame_that_fails(around).is_none() {
            return self.emit(Op::Call(call), ty, span);
        }
        let of = Call::result(true, ty.clone());
        let subject = self.emit(Op::Call(Call { keeps_failure: true, ..call }), of.clone(), span);
        self.match_fallible(FallibleValue { subject, of }, &ty, span, |lowering, failure| {
            let failure = failure.unwrap_or(Atom::Value(Value::Unit));
            lowering.step_failed_by(&[FailureKind::Conflict], around, failure, (&ty, span))
        })
    }
}
