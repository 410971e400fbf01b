//! Checks the uses of generic `fn`s.
//!
//! The body of a generic `fn` is checked once, with type parameters that equal nothing but themselves. A body may compare
//! or show values of a type parameter; it then *demands* that the type has equality, an order or a text. Demands are not
//! written: they are collected from the bodies, passed on from callee to caller, and checked where a use of the `fn`
//! determines the type.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_host::Text;
use weir_syntax::ast::ExprId;
use weir_syntax::{Code, Diagnostic, Span};

use super::TypeChecker;
use crate::lang_items::ADDING;
use crate::typed_tree::{Demand, Demands, GenericCallee, GenericUse};
use crate::types::{Substitution, Ty};
use crate::weir_modules::WeirFunction;

impl GenericCallee {
    pub(super) fn of_module(function: WeirFunction<'_>) -> Self {
        let demands = function.module.typed.fn_demands.get(function.name()).cloned();
        GenericCallee::Weir(function.path(), demands.unwrap_or_default())
    }

    /// Returns the function of the library with this path if it demands something of its types.
    fn of_library(path: &str, span: Span) -> Option<Self> {
        let (_, parameter) = ADDING.iter().find(|(adding, _)| *adding == path)?;
        Some(GenericCallee::Host(path.into(), Demands::from([(((*parameter).into(), Demand::Sum), span)])))
    }

    fn demands<'d>(&'d self, own: &'d BTreeMap<Arc<str>, Demands>) -> Option<&'d Demands> {
        match self {
            GenericCallee::Own(function) => own.get(function),
            GenericCallee::Weir(_, demands) | GenericCallee::Host(_, demands) => Some(demands),
        }
    }
}

impl TypeChecker<'_, '_> {
    /// Records the types with which an expression uses a generic `fn`.
    pub(super) fn use_of_generic(
        &mut self,
        callee: GenericCallee,
        expr: Option<ExprId>,
        types: Substitution,
        span: Span,
    ) {
        if let Some(expr) = expr {
            self.typed.of_mut(expr).instances.insert(expr, types.clone());
        }
        let user = self.current_fn.map(|at| self.typed.declarations.fn_name(at));
        self.typed.here().summary.generic_uses.push(GenericUse { callee, user, types, span });
    }

    /// Records the types with which an expression calls a function of the library, if it demands something of them.
    pub(super) fn use_of_library(&mut self, path: &str, types: Substitution, span: Span) {
        if let Some(callee) = GenericCallee::of_library(path, span) {
            self.use_of_generic(callee, None, types, span);
        }
    }

    /// Records a demand on every type parameter in a type.
    pub(super) fn demand(&mut self, ty: &Ty, demand: Demand, span: Span) {
        if let Some(function) = self.current_fn
            && !self.typed.declarations.functions[function].type_parameters.is_empty()
        {
            let name = self.typed.declarations.fn_name(function);
            let demands = self.typed.here().summary.own_demands.entry(name).or_default();
            ty.each_parameter(&mut |name| _ = demands.entry((name.clone(), demand)).or_insert(span));
        }
    }

    /// Checks all uses of generic `fn`s, when all types are known.
    pub(super) fn generic_uses(&mut self) {
        let files = self.typed.files.clone();
        let uses = || files.iter().flat_map(|file| &file.summary.generic_uses);
        let own = files.iter().flat_map(|file| &file.summary.own_demands);
        let mut demands: BTreeMap<_, _> = own.map(|(name, demands)| (name.clone(), demands.clone())).collect();
        while pass_on(uses(), &mut demands) {}
        for found in uses() {
            self.generic_use(found, found.callee.demands(&demands));
        }
        self.typed.fn_demands = demands;
    }

    fn generic_use(&mut self, found: &GenericUse, demands: Option<&Demands>) {
        let name: Text = match &found.callee {
            GenericCallee::Own(name) => (&**name).into(),
            GenericCallee::Weir(path, _) | GenericCallee::Host(path, _) => path.clone(),
        };
        for (parameter, ty) in &found.types {
            if ty.mentions_function() {
                let message = format!("the type parameter `{parameter}` of `{name}` cannot stand for a function");
                let diagnostic = Diagnostic::new(Code::FunctionAsValue, message)
                    .at(found.span, format!("here it would be `{ty}`"))
                    .hint("functions can only be called, or passed to a parameter of a function type");
                self.report(diagnostic);
                continue;
            }
            for (demand, what) in DEMANDS {
                let Some(place) = demands.and_then(|demands| demands.get(&(parameter.clone(), demand))) else {
                    continue;
                };
                if !self.satisfies(ty, demand) {
                    let message = format!("`{name}` {what} values of its type parameter `{parameter}`");
                    let diagnostic = Diagnostic::new(Code::GenericFunction, message)
                        .at(found.span, format!("here `{parameter}` is `{ty}`, which does not allow that"));
                    let is_shown =
                        place.source == found.span.source && !matches!(found.callee, GenericCallee::Host(..));
                    self.report(match is_shown {
                        true => diagnostic.because(*place, "this needs it"),
                        false => diagnostic,
                    });
                }
            }
        }
    }

    fn satisfies(&self, ty: &Ty, demand: Demand) -> bool {
        match demand {
            Demand::Equality => self.has_equality(ty),
            Demand::Order => matches!(ty, Ty::Unknown(_)) || ty.has_order(),
            Demand::OrderBy => matches!(ty, Ty::Unknown(_)) || self.may_order_by(ty),
            Demand::Text => self.has_text(ty, &mut Vec::new()),
            Demand::Sum => {
                matches!(ty, Ty::Unknown(_))
                    || [Ty::INT, Ty::FLOAT, Ty::DURATION, Ty::SIZE, Ty::Error, Ty::NEVER].contains(ty)
            }
        }
    }
}

const DEMANDS: [(Demand, &str); 5] = [
    (Demand::Equality, "compares"),
    (Demand::Order, "orders"),
    (Demand::OrderBy, "orders"),
    (Demand::Text, "shows"),
    (Demand::Sum, "adds"),
];

/// Adds the demands of each callee on a type parameter of its caller to those of the caller. Returns whether there were
/// new ones.
fn pass_on<'u>(uses: impl Iterator<Item = &'u GenericUse>, demands: &mut BTreeMap<Arc<str>, Demands>) -> bool {
    let mut changed = false;
    for found in uses {
        let (Some(user), Some(known)) = (&found.user, found.callee.demands(demands)) else { continue };
        let mut passed = Vec::new();
        for ((parameter, demand), place) in known {
            if let Some(ty) = found.types.get(parameter) {
                ty.each_parameter(&mut |name| passed.push(((name.clone(), *demand), *place)));
            }
        }
        let of_user = demands.entry(user.clone()).or_default();
        for (key, place) in passed {
            changed |= !of_user.contains_key(&key);
            of_user.entry(key).or_insert(place);
        }
    }
    changed
}

/// Returns the explanation of a type parameter.
pub(super) fn stands_for_any(parameter: &str) -> String {
    format!("the type parameter `{parameter}` stands for any type, which each call determines")
}
