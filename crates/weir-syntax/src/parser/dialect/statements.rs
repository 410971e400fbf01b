//! Dialect recovery for statements.

use super::super::BraceRole;
use super::{Parser, begins_operand};
use crate::ast::{Expr, ExprKind, Let, Name, Pattern, PatternKind, Statement, StatementKind, Type};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};

/// Words for `let` in other languages.
const LETS: &[&str] = &["auto", "const", "final", "val", "var"];

/// Words that begin a transaction in other languages.
const TRANSACTIONS: &[&str] = &["begin", "serializable", "transaction"];

/// Two words that do.
const TRANSACTION_PAIRS: &[(&str, &str)] = &[
    ("begin", "isolation"),
    ("begin", "transaction"),
    ("read", "committed"),
    ("repeatable", "read"),
    ("serializable", "transaction"),
    ("set", "transaction"),
    ("start", "transaction"),
];

/// Words that begin statements in other languages, with advice.
const BEFORE: &[(&str, &str)] = &[
    ("defer", "remove it: resources are released when the flow ends"),
    ("go", "remove it: independent calls overlap automatically, as far as the order of effects allows"),
    ("spawn", "remove it: independent calls overlap automatically, as far as the order of effects allows"),
    ("yield", "make the value the last expression of the block"),
];

