//! Checks requests that tests make of services: `todos.get("/todos/7")`.

use weir_host::{Signature, Text};
use weir_syntax::ast::Name;
use weir_syntax::{Code, Diagnostic};

use super::TypeChecker;
use super::arguments::{CallArguments, CalleeParameter};
use crate::lang_items::{CLIENT_RESPONSE, SERVICE, SERVICE_REQUEST};
use crate::symbol::Symbol;
use crate::typed_tree::CallTarget;
use crate::types::{Substitution, Ty};

impl<'a> TypeChecker<'a, '_> {
    /// Returns whether the name denotes a service of the file.
    pub(super) fn is_service(&self, name: &Name) -> bool {
        self.typed.declarations.services.contains(&name.text)
            && self.scope.find(name.as_str()).is_none()
            && self.context.library.modules.contains_key(SERVICE)
    }

    /// Checks a request of a service. Its response is the one that a client receives.
    pub(super) fn call_service(&mut self, service: &Name, name: &Name, given: CallArguments<'a>) -> Ty {
        self.refer(service.span, Symbol::Service(service.as_str().into()));
        let function = self.context.library.function(&format!("{SERVICE}.{name}"));
        let Some(signature) = function.map(|function| &function.signature).filter(|signature| is_request(signature))
        else {
            let diagnostic = Diagnostic::new(Code::UnknownMethod, format!("a service has no function `{name}`"))
                .at(name.span, "no such function")
                .hint("a test calls `get`, `head`, `post`, `put`, `patch` or `delete`");
            self.report(diagnostic);
            return self.ignore(given);
        };
        if !self.in_test {
            let diagnostic = Diagnostic::new(Code::WithOutsideTest, "only a test can call a service of the program")
                .at(service.span, "not inside a `test`")
                .hint("tests share a `fn` that does what the route does; a closure in the test shares requests: `let ask = |path| …`");
            self.report(diagnostic);
        }
        self.refer(name.span, Symbol::HostFunction(signature.path().into()));
        let mut types = Substitution::new();
        let taken = signature.parameters.iter().skip(1).map(|parameter| CalleeParameter {
            name: Some(parameter.name.as_str().into()),
            ty: Ty::of(&parameter.ty, &mut types, &mut self.inference),
            passing: Some(parameter.passing),
            has_default: parameter.default.is_some(),
            place: None,
        });
        let taken: Vec<CalleeParameter> = taken.collect();
        let (path, name) = (signature.path(), Text::from(service.as_str()));
        let target = CallTarget::Service { name, function: path.as_str().into() };
        self.arguments(&path, target, taken, given);
        Ty::named(CLIENT_RESPONSE)
    }
}

/// Returns true for the functions of the module that make requests.
fn is_request(signature: &Signature) -> bool {
    signature.call_type() == weir_host::Type::named(SERVICE_REQUEST)
}
