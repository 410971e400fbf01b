//! Services, their routes, and failure handlers.

use super::Parser;
use crate::ast::{
    Before, FailureHandler, Method, Name, Parameter, ParameterLocation, PathPart, Route, RouteParameter, RoutePath,
    Service, ServiceMember, ServiceMemberKind, Session,
};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic, Span};
use std::sync::Arc;

impl Parser<'_> {
    /// `service name on name [( argument,* )]? { member* }`
    pub(super) fn service(&mut self) -> Service {
        self.bump();
        let name = self.lower_name("a service name");
        let transport = if self.served_on_nothing() {
            self.missing_name()
        } else {
            self.expect_word("on");
            self.lower_name("a transport module, such as `http`")
        };
        let arguments = if self.at(T::ParenOpen) { self.arguments() } else { Vec::new() };
        let open = self.span();
        let members = self.braces_of(Self::member);
        let members: Vec<_> = members.into_iter().flatten().collect();
        self.check_sessions(&members);
        Service { name, transport, arguments, members, braces: self.since(open) }
    }

    fn check_sessions(&mut self, members: &[ServiceMember]) {
        let sessions: Vec<Span> = members.iter().filter_map(session_span).collect();
        for second in sessions.iter().skip(1) {
            self.repeated_session(sessions[0], *second);
        }
    }

    pub(super) fn repeated_session(&mut self, first: Span, second: Span) {
        self.report(
            Diagnostic::new(Code::RepeatedSession, "duplicate session")
                .at(second, "second session")
                .because(first, "first session")
                .suggest("remove one of them", second, ""),
        );
    }

    /// `docs [session | on failure | before | route]`
    fn member(&mut self) -> Option<ServiceMember> {
        let docs = self.docs();
        let start = self.span();
        let kind = if self.at_session() {
            ServiceMemberKind::Session(self.session())
        } else if self.at_handler() {
            ServiceMemberKind::FailureHandler(self.failure_handler())
        } else if self.at_before() {
            ServiceMemberKind::Before(self.before())
        } else if let Some(method) = self.method() {
            ServiceMemberKind::Route(self.route(method))
        } else {
            self.release_docs(&docs);
            self.unexpected("a route, such as `get \"/\" () { … }`");
            self.skip_to_member();
            return None;
        };
        Some(ServiceMember { docs, kind, span: self.since(start) })
    }

    fn skip_to_member(&mut self) {
        while !self.peek().is_closing() && !self.at(T::End) {
            self.skip_token();
            let begins = self.at_session() || self.at_handler() || self.at_before() || self.method().is_some();
            if self.token().first_on_line && begins {
                break;
            }
        }
    }

    pub(super) fn at_session(&self) -> bool {
        self.at_word("session") && self.nth_kind(1) == T::Equal
    }

    /// `session = expression`
    pub(super) fn session(&mut self) -> Session {
        let start = self.bump();
        self.bump();
        let value = self.expression();
        Session { value, span: self.since(start) }
    }

    pub(super) fn at_handler(&self) -> bool {
        self.at_pair("on", T::Word) && self.text_of(self.nth(1)) == "failure"
    }

    /// `on failure of path [( pattern,* )]? [as name]? block`
    pub(super) fn failure_handler(&mut self) -> FailureHandler {
        let start = self.bump();
        self.bump();
        self.expect_word("of");
        let function = self.path("a function");
        let arguments = self.delimited(T::ParenOpen, Self::pattern);
        let failure = self.failure_name();
        let body = self.block();
        FailureHandler { function, arguments, failure, body, span: self.since(start) }
    }

    /// `[as name]?`
    pub(super) fn failure_name(&mut self) -> Option<Name> {
        self.eat(T::As).map(|_| self.lower_name("a name for the failure"))
    }

    fn at_before(&self) -> bool {
        self.at_word("before") && matches!(self.nth_kind(1), T::ParenOpen | T::BraceOpen)
    }

    /// `before [( [[body | form | header | cookie | …]? parameter],* )]? block`
    fn before(&mut self) -> Before {
        let start = self.bump();
        let path = RoutePath { parts: Vec::new(), span: start };
        let parameters =
            if self.at(T::BraceOpen) { Vec::new() } else { self.parameters(|parser| parser.route_parameter(&path)) };
        let body = self.body();
        Before { parameters, body, span: self.since(start) }
    }

    /// Reports a method in upper case.
    fn method_case(&mut self) {
        let word = self.token_text();
        if Method::from_word(word).is_none() {
            let weir_form = word.to_lowercase();
            let diagnostic = crate::dialect::substitution(self.span(), word, &weir_form);
            self.report(diagnostic);
        }
    }

    fn method(&self) -> Option<Method> {
        let word = self.token_text();
        let method = Method::from_word(word).or_else(|| Method::from_word(&word.to_lowercase()))?;
        let in_parentheses = self.nth_kind(1) == T::ParenOpen && self.nth_kind(2).opens_text();
        (self.at(T::Word) && (self.nth_kind(1).opens_text() || in_parentheses)).then_some(method)
    }

    /// `[get | post | …] text ( [[body | form | header | cookie | …]? parameter],* ) { [session = expression]? statement* }`
    fn route(&mut self, method: Method) -> Route {
        self.method_case();
        let method_span = self.bump();
        let open = self.path_in_parentheses();
        let path = self.route_path();
        if let Some(open) = open {
            self.end_of_parentheses(open, &path);
        }
        self.word_before_body();
        let parameters =
            if self.at(T::BraceOpen) { Vec::new() } else { self.parameters(|parser| parser.route_parameter(&path)) };
        self.check_declared(&path, &parameters);
        let (session, body) = self.flow_body();
        Route { method, method_span, path, parameters, session, body }
    }

    fn route_parameter(&mut self, path: &RoutePath) -> RouteParameter {
        let marked = ParameterLocation::MARKED.into_iter().find(|(mark, _)| self.at_word(mark));
        let marked = marked.filter(|_| self.nth_kind(1) == T::Word || self.nth_kind(1).is_reserved());
        if marked.is_some() {
            self.bump();
        }
        let parameter = self.parameter();
        let in_path = path.names().any(|name| name.text == parameter.name.text);
        let place = match (marked, in_path) {
            (Some((_, place)), _) => place,
            (None, true) => ParameterLocation::Path,
            (None, false) => ParameterLocation::Query,
        };
        RouteParameter { place, parameter }
    }

    /// `" [characters | { name } | { name .. }]* "`
    fn route_path(&mut self) -> RoutePath {
        let start = self.span();
        self.bump();
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                T::TextPiece => parts.push(self.path_literal()),
                T::InterpolationOpen => parts.extend(self.path_parameter()),
                _ => break,
            }
        }
        self.eat(T::TextClose);
        let path = RoutePath { parts, span: self.since(start) };
        self.dialect_path_parameters(&path);
        self.check_path(&path);
        path
    }

    fn path_literal(&mut self) -> PathPart {
        let span = self.bump();
        let mut value = String::new();
        self.unescape(span, &mut value);
        PathPart::Literal(Arc::from(value))
    }

    fn path_parameter(&mut self) -> Option<PathPart> {
        let start = self.bump();
        let name = self.at(T::Word).then(|| self.word());
        let rest = self.eat(T::DotDot).is_some();
        let whole = self.at(T::InterpolationClose);
        while !matches!(self.peek(), T::InterpolationClose | T::End) {
            self.skip_token();
        }
        self.eat(T::InterpolationClose);
        match name.filter(|_| whole) {
            Some(name) if rest => Some(PathPart::Rest(name)),
            Some(name) => Some(PathPart::Parameter(name)),
            None => {
                let span = self.since(start);
                self.invalid_path(span, "a path parameter must be a single name", "expected `{name}` or `{name..}`");
                None
            }
        }
    }

    fn check_path(&mut self, path: &RoutePath) {
        let begins = matches!(path.parts.first(), Some(PathPart::Literal(text)) if text.starts_with('/'));
        if !begins {
            self.invalid_path(path.span, "a path must begin with `/`", "missing `/`");
        }
        let has_query = |part: &PathPart| matches!(part, PathPart::Literal(text) if text.contains(['?', '#']));
        if path.parts.iter().any(has_query) {
            let label = "declare parameters of the query behind it: `(page: Int = 1)`";
            self.invalid_path(path.span, "a path has no query and no fragment", label);
        }
        let names: Vec<Name> = path.names().cloned().collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].iter().any(|earlier| earlier.text == name.text) {
                self.invalid_path(name.span, "duplicate path parameter", "second occurrence");
            }
        }
        if let Some(name) = second_in_segment(path) {
            let label = "second parameter between two `/`";
            self.invalid_path(name.span, "each part of a path between two `/` holds one parameter", label);
        }
        let not_last = path.parts.iter().rev().skip(1).find_map(|part| match part {
            PathPart::Rest(name) => Some(name.span),
            _ => None,
        });
        if let Some(span) = not_last {
            self.invalid_path(span, "`{name..}` must be the last part of a path", "not the last part");
        }
    }

    fn check_declared(&mut self, path: &RoutePath, parameters: &[RouteParameter]) {
        let declared = |name: &Name| parameters.iter().any(|parameter| declares(&parameter.parameter, name));
        let missing: Vec<&Name> = path.names().filter(|name| !declared(name)).collect();
        for name in missing {
            self.report(
                Diagnostic::new(Code::InvalidRoutePath, format!("path parameter `{name}` is not declared"))
                    .at(name.span, "used here")
                    .hint(format!("declare it after the path: `({name}: Text)`")),
            );
        }
    }

    fn invalid_path(&mut self, span: Span, message: &str, label: &str) {
        self.report(Diagnostic::new(Code::InvalidRoutePath, message).at(span, label));
    }
}

/// Returns the first parameter of a path that is not the only one between two `/`.
fn second_in_segment(path: &RoutePath) -> Option<&Name> {
    let mut is_second = false;
    path.parts.iter().find_map(|part| match part {
        PathPart::Literal(text) => {
            is_second &= !text.contains('/');
            None
        }
        PathPart::Parameter(name) | PathPart::Rest(name) => std::mem::replace(&mut is_second, true).then_some(name),
    })
}

fn declares(parameter: &Parameter, name: &Name) -> bool {
    parameter.name.text == name.text
}

fn session_span(member: &ServiceMember) -> Option<Span> {
    match &member.kind {
        ServiceMemberKind::Session(session) => Some(session.span),
        _ => None,
    }
}