impl Parser<'_> {
    /// Reads a statement of another language, if one comes next.
    pub(in crate::parser) fn dialect_statement(&mut self, start: Span) -> Option<Statement> {
        if !self.at(T::Word) {
            return None;
        }
        if let Some(binding) = self.dialect_let() {
            return Some(Statement { kind: StatementKind::Let(binding), span: self.since(start) });
        }
        if self.at_word_before(&["assert"], |kind| begins_operand(kind) || kind == T::Bang) {
            self.report_substitution(start, "expect");
            self.bump();
            let kind = StatementKind::Expect(self.expression());
            return Some(Statement { kind, span: self.since(start) });
        }
        let expr = self.dialect_repetition(start).or_else(|| self.dialect_failure(start));
        let expr = expr.or_else(|| self.dialect_transaction()).or_else(|| self.dialect_words(start))?;
        Some(Statement { kind: StatementKind::Expr(expr), span: self.since(start) })
    }

    /// Reads a `let` of another language: `var x = 1`, `x := 1`, `int x = 1`.
    fn dialect_let(&mut self) -> Option<Let> {
        let names = |kind: T| matches!(kind, T::Word | T::Underscore);
        let start = self.span();
        if self.at_word_before(LETS, names) && matches!(self.nth_kind(2), T::Equal | T::Colon) {
            self.report_substitution(start, "let");
            return Some(self.binding());
        }
        if let Some(binding) = self.result_and_error(start) {
            return Some(binding);
        }
        let assigns = |ahead: usize| self.nth_kind(ahead) == T::Equal;
        if self.nth_kind(1) == T::Colon && assigns(2) && self.adjacent(1) {
            let pattern = self.named_pattern();
            self.bump();
            self.bump();
            let weir_form = format!("let {} =", &self.text[pattern.span.range()]);
            self.report_rewrite(self.since(start), "values are bound with `let`", weir_form);
            return Some(self.let_behind_equals(pattern, None));
        }
        if self.nth_kind(1) == T::Word && assigns(2) && !self.nth(1).first_on_line {
            let ty = self.ty();
            let pattern = self.named_pattern();
            let weir_form = format!("let {}: {}", &self.text[pattern.span.range()], &self.text[ty.span.range()]);
            self.report_rewrite(self.since(start), "the name comes before its type", weir_form);
            self.bump();
            return Some(self.let_behind_equals(pattern, Some(ty)));
        }
        None
    }

    /// `value, err := call()`
    fn result_and_error(&mut self, start: Span) -> Option<Let> {
        let kinds = [T::Comma, T::Word, T::Colon, T::Equal];
        if !kinds.iter().zip(1..).all(|(kind, ahead)| self.nth_kind(ahead) == *kind) {
            return None;
        }
        let value = self.named_pattern();
        self.bump();
        let failure = self.named_pattern();
        self.bump();
        self.bump();
        let call = self.limited();
        let text = |span: Span| &self.text[span.range()];
        let (name, failed, call_text) = (text(value.span), text(failure.span), text(call.span));
        let weir_form = format!("let {name} = {call_text}?");
        let handled = format!("or handle the failure: `let {name} = {call_text} else as {failed} {{ … }}`");
        let diagnostic = Diagnostic::new(Code::DialectSyntax, "a fallible call returns a single value, a `Result`");
        let whole = self.since(start);
        let diagnostic =
            diagnostic.at(whole, "syntax of another language").fix(format!("write `{weir_form}`"), whole, weir_form);
        self.report(diagnostic.hint(handled));
        let pattern = self.pattern_node(start, PatternKind::Tuple(vec![value, failure]));
        let value = self.expr(call.span, ExprKind::Error);
        Some(Let { pattern, ty: None, value, otherwise: None })
    }

    fn named_pattern(&mut self) -> Pattern {
        let start = self.span();
        let name: Name = self.word();
        self.pattern_node(start, PatternKind::Bind(name))
    }

    fn let_behind_equals(&mut self, pattern: Pattern, ty: Option<Type>) -> Let {
        let value = self.limited();
        Let { pattern, ty, value, otherwise: self.otherwise() }
    }

    /// Reads `while` and `foreach`.
    fn dialect_repetition(&mut self, start: Span) -> Option<Expr> {
        let each = |kind: T| matches!(kind, T::Word | T::Underscore);
        if self.at_word_before(&["foreach"], each) || self.at_word_and_head("foreach") {
            self.report_substitution(start, "for");
            let kind = self.for_kind();
            return Some(self.expr(start, kind));
        }
        let condition = |kind: T| begins_operand(kind) || kind == T::Bang;
        if self.at_word_before(&["while"], condition) || self.at_word_and_head("while") {
            let advice = "use a loop with a state and a bound: `loop n = 0 { n + 1 } until n == 10 at most 100`";
            self.report_with_advice(start, "Weir has no `while`", advice);
            self.bump();
            let _condition = self.head();
            let _body = self.block();
            return Some(self.expr(start, ExprKind::Error));
        }
        None
    }

    /// `try { … } catch … { … }`
    fn dialect_failure(&mut self, start: Span) -> Option<Expr> {
        if !self.at_word_before(&["try"], |kind| kind == T::BraceOpen) {
            return None;
        }
        let advice = "handle the failure at the call: `call() else as failure { … }`";
        self.report_with_advice(start, "Weir has no `try`", advice);
        self.bump();
        let _tried = self.block();
        while self.at(T::Word) && ["catch", "except", "finally"].contains(&self.token_text()) {
            while !self.at(T::BraceOpen) && !self.ends_behind(0) {
                self.skip_token();
            }
            self.skip_token();
        }
        Some(self.expr(start, ExprKind::Error))
    }

    /// `transaction { … }`, `transaction orders { … }`, `begin transaction` or `serializable { … }`
    pub(in crate::parser) fn dialect_transaction(&mut self) -> Option<Expr> {
        if self.braces == BraceRole::Body {
            return None;
        }
        let start = self.span();
        let pair = (self.token_text(), self.text_of(self.nth(1)));
        let is_pair = self.at_pair(pair.0, T::Word) && TRANSACTION_PAIRS.contains(&pair);
        let is_word = self.at(T::Word) && TRANSACTIONS.contains(&self.token_text());
        let words = match (is_pair, is_word) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => return None,
        };
        let tokens = words + self.names_behind(words);
        let block = self.nth(tokens);
        let has_block = block.kind == T::BraceOpen && !block.first_on_line;
        if !has_block && !is_pair {
            return None;
        }
        let advice = "name the tables that the transaction writes: `atomic users, orders { … }`";
        let span = Span { end: self.nth(words - 1).end, ..start };
        let said = self.text[span.range()].to_owned();
        self.report_with_advice(span, &format!("Weir has no `{said}`"), advice);
        // Behind the words follow the names of tables, or those of an isolation level.
        let is_whole_line = has_block || block.first_on_line;
        (0..if is_whole_line { tokens } else { words }).for_each(|_| _ = self.bump());
        if has_block {
            let _body = self.block();
        }
        Some(self.expr(start, ExprKind::Error))
    }

    /// Returns the number of tokens of a list of names, such as `users, shop.orders`, on this line behind `ahead` tokens.
    fn names_behind(&self, ahead: usize) -> usize {
        const TOKENS_MAX: usize = 64;
        let is_part = |place: usize| {
            let token = self.nth(place);
            let is_part = token.kind == T::Word || (place > ahead && matches!(token.kind, T::Comma | T::Dot));
            is_part && !token.first_on_line
        };
        (ahead..TOKENS_MAX).take_while(|place| is_part(*place)).count()
    }

    /// Reports a keyword that Weir does not have, and reads and drops the expression after it.
    fn dialect_words(&mut self, start: Span) -> Option<Expr> {
        if self.at_word_before(&["raise", "throw"], begins_operand) {
            self.bump();
            if self.at_word_before(&["new"], |kind| kind == T::Word) {
                self.bump();
            }
            let why = self.expression();
            // In other languages an exception wraps its message; in Weir the message is enough.
            let said = match &why.kind {
                ExprKind::Call { arguments, .. } if arguments.len() == 1 => arguments[0].span,
                _ => why.span,
            };
            let weir_form = format!("fail({})", &self.text[said.range()]);
            self.report_rewrite(self.since(start), "use `fail` to fail a flow", weir_form);
            return Some(self.expr(start, ExprKind::Error));
        }
        let (word, advice) = BEFORE.iter().find(|(word, _)| self.at_word_before(&[word], begins_operand))?;
        self.report_with_advice(start, &format!("Weir has no `{word}`"), advice);
        self.bump();
        let _what = self.expression();
        Some(self.expr(start, ExprKind::Error))
    }

    /// Drops `mut` after `let`.
    pub(in crate::parser) fn mutable(&mut self) {
        if self.at_word_before(&["mut"], |kind| matches!(kind, T::Word | T::ParenOpen)) {
            self.report_superfluous(1, "values never change; a second `let` of the same name shadows the first");
        }
    }

    /// Consumes the `=` of a binding, or a symbol that stands for it.
    pub(in crate::parser) fn equals_of_binding(&mut self) -> bool {
        if self.at(T::EqualEqual) && !self.at_new_line() {
            self.report_substitution(self.span(), "=");
            self.bump();
            return true;
        }
        self.expect(T::Equal, "`=`").is_some()
    }

    /// Consumes the `in` of a `for`, or a word that stands for it.
    pub(in crate::parser) fn in_of_for(&mut self) {
        if self.at_word_before(&["of"], begins_operand) || (self.at(T::Colon) && begins_operand(self.nth_kind(1))) {
            self.report_substitution(self.span(), "in");
            self.bump();
            return;
        }
        self.expect(T::In, "`in`");
    }

    /// Reads `for (let i = 0; i < 10; i++) { … }`, after its `for`.
    pub(in crate::parser) fn counting_for(&mut self, start: Span) -> Option<ExprKind> {
        let counts = self.at(T::ParenOpen)
            && (self.nth_kind(1) == T::Let || [2, 3].map(|ahead| self.nth_kind(ahead)).contains(&T::Equal));
        if !counts {
            return None;
        }
        self.skip_token();
        let span = self.since(start);
        let advice = "iterate over numbers: `for i in list.numbers(0, 10)? { … }`";
        self.report_with_advice(span, "a `for` iterates over a list", advice);
        let _body = self.block();
        Some(ExprKind::Error)
    }

    /// Reports and consumes `++`, `--` and `+=` after an operand. Returns false if there is none.
    pub(in crate::parser) fn changing_operator(&mut self, target: Span) -> bool {
        let arithmetic = matches!(self.peek(), T::Plus | T::Minus | T::Star | T::Slash | T::Percent);
        if !arithmetic || self.at_new_line() || !self.adjacent(0) {
            return false;
        }
        let doubled =
            self.nth_kind(1) == self.peek() && self.ends_behind(1) && matches!(self.peek(), T::Plus | T::Minus);
        if !doubled && self.nth_kind(1) != T::Equal {
            return false;
        }
        let sign = self.token_text();
        let name = &self.text[target.range()];
        let weir_form = if doubled { format!("{name} {sign} 1") } else { format!("{name} {sign} …") };
        let operator = self.bump();
        let operator = Span { end: self.bump().end, ..operator };
        let diagnostic = Diagnostic::new(Code::Assignment, "a value cannot be changed")
            .at(operator, "this would change a value")
            .because(target, "values are immutable");
        let is_path = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        let field = name.rsplit_once('.').filter(|_| is_path);
        let row = self.change_of_row(name);
        let diagnostic = match (self.is_declared_shared(name), field) {
            _ if row.is_some() => row.into_iter().fold(diagnostic, Diagnostic::hint),
            (true, _) => self.change_of_shared(diagnostic, name),
            (false, Some((object, field))) => {
                diagnostic.hint(format!("create a new record: `Name {{ ..{object}, {field}: {weir_form} }}`"))
            }
            (false, None) => diagnostic
                .hint(format!("bind the new value to a name: `let next = {weir_form}`"))
                .hint("use `fold` if it depends on the previous value")
                .hint(format!("declare it `shared` if all flows change it: `{name}.add(…)`")),
        };
        self.report(diagnostic);
        if !doubled {
            let _amount = self.expression();
        }
        true
    }
}
