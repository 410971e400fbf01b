//! Names of constants in the patterns of a `match` or a failure handler, which would bind a new name and not compare with
//! the constant.

use weir_syntax::ast::{ItemKind, Name, Path, Pattern, PatternKind, Visitor, walk_pattern};
use weir_syntax::{Code, Diagnostic, Span};

use super::TypeChecker;

/// A place whose patterns look like comparisons.
#[derive(Clone, Copy)]
pub(super) enum PatternPlace {
    /// The pattern of an arm.
    Arm,
    /// The pattern for an argument of the call that failed, in `on failure of f(pattern)`.
    HandlerArgument,
}

impl PatternPlace {
    /// Returns the advice how to compare with a constant instead.
    fn advice(self, constant: &str) -> String {
        match self {
            PatternPlace::Arm => {
                format!("bind another name and compare in a guard: `other if other == {constant}`")
            }
            PatternPlace::HandlerArgument => {
                format!("bind another name, `other`, and compare in the handler: `if other == {constant} {{ … }}`")
            }
        }
    }
}

impl<'a> TypeChecker<'a, '_> {
    /// Reports each name that a pattern would bind, but that is the name of a constant.
    pub(super) fn constants_in_pattern(&mut self, pattern: &'a Pattern, place: PatternPlace) {
        let mut search = BinderSearch { found: Vec::new() };
        search.pattern(pattern);
        for name in search.found {
            if self.scope.find(name.as_str()).is_none()
                && let Some(declared) = self.constant_declared(name.as_str())
            {
                let label = "binds a new name, and matches every value";
                self.constant_pattern(name.as_str(), (name.span, label), declared, place);
            }
        }
    }

    /// Reports a path in a pattern that names no variant, but a constant. Returns whether it did.
    pub(super) fn is_constant_pattern(&mut self, path: &Path) -> bool {
        let found = match path.qualifier() {
            [] => {
                let lower = path.last().as_str().to_lowercase();
                let mut names = [path.last().as_str(), &lower].into_iter();
                names.find_map(|name| Some((name.to_owned(), self.constant_declared(name)?)))
            }
            [module] => self.constant_of_module(module, path.last()).map(|declared| (path.to_string(), declared)),
            _ => None,
        };
        if let Some((constant, declared)) = &found {
            self.constant_pattern(constant, (path.span, "no variant"), *declared, PatternPlace::Arm);
        }
        found.is_some()
    }

    /// Returns the place of the constant or of the value of `config` with this name.
    pub(super) fn constant_declared(&self, name: &str) -> Option<Span> {
        let own = self.typed.declarations.own(name);
        let constant = self.typed.declarations.constants.get(own).map(|declared| declared.span);
        constant.or_else(|| match &self.context.tree().items[self.typed.declarations.config.get(own)?.item].kind {
            ItemKind::Config(config) => Some(config.name.span),
            _ => None,
        })
    }

    fn constant_of_module(&self, module: &Name, name: &Name) -> Option<Span> {
        let declarations = &self.typed.declarations;
        let whole = declarations.files[self.module_file(module)?].whole(name.as_str());
        declarations.constants.get(whole).map(|declared| declared.span)
    }

    fn constant_pattern(&mut self, constant: &str, (span, label): (Span, &str), declared: Span, place: PatternPlace) {
        let diagnostic = Diagnostic::new(
            Code::ConstantPattern,
            format!("a pattern does not compare with the constant `{constant}`"),
        )
        .at(span, label)
        .because(declared, "declared here")
        .hint(place.advice(constant));
        self.report(diagnostic);
    }
}

/// Collects the names that a pattern binds, without those that are short for the field of a record.
struct BinderSearch<'a> {
    found: Vec<&'a Name>,
}

impl<'a> Visitor<'a> for BinderSearch<'a> {
    fn pattern(&mut self, pattern: &'a Pattern) {
        match &pattern.kind {
            PatternKind::Bind(name) => self.found.push(name),
            PatternKind::Record { fields, .. } => {
                fields.iter().filter(|field| !field.shorthand).for_each(|field| self.pattern(&field.pattern));
            }
            _ => walk_pattern(self, pattern),
        }
    }
}
