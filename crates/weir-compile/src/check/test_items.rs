//! Checks test items: `test "name" { … }`, `expect`, and `with f = …`, which replaces a function.

use std::collections::BTreeMap;

use weir_host::Text;
use weir_syntax::ast::{self, Block, Expr, ExprKind, Name, Path, Replacement, Test};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Exits, Expected, TypeChecker};
use crate::typed_tree::CallTarget;
use crate::types::{Substitution, Ty};

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn test(&mut self, test: &'a Test) {
        let nothing = Expected::new(Ty::UNIT, test.name_span, "a test has no value");
        self.begin_body(Exits::Flow(nothing.clone()));
        self.in_test = true;
        self.handlers_of_block(&test.body);
        self.block(&test.body, Some(&nothing));
        self.in_test = false;
    }

    /// Reports tests with the same name.
    pub(super) fn test_names(&mut self) {
        let tree = self.context.tree();
        let mut seen: BTreeMap<(usize, &str), &Test> = BTreeMap::new();
        for test in tests(tree) {
            let file = self.context.files.index_at(test.name_span.start);
            if let Some(first) = seen.get(&(file, &*test.name)) {
                let diagnostic = Diagnostic::new(Code::NameTaken, format!("two tests are named \"{}\"", test.name))
                    .at(test.name_span, "same name")
                    .because(first.name_span, "first test with this name")
                    .hint("rename one of them");
                self.report(diagnostic);
            }
            seen.entry((file, &test.name)).or_insert(test);
        }
    }

    pub(super) fn expect(&mut self, condition: &'a Expr) {
        self.expr(condition, Some(&Expected::new(Ty::BOOL, condition.span, "`expect` takes a `Bool`")));
    }

    pub(super) fn with(
        &mut self,
        expr: &'a Expr,
        replacements: &'a [Replacement],
        body: &'a Block,
        expected: Option<&Expected>,
    ) -> Ty {
        if !self.in_test {
            let diagnostic = Diagnostic::new(Code::WithOutsideTest, "`with` can replace a function only in a test")
                .at(Span { end: (expr.span.start + 4).min(expr.span.end), ..expr.span }, "not inside a `test`")
                .hint("pass the function to a `fn` as a parameter instead");
            self.report(diagnostic);
        }
        let mut targets = Vec::new();
        for replacement in replacements {
            let found = self.function_named(&replacement.function);
            let why = format!("replaces `{}`", replacement.function);
            let ty = found.as_ref().map_or(Ty::Error, |function| function.type_for(&replacement.value));
            self.expr(&replacement.value, Some(&Expected::new(ty, replacement.function.span, why)));
            targets.push(found.map(|function| function.target));
        }
        self.typed.of_mut(expr.id).replacements.insert(expr.id, targets);
        self.block(body, expected)
    }

    /// Returns a `fn` of the program as a function that a test replaces.
    fn replaced_fn(&mut self, at: usize, name: &Name) -> Option<ReplacedFunction> {
        let declared = &self.typed.declarations.functions[at];
        if !declared.type_parameters.is_empty() {
            self.report(generic_replaced(&format!("`fn` `{name}`"), name.span));
            return None;
        }
        let taken = declared.parameters.iter().map(|parameter| parameter.ty.clone()).collect();
        let defaults = declared.parameters.iter().map(|parameter| parameter.default.is_some());
        let (required, result) = (required(defaults), declared.result.clone());
        let target = CallTarget::Function(self.typed.declarations.fn_name(at));
        Some(ReplacedFunction { target, taken, required, result })
    }

    /// Resolves a path to a function.
    fn function_named(&mut self, path: &Path) -> Option<ReplacedFunction> {
        match &path.names[..] {
            [name] => match self.typed.declarations.functions.get_index_of(self.typed.declarations.own(&name.text)) {
                Some(at) => self.replaced_fn(at, name),
                None => {
                    self.unknown_name(name);
                    None
                }
            },
            [module, name] if self.names_module(module) => {
                if let Some(file) = self.module_file(module) {
                    let at = self.function_of_file(file, module, name)?;
                    return self.replaced_fn(at, name);
                }
                let signature = self.host_function(module, name)?;
                let mut parameters = Substitution::new();
                let taken = signature.parameters.iter();
                let taken = taken.map(|taken| Ty::of(&taken.ty, &mut parameters, &mut self.inference)).collect();
                let result = Ty::of(&signature.call_type(), &mut parameters, &mut self.inference);
                if !parameters.is_empty() {
                    self.report(generic_replaced(&format!("function `{path}`"), path.span));
                    return None;
                }
                let required = required(signature.parameters.iter().map(|taken| taken.default.is_some()));
                let target = CallTarget::Host(Text::from(signature.path()));
                Some(ReplacedFunction { target, taken, required, result })
            }
            [first, ..] => {
                if !first.is_missing() {
                    self.unknown_name(first);
                }
                None
            }
            [] => None,
        }
    }
}

/// Returns the error for the replacement of a generic function: a replacement has one type, and the calls have many.
fn generic_replaced(function: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::GenericFunction, format!("the generic {function} cannot be replaced"))
        .at(span, "has other types in each call")
        .hint("replace a function that calls it, or one that it calls")
}

/// A function that a test replaces.
struct ReplacedFunction {
    target: CallTarget,
    /// The types of its parameters.
    taken: Vec<Ty>,
    /// Number of parameters up to the last one without a default.
    required: usize,
    result: Ty,
}

impl ReplacedFunction {
    /// Returns the type that a replacement must have. A closure may leave out parameters with defaults at the end.
    fn type_for(&self, replacement: &Expr) -> Ty {
        let count = match &replacement.kind {
            ExprKind::Closure { parameters, .. } => parameters.len().max(self.required).min(self.taken.len()),
            _ => self.taken.len(),
        };
        Ty::function(self.taken[..count].to_vec(), self.result.clone())
    }
}

/// Returns the number of parameters up to the last one without a default.
fn required(has_default: impl DoubleEndedIterator<Item = bool> + ExactSizeIterator) -> usize {
    let count = has_default.len();
    count - has_default.rev().take_while(|has_default| *has_default).count()
}

/// Returns the tests of a tree, in source order.
fn tests(tree: &ast::Tree) -> impl Iterator<Item = &Test> {
    tree.items.iter().filter_map(|item| match &item.kind {
        ast::ItemKind::Test(test) => Some(test),
        _ => None,
    })
}
