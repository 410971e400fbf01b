//! Random files and items.

use super::{Generator, name, nowhere};
use std::sync::Arc;
use weir_syntax::ast::{
    Before, Config, Constraint, ConstraintBinding, Entry, Enum, ExternalName, FailureHandler, FieldDeclaration,
    Function, Item, ItemKind, LibraryFolder, Method, NamedConstant, Parameter, ParameterLocation, PathPart,
    PayloadField, Record, Route, RouteParameter, RoutePath, Service, ServiceMember, ServiceMemberKind, Session, Shared,
    Test, Tree, TypeAlias, Use, UsedModule, Variant,
};

/// Maximum depth of the expressions of a generated program.
const DEPTH: usize = 4;

impl Generator {
    /// Generates a whole program.
    pub fn tree(&mut self) -> Tree {
        let docs = self.docs();
        let items = self.several(1, 5, Self::item);
        Tree { docs, items: items.into_iter().map(Arc::new).collect(), span: nowhere(), node_counts: Vec::new() }
    }

    fn item(&mut self) -> Item {
        let docs = self.docs();
        let kind = match self.below(15) {
            10 => ItemKind::Table(self.table()),
            0 => ItemKind::Use(Use { modules: self.several(1, 3, Self::used_module) }),
            1 => ItemKind::Shared(Shared {
                name: self.lower(),
                ty: self.some(30, |generator| generator.ty(2)),
                value: self.expr(DEPTH),
                per_session: self.chance(30),
            }),
            2 => ItemKind::Constraint(Constraint {
                name: self.lower(),
                per_session: self.chance(30),
                bindings: self.several(0, 2, Self::constraint_binding),
            }),
            3 => ItemKind::Record(Record { name: self.upper(), fields: self.several(0, 4, Self::field) }),
            4 => ItemKind::Enum(Enum { name: self.upper(), variants: self.several(0, 4, Self::variant) }),
            5 => ItemKind::Service(self.service()),
            6 => ItemKind::Entry(self.entry()),
            7 => ItemKind::FailureHandler(self.handler()),
            8 => ItemKind::Test(Test {
                name: Arc::from(self.characters()),
                name_span: nowhere(),
                body: self.body(DEPTH),
            }),
            11 => ItemKind::Library(LibraryFolder {
                name: self.lower(),
                path: Arc::from(self.characters()),
                path_span: nowhere(),
            }),
            12 => ItemKind::Constant(NamedConstant {
                name: self.lower(),
                ty: self.some(40, |generator| generator.ty(2)),
                value: self.expr(2),
            }),
            9 => ItemKind::Config(self.config()),
            13 => ItemKind::Alias(TypeAlias { name: self.upper(), ty: self.ty(3) }),
            _ => ItemKind::Function(Function {
                name: self.lower(),
                parameters: self.several(0, 3, Self::parameter),
                returns: self.some(50, |generator| generator.ty(2)),
                body: self.body(DEPTH),
            }),
        };
        let may_be_public = matches!(
            kind,
            ItemKind::Function(_)
                | ItemKind::Record(_)
                | ItemKind::Enum(_)
                | ItemKind::Constant(_)
                | ItemKind::Alias(_)
                | ItemKind::Constraint(_)
                | ItemKind::Table(_)
        );
        let public = (may_be_public && self.chance(30)).then(nowhere);
        Item { file: 0, docs, public, kind, span: nowhere() }
    }

    /// Generates a `config` or a `secret`, which has no default.
    fn config(&mut self) -> Config {
        let secret = self.chance(30);
        let default = if secret { None } else { self.some(70, |generator| generator.expr(2)) };
        Config { secret, name: self.lower(), ty: self.ty(2), default }
    }

    fn used_module(&mut self) -> UsedModule {
        let folders = self.several(0, 2, Self::lower);
        UsedModule { folders, name: self.lower(), alias: self.some(30, Self::lower), span: nowhere() }
    }

    fn constraint_binding(&mut self) -> ConstraintBinding {
        ConstraintBinding { read: self.chance(40), path: self.lower_path(), span: nowhere() }
    }

    fn field(&mut self) -> FieldDeclaration {
        FieldDeclaration {
            docs: self.docs(),
            name: self.lower(),
            ty: self.ty(3),
            external: self.some(20, Self::external),
            default: self.some(20, |generator| generator.expr(2)),
            span: nowhere(),
        }
    }

    fn external(&mut self) -> ExternalName {
        ExternalName { text: Arc::from(self.characters()), span: nowhere() }
    }

