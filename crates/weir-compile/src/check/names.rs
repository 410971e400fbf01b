//! Name resolution within bodies: locals, `fn`s, shared values, variants, modules.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_host::{Passing, Text, TypeShape};
use weir_syntax::ast::{Expr, ExprKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use super::{OpenType, TypeChecker};
use crate::declare::private_item;
use crate::dialects::{self, Advice};
use crate::lang_items::SHARED_READ;
use crate::move_checker::is_move_only;
use crate::suggest::nearest;
use crate::symbol::Symbol;
use crate::typed_tree::{GenericCallee, LocalId, Resolution};
use crate::types::{Substitution, Ty};

/// The locals in scope.
#[derive(Clone, Default)]
pub(super) struct LocalScope {
    /// By name, innermost last.
    visible: BTreeMap<Arc<str>, Vec<LocalId>>,
    /// The names in the order of their binding, to be removed at the end of their scope.
    bound: Vec<Arc<str>>,
}

/// The number of bound names when a scope began.
pub(super) struct ScopeMark(usize);

impl LocalScope {
    pub(super) fn bind(&mut self, name: Arc<str>, id: LocalId) {
        self.visible.entry(name.clone()).or_default().push(id);
        self.bound.push(name);
    }

    pub(super) fn find(&self, name: &str) -> Option<LocalId> {
        self.visible.get(name)?.last().copied()
    }

    pub(super) fn mark(&self) -> ScopeMark {
        ScopeMark(self.bound.len())
    }

    pub(super) fn leave(&mut self, mark: ScopeMark) {
        for name in self.bound.drain(mark.0..) {
            if let Some(ids) = self.visible.get_mut(&name) {
                ids.pop();
            }
        }
    }

    /// Returns the locals with their names, the innermost first.
    pub(super) fn innermost(&self) -> impl Iterator<Item = (&str, LocalId)> {
        self.bound.iter().rev().filter_map(|name| Some((&**name, self.find(name)?)))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.visible.iter().filter(|(_, ids)| !ids.is_empty()).map(|(name, _)| &**name)
    }
}

/// The variant that a name resolves to.
pub(super) struct ResolvedVariant {
    /// The type of the enum; generic for `Some`, `None`, `Ok` and `Err`.
    pub(super) ty: Ty,
    pub(super) tag: u32,
    /// The names and types of its fields. A positional field is named by its index.
    pub(super) fields: Vec<(Text, Ty)>,
}

impl TypeChecker<'_, '_> {
    /// Resolves an upper-case word to a variant: of the expected type, or else of an enum of the program.
    pub(super) fn variant(&mut self, name: &str, expected: Option<&Ty>) -> Option<ResolvedVariant> {
        let expected = expected.map(|ty| self.inference.shallow(ty));
        if let Some(enum_name) = expected.as_ref().and_then(Ty::name)
            && let Some(found) = self.variant_of(enum_name, name)
        {
            return Some(found);
        }
        let is_of_outcome =
            matches!((&expected, name), (Some(Ty::Option(_)), "None" | "Some") | (Some(Ty::Result(_)), "Ok" | "Err"));
        if let Some(enums) = self.typed.declarations.here().variants.get(name).filter(|_| !is_of_outcome) {
            let first = enums.first()?.clone();
            return self.variant_of(&first, name);
        }
        let parameter = self.inference.fresh();
        let other = self.inference.fresh();
        let (ty, tag, payload) = match name {
            "None" => (Ty::option(parameter), 0, None),
            "Some" => (Ty::option(parameter.clone()), 1, Some(parameter)),
            "Ok" => (Ty::result(parameter.clone(), other), 0, Some(parameter)),
            "Err" => (Ty::result(other, parameter.clone()), 1, Some(parameter)),
            _ => return None,
        };
        Some(ResolvedVariant { ty, tag, fields: payload.into_iter().map(|ty| (Text::from("0"), ty)).collect() })
    }

    /// Returns the enum's variant with this name.
    pub(super) fn variant_of(&self, enum_name: &str, name: &str) -> Option<ResolvedVariant> {
        let definition = self.typed.declarations.definition(self.context.library, enum_name)?;
        let TypeShape::Enum(variants) = &definition.shape else { return None };
        let tag = variants.iter().position(|variant| variant.name.as_str() == name)?;
        let fields = variants[tag].fields.iter().map(|field| (field.name.clone(), Ty::fixed(&field.ty))).collect();
        Some(ResolvedVariant { ty: Ty::named(enum_name), tag: tag as u32, fields })
    }

    /// Resolves `name` or `module.name` to the qualified name of an enum or record.
    pub(super) fn type_named(&mut self, names: &[Name]) -> Option<Text> {
        match names {
            [name] if let Some(meant) = self.alias_of(self.typed.declarations.own(name.as_str())) => Some(meant),
            [name] => {
                let declarations = &self.typed.declarations;
                declarations.types.get_key_value(declarations.own(name.as_str())).map(|(whole, _)| whole.clone())
            }
            [module, name] => {
                let path = format!("{module}.{name}");
                let module = self.module(module)?;
                let whole = format!("{module}.{name}");
                if let Some(meant) = self.alias_of(&whole) {
                    return Some(meant);
                }
                if let Some((whole, declared)) = self.typed.declarations.types.get_key_value(whole.as_str()) {
                    let (whole, hidden) = (whole.clone(), (!declared.public).then_some(declared.span));
                    hidden.into_iter().for_each(|span| self.report(private_item(name, &path, span)));
                    return Some(whole);
                }
                self.context
                    .library
                    .modules
                    .get(&module)?
                    .types
                    .get_key_value(whole.as_str())
                    .map(|(whole, _)| whole.clone())
            }
            _ => None,
        }
    }

    /// Returns the named type that a `type` stands for.
    fn alias_of(&self, whole: &str) -> Option<Text> {
        self.typed.declarations.aliases.get(whole)?.ty.name().cloned()
    }

    /// Notes that an expression, a name or a path, names a shared value.
    pub(super) fn refer_shared(&mut self, expr: &Expr, at: usize) {
        let span = if let ExprKind::Field { name, .. } = &expr.kind { name.span } else { expr.span };
        if let Some((name, _)) = self.typed.declarations.shared.get_index(at) {
            let symbol = Symbol::Shared((&**name).into());
            self.refer(span, symbol);
        }
    }

    pub(super) fn refer_variant(&mut self, name: &Name, variant: &ResolvedVariant) {
        if let Some(of) = variant.ty.name() {
            self.refer(name.span, Symbol::Variant(of.clone(), name.as_str().into()));
        }
    }

    /// Resolves a word to a module of the library, and marks the module as used.
    pub(super) fn module(&mut self, name: &Name) -> Option<Text> {
        let used = self.typed.declarations.here_mut().modules.get_mut(&name.text)?;
        used.used = true;
        let module = used.module.clone();
        self.refer(name.span, Symbol::Module(module.clone()));
        Some(module)
    }

    /// Reports that a name is not a module, or that the file does not use the module.
    pub(super) fn module_not_used(&mut self, name: &Name) {
        let declarations = &self.typed.declarations;
        let top = self.context.files.start(declarations.file);
        let found = declarations.unknown_module(name, self.context.library, self.context.files, top);
        self.context.report_all(found);
    }

    /// Returns whether the word before a dot names a module, used or not, that nothing shadows.
    pub(super) fn names_module(&self, name: &Name) -> bool {
        let declarations = &self.typed.declarations;
        let own = declarations.own(&name.text);
        let declared = declarations.shared.contains_key(own)
            || declarations.config.contains_key(own)
            || declarations.constants.contains_key(own);
        let nearer = declared || self.scope.find(name.as_str()).is_some();
        !nearer
            && (self.typed.declarations.here().modules.contains_key(&name.text)
                || self.context.library.modules.contains_key(name.as_str())
                || self.context.files.loaded_module(declarations.file, name.as_str()).is_some())
    }

    /// Resolves a word to a value and returns its type, or reports that it is unknown.
    pub(super) fn name(&mut self, expr: &Expr, name: &Name, expected: Option<&Ty>) -> Ty {
        if name.is_missing() {
            return Ty::Error;
        }
        if let Some(local) = self.scope.find(name.as_str()) {
            self.typed.resolve(expr.id, Resolution::Local(local));
            self.refer(name.span, Symbol::Local(local));
            return self.typed.local(local).ty.clone();
        }
        if let Some(at) = self.typed.declarations.functions.get_index_of(self.typed.declarations.own(&name.text)) {
            return self.function_value(expr, at, name.span);
        }
        if let Some(at) = self.typed.declarations.shared.get_index_of(self.typed.declarations.own(&name.text)) {
            return self.shared_as_value(expr, at);
        }
        if let Some(ty) = self.config_named(expr, name) {
            return ty;
        }
        if let Some(at) = self.typed.declarations.constants.get_index_of(self.typed.declarations.own(&name.text)) {
            return self.constant_named(expr, at, name.span);
        }
        if name.is_upper() {
            return self.variant_value(expr, name, expected);
        }
        self.unknown_name(name);
        Ty::Error
    }

    /// Resolves an expression to a `fn` of the program, by its index.
    pub(super) fn function_value(&mut self, expr: &Expr, at: usize, span: Span) -> Ty {
        let declared = &self.typed.declarations.functions[at];
        let taken = declared.parameters.iter().map(|parameter| parameter.ty.clone()).collect();
        let ty = Ty::function(taken, declared.result.clone());
        let is_generic = !declared.type_parameters.is_empty();
        let name = self.typed.declarations.fn_name(at);
        self.typed.resolve(expr.id, Resolution::Function(name.clone()));
        self.calls_fn(at, span);
        if !is_generic {
            return ty;
        }
        let mut types = Substitution::new();
        let ty = ty.instantiated(&mut types, &mut self.inference);
        self.use_of_generic(GenericCallee::Own(name), Some(expr.id), types, span);
        ty
    }

    /// Checks a shared value in an expression, which evaluates to its current value.
    pub(super) fn shared_as_value(&mut self, expr: &Expr, at: usize) -> Ty {
        self.table_of_module(expr);
        self.refer_shared(expr, at);
        if let Some(ty) = self.shared_now(expr, at) {
            return ty;
        }
        let (name, declared) = self.typed.declarations.shared.get_index(at).expect("its index was just found");
        let (name, declared_at, ty) = (name.clone(), declared.span, declared.ty.clone());
        self.typed.resolve(expr.id, Resolution::Shared(name.clone()));
        let diagnostic = match self.typed.declarations.tables.contains_key(&name) {
            true => table_as_value(&name, expr.span, declared_at)
                .hint(format!("read it by a query, `for row in {name} {{ … }}`, or by a key, `{name}[key]`"))
                .hint(format!(
                    "a `fold` or a call takes the rows of a query: `fold … for row in (for row in {name} {{ row }})`"
                )),
            false => Diagnostic::new(Code::SharedAsValue, format!("`{name}` is a shared value and cannot be copied"))
                .at(expr.span, "used as a value")
                .because(declared_at, format!("declared here as a shared `{ty}`"))
                .hint(format!("call a function on it: `{name}.…`")),
        };
        self.report(diagnostic);
        Ty::Error
    }

    /// Resolves the expression to the current value of a shared value. Returns `None` if the value is move-only and
    /// cannot be copied.
    pub(super) fn shared_now(&mut self, expr: &Expr, at: usize) -> Option<Ty> {
        let ty = self.shared_type(expr.span, at);
        if ty == Ty::Error {
            return Some(ty);
        }
        let definition = |name: &Text| self.typed.declarations.definition(self.context.library, name);
        if self.context.library.function(SHARED_READ).is_none() || is_move_only(&ty.to_type(), &definition) {
            return None;
        }
        let name = self.typed.declarations.shared_name(at);
        self.touches_shared(&name, Passing::Borrow);
        self.typed.resolve(expr.id, Resolution::SharedNow(name));
        self.typed.of_mut(expr.id).set_type(expr.id, ty.clone());
        Some(ty)
    }

    fn variant_value(&mut self, expr: &Expr, name: &Name, expected: Option<&Ty>) -> Ty {
        let Some(variant) = self.variant(name.as_str(), expected) else {
            self.unknown_variant(name);
            return Ty::Error;
        };
        self.variant_without_payload(expr, name, variant)
    }

    pub(super) fn variant_without_payload(&mut self, expr: &Expr, name: &Name, variant: ResolvedVariant) -> Ty {
        self.typed.resolve(expr.id, Resolution::Variant(variant.tag));
        self.refer_variant(name, &variant);
        if !variant.fields.is_empty() {
            let wanted = variant.fields.iter().map(|(_, ty)| self.inference.resolve(ty).to_string());
            let wanted = wanted.collect::<Vec<_>>().join(", ");
            let diagnostic = Diagnostic::new(Code::MissingArgument, format!("`{name}` has fields"))
                .at(name.span, format!("expected `{name}({wanted})`"))
                .hint(format!("write `{name}(…)`"));
            self.report(diagnostic);
            return Ty::Error;
        }
        if matches!(variant.ty, Ty::Option(_)) {
            self.open.push(OpenType { span: expr.span, ty: part_of_option(&variant.ty), function: None });
        }
        variant.ty
    }

    /// Formats the construction of a declared type: `Point { x: …, y: … }`.
    fn made_like(&self, name: &str) -> String {
        match self
            .typed
            .declarations
            .types
            .get(self.typed.declarations.own(name))
            .map(|declared| &declared.definition.shape)
        {
            Some(TypeShape::Record(fields)) if !fields.is_empty() => {
                let fields: Vec<String> = fields.iter().map(|field| format!("{}: …", field.name)).collect();
                format!("{name} {{ {} }}", fields.join(", "))
            }
            Some(TypeShape::Enum(variants)) if !variants.is_empty() => match &variants[0] {
                first if first.fields.is_empty() => first.name.to_string(),
                first => format!("{}(…)", first.name),
            },
            _ => format!("{name} {{ … }}"),
        }
    }

    pub(super) fn unknown_variant(&mut self, name: &Name) {
        let known = self
            .typed
            .declarations
            .here()
            .variants
            .keys()
            .map(Text::as_str)
            .chain(["Some", "None", "Ok", "Err", "Failure"]);
        let near = nearest(name.as_str(), known).map(str::to_owned);
        let diagnostic = Diagnostic::new(Code::UnknownVariant, format!("there is no variant `{name}`"))
            .at(name.span, "not declared");
        let word = name.as_str();
        let diagnostic = match (dialects::value_named(word), near) {
            _ if self.typed.declarations.types.contains_key(self.typed.declarations.own(word)) => {
                diagnostic.hint(format!("`{name}` is a type: make a value with `{}`", self.made_like(word)))
            }
            (Some(advice), _) => advised(diagnostic, name, advice),
            (None, Some(near)) => diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near),
            (None, None) => diagnostic,
        };
        self.report(diagnostic);
    }

    pub(super) fn unknown_name(&mut self, name: &Name) {
        if self.names_module(name) {
            self.module(name);
            let diagnostic = Diagnostic::new(Code::NotAValue, format!("`{name}` is a module, not a value"))
                .at(name.span, "expected a value");
            return self.report(match dialects::value_named(name.as_str()) {
                Some(advice) => advised(diagnostic, name, advice),
                None => diagnostic.hint(format!("name a member: `{name}.…`")),
            });
        }
        if self.typed.declarations.constraints.contains_key(self.typed.declarations.own(&name.text)) {
            let diagnostic = Diagnostic::new(Code::NotAValue, format!("`{name}` is a constraint, not a value"))
                .at(name.span, "expected a value")
                .hint(format!("hold it: `atomic {name} {{ … }}`"));
            return self.report(diagnostic);
        }
        if name.as_str() == "fail" {
            let diagnostic = Diagnostic::new(Code::NotAValue, "`fail` is not a value")
                .at(name.span, "expected a value")
                .hint("call it: `fail(\"why\")`");
            return self.report(diagnostic);
        }
        if self.typed.declarations.here().unknown_modules.contains(&name.text) {
            // The missing module was reported at its `use`.
            return;
        }
        let diagnostic = Diagnostic::new(Code::UnknownName, format!("there is no `{name}`"))
            .at(name.span, "not found in this scope");
        self.report(self.advised_name(diagnostic, name));
    }

    /// Adds a suggestion to the diagnostic of an unknown name.
    fn advised_name(&self, diagnostic: Diagnostic, name: &Name) -> Diagnostic {
        match (dialects::value_named(name.as_str()), self.near_name(name.as_str())) {
            (Some(advice), _) => advised(diagnostic, name, advice),
            (None, Some(near)) => diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near),
            (None, None) => diagnostic,
        }
    }

    /// Returns a similar name in scope, or the function of this name in a used module.
    fn near_name(&self, word: &str) -> Option<String> {
        let declarations = &self.typed.declarations;
        let declared =
            declarations.functions.keys().chain(declarations.shared.keys()).chain(declarations.config.keys());
        let declared = declared.map(|name| &**name);
        if let Some(near) = nearest(word, self.scope.names().chain(declared)) {
            return Some(near.to_owned());
        }
        let modules = self.typed.declarations.here().modules.iter().filter_map(|(called, used)| {
            let module = self.context.library.modules.get(&used.module)?;
            module.functions.contains_key(word).then(|| format!("{called}.{word}"))
        });
        modules.into_iter().next()
    }
}

/// Adds the advice on a word of another language.
pub(super) fn advised(diagnostic: Diagnostic, name: &Name, advice: Advice) -> Diagnostic {
    match advice {
        Advice::Write(ours) => diagnostic.suggest(format!("write `{ours}`"), name.span, ours),
        Advice::Do(advice) => diagnostic.hint(advice),
    }
}

fn part_of_option(ty: &Ty) -> Ty {
    match ty {
        Ty::Option(some) => (**some).clone(),
        other => other.clone(),
    }
}

/// Returns the names of `a`, `a.b` or `a.b.c`; `None` if the expression contains anything else.
pub(super) fn path_of(expr: &Expr) -> Option<Vec<Name>> {
    match &expr.kind {
        ExprKind::Name(name) => Some(vec![name.clone()]),
        ExprKind::Field { object, name } => {
            let mut names = path_of(object)?;
            names.push(name.clone());
            Some(names)
        }
        _ => None,
    }
}

/// Returns the error for a table in the place of a value, without advice.
pub(super) fn table_as_value(name: &str, span: Span, declared: Span) -> Diagnostic {
    Diagnostic::new(Code::SharedAsValue, format!("`{name}` is a table, and no value"))
        .at(span, "used as a value")
        .because(declared, "declared here")
}
