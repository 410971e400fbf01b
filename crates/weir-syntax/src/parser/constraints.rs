//! Constraints: their declarations, and the resources that an `atomic` holds.

use super::Parser;
use crate::ast::{AtomicResource, Constraint, ConstraintBinding, ExprKind, Name, Path};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// `constraint name [per session]? [on [[read]? path],+]?`
    pub(super) fn constraint(&mut self) -> Constraint {
        self.bump();
        let name = self.lower_name("a constraint name");
        let mut per_session = !self.at_new_line() && self.at_word("per") && self.per_session();
        let mut bindings = Vec::new();
        let binds = self.at_word("on") || self.binds_without_on(&name);
        if binds && !self.at_new_line() {
            self.eat_word("on");
            bindings.push(self.constraint_binding());
            while self.eat(T::Comma).is_some() {
                bindings.push(self.constraint_binding());
            }
            per_session |= self.late_per_session(per_session, &name, &bindings);
        }
        self.no_constraint(&name);
        Constraint { name, per_session, bindings }
    }

    /// Reports functions behind the name without `on`: `constraint ledger billing.post`. Returns true if there are any.
    fn binds_without_on(&mut self, name: &Name) -> bool {
        let is_reported = self.reported_at == Some(self.at);
        if self.at_new_line() || !self.at(T::Word) || name.is_missing() || is_reported {
            return false;
        }
        self.report(
            Diagnostic::new(Code::UnexpectedToken, "expected `on` before the functions of a constraint")
                .at(self.span(), "a function or a module")
                .fix(format!("write `constraint {name} on …`"), self.span().at_start(), "on "),
        );
        true
    }

    /// Reports `per session` behind the functions. Returns true if it is there.
    fn late_per_session(&mut self, is_known: bool, name: &Name, bindings: &[ConstraintBinding]) -> bool {
        let Some(first) = bindings.first().filter(|_| !is_known && !self.at_new_line() && self.at_per_session()) else {
            return false;
        };
        let start = self.span();
        self.per_session();
        self.report(
            Diagnostic::new(Code::UnexpectedToken, "`per session` stands before `on`")
                .at(self.since(start), "behind the functions")
                .hint(format!("write `constraint {name} per session on {}`", first.path)),
        );
        true
    }

    /// Reports what other languages or other declarations have behind the name, and skips the line.
    fn no_constraint(&mut self, name: &Name) {
        if self.at_new_line() || self.at(T::End) || name.is_missing() {
            return;
        }
        let (message, label, hint) = match self.peek() {
            T::Comma => ("one declaration declares one constraint", "another one", "declare each on a line of its own"),
            T::Equal | T::Colon => (
                "a constraint has no value and no type",
                "not part of a constraint",
                "it is a name that steps hold: `constraint ledger`; a value that flows share is declared with `shared`",
            ),
            T::ParenOpen => (
                "a constraint has no arguments",
                "not part of a constraint",
                "name the functions that hold it without parentheses: `constraint ledger on billing.post`",
            ),
            _ => return,
        };
        self.report(Diagnostic::new(Code::UnexpectedToken, message).at(self.span(), label).hint(hint));
        self.skip_statement();
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
        let parenthesis = self.eat(T::ParenOpen);
        let mut resources = vec![self.atomic_resource()];
        while self.eat(T::Comma).is_some() {
            resources.push(self.atomic_resource());
        }
        if let Some(open) = parenthesis {
            self.parentheses_of_atomic(open);
        }
        ExprKind::Atomic { resources, body: self.block() }
    }

    /// Reports the parentheses around the resources of a step, which have been read.
    fn parentheses_of_atomic(&mut self, open: Span) {
        let inside = Span { start: open.end, end: self.previous_span().end, ..open };
        if self.expect(T::ParenClose, "`)`").is_none() {
            return;
        }
        let names = self.text[inside.range()].trim();
        let weir_form = match self.text[..open.start as usize].ends_with(char::is_whitespace) {
            true => names.to_owned(),
            false => format!(" {names}"),
        };
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "the names behind `atomic` have no parentheses")
            .at(self.since(open), "syntax of another language")
            .fix(format!("write `atomic {names}`"), self.since(open), weir_form);
        self.report(diagnostic);
    }

    fn atomic_resource(&mut self) -> AtomicResource {
        let start = self.span();
        let read = self.read_word();
        let is_block = self.at(T::BraceOpen);
        let before = self.diagnostics.len();
        let path = self.path("a table, shared value or constraint");
        if is_block && let Some(last) = self.diagnostics.get_mut(before) {
            *last = last.clone().hint(
                "name what the step holds, such as the tables that a transaction writes: `atomic users, orders { … }`",
            );
        }
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