    fn variant(&mut self) -> Variant {
        let payload = self.several(0, 3, |generator| PayloadField {
            name: generator.some(50, Self::lower),
            ty: generator.ty(2),
            span: nowhere(),
        });
        let external = self.some(20, Self::external);
        Variant { docs: self.docs(), name: self.upper(), payload, external, span: nowhere() }
    }

    fn parameter(&mut self) -> Parameter {
        Parameter {
            name: self.lower(),
            ty: self.ty(2),
            default: self.some(30, |generator| generator.expr(2)),
            span: nowhere(),
        }
    }

    pub(super) fn handler(&mut self) -> FailureHandler {
        FailureHandler {
            function: self.lower_path(),
            arguments: self.several(0, 2, |generator| generator.pattern(2)),
            failure: self.some(50, Self::lower),
            body: self.block(2),
            span: nowhere(),
        }
    }

    fn entry(&mut self) -> Entry {
        Entry {
            pattern: self.pattern(2),
            source: self.expr(2),
            session: self.some(40, Self::session),
            body: self.body(DEPTH),
            end: self.some(40, |generator| generator.body(2)),
        }
    }

    fn session(&mut self) -> Session {
        Session { value: self.expr(2), span: nowhere() }
    }

    fn service(&mut self) -> Service {
        let mut members = self.several(0, 4, Self::member);
        if let Some(session) = self.some(40, Self::session) {
            let session = ServiceMemberKind::Session(session);
            members.insert(0, ServiceMember { docs: self.docs(), kind: session, span: nowhere() });
        }
        Service {
            name: self.lower(),
            transport: self.lower(),
            arguments: self.arguments(2),
            members,
            braces: nowhere(),
        }
    }

    fn member(&mut self) -> ServiceMember {
        let docs = self.docs();
        let kind = match self.chance(20) {
            true => ServiceMemberKind::FailureHandler(self.handler()),
            false if self.chance(20) => ServiceMemberKind::Before(self.before()),
            false => ServiceMemberKind::Route(self.route()),
        };
        ServiceMember { docs, kind, span: nowhere() }
    }

    fn before(&mut self) -> Before {
        let places = [ParameterLocation::Query, ParameterLocation::Header, ParameterLocation::Cookie];
        let parameters = self.several(0, 2, |generator| {
            let parameter = Parameter { name: name("each"), ..generator.parameter() };
            RouteParameter { place: generator.pick(&places), parameter }
        });
        Before { parameters, body: self.body(DEPTH), span: nowhere() }
    }

    fn route(&mut self) -> Route {
        let path = self.route_path();
        let mut parameters: Vec<RouteParameter> = path
            .names()
            .cloned()
            .collect::<Vec<_>>()
            .into_iter()
            .map(|name| {
                let parameter = Parameter { name, ..self.parameter() };
                RouteParameter { place: ParameterLocation::Path, parameter }
            })
            .collect();
        if self.chance(40) {
            let parameter = Parameter { name: name("other"), ..self.parameter() };
            parameters.push(RouteParameter { place: ParameterLocation::Query, parameter });
        }
        for (mark, place) in [
            ("header", ParameterLocation::Header),
            ("cookie", ParameterLocation::Cookie),
            ("theme", ParameterLocation::UnprefixedCookie),
            ("user", ParameterLocation::EncryptedCookie),
        ] {
            if self.chance(20) {
                let parameter = Parameter { name: name(mark), ..self.parameter() };
                parameters.push(RouteParameter { place, parameter });
            }
        }
        if self.chance(40) {
            let parameter = Parameter { name: name("body"), ..self.parameter() };
            let place = if self.chance(50) { ParameterLocation::Body } else { ParameterLocation::Form };
            parameters.push(RouteParameter { place, parameter });
        }
        let session = self.some(30, Self::session);
        let method = self.pick(&Method::ALL);
        Route { method, method_span: nowhere(), path, parameters, session, body: self.body(DEPTH) }
    }

    fn route_path(&mut self) -> RoutePath {
        let mut parts = vec![PathPart::Literal(Arc::from(std::format!("/{}", self.characters())))];
        if self.chance(60) {
            parts.push(PathPart::Parameter(name("id")));
            if self.chance(50) {
                parts.push(PathPart::Literal(Arc::from("/files/")));
                parts.push(PathPart::Rest(name("rest")));
            }
        }
        RoutePath { parts, span: nowhere() }
    }
}
