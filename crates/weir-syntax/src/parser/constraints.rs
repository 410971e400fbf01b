//! Constraints: their declarations, and the resources that an `atomic` holds.

use super::Parser;
use crate::Span;
use crate::ast::{AtomicResource, Constraint, ConstraintBinding, ExprKind, Path};
use crate::token::TokenKind as T;

impl Parser<'_> {
    /// `constraint name [per session]? [on [[read]? path],+]?`
    pub(super) fn constraint(&mut self) -> Constraint {
        self.bump();
        let name = self.lower_name("a constraint name");
        let per_session = !self.at_new_line() && self.per_session();
        let mut bindings = Vec::new();
        if self.at_word("on") && !self.at_new_line() {
            self.bump();
            bindings.push(self.constraint_binding());
            while self.eat(T::Comma).is_some() {
                bindings.push(self.constraint_binding());
            }
        }
        Constraint { name, per_session, bindings }
    }

    fn constraint_binding(&mut self) -> ConstraintBinding {
        let start = self.span();
        if self.token().first_on_line && self.at_item() {
            // The next item, which is no name.
            self.unexpected("a function or a module");
            let (names, span) = (vec![self.missing_name()], self.previous_span().at_end());
            return ConstraintBinding { read: false, path: Path { names, span }, span };
        }
        let read = self.read_word().is_some();
        let path = self.path("a function or a module");
        ConstraintBinding { read, path, span: self.since(start) }
    }

    /// `atomic [[read]? path [per session]?],+ block`
    pub(super) fn atomic_kind(&mut self) -> ExprKind {
        self.bump();
        let mut resources = vec![self.atomic_resource()];
        while self.eat(T::Comma).is_some() {
            resources.push(self.atomic_resource());
        }
        ExprKind::Atomic { resources, body: self.block() }
    }

    fn atomic_resource(&mut self) -> AtomicResource {
        let start = self.span();
        let read = self.read_word();
        let path = self.path("a shared value or constraint");
        AtomicResource { read, path, per_session: self.per_session(), span: self.since(start) }
    }

    /// `[read]?`, if a name follows. In `read per session`, `read` is the name.
    fn read_word(&mut self) -> Option<Span> {
        let is_name = self.text_of(self.nth(1)) == "per" && self.text_of(self.nth(2)) == "session";
        (self.at_pair("read", T::Word) && !is_name).then(|| self.bump())
    }

    /// Returns true if `per session` comes next. No expression begins with it.
    pub(super) fn at_per_session(&self) -> bool {
        self.at_pair("per", T::Word) && self.text_of(self.nth(1)) == "session"
    }

    /// `[per session]?`
    pub(super) fn per_session(&mut self) -> bool {
        let per_session = self.eat_word("per").is_some();
        if per_session {
            self.expect_word("session");
        }
        per_session
    }
}
