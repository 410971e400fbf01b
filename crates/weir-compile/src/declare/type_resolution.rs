//! Type resolution: turns types in the source into [`Ty`].

use weir_host::Text;
use weir_syntax::ast::{self, Name};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::dialects::{self, Advice};
use crate::lang_items::HTML;
use crate::suggest::{listed, nearest};
use crate::symbol::Symbol;
use crate::types::{Inference, TYPE_PARTS_MAX, Ty};

/// The type parameters that a type may mention: names in lower case, each of which stands for any type.
#[derive(Debug, Default)]
pub(crate) struct TypeParameters {
    /// The `fn` that they belong to; empty if there is none.
    function: Text,
    names: Vec<Text>,
    /// True in a signature, where the first mention of a name introduces it.
    introduces: bool,
}

impl TypeParameters {
    /// Returns the type parameters of a place outside of every `fn`.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Returns those of the signature of a `fn`, none of which has been mentioned yet.
    pub(crate) fn introduced_by(function: &Name) -> Self {
        TypeParameters { function: function.as_str().into(), names: Vec::new(), introduces: true }
    }

    /// Returns those of the body of a `fn`: the ones that its signature mentions.
    pub(crate) fn of(function: &str, names: &[Text]) -> Self {
        TypeParameters { function: function.into(), names: names.to_vec(), introduces: false }
    }

    /// Returns their names, in the order of their first mentions.
    pub(crate) fn into_names(self) -> Vec<Text> {
        self.names
    }
}

/// Returns the type that a type in the source denotes. Reports an unknown one, and one that is too large.
pub(crate) fn resolve_type(
    declarations: &mut Declarations,
    context: &mut CheckContext<'_>,
    ty: &ast::Type,
    parameters: &mut TypeParameters,
) -> Ty {
    let resolved = TypeResolver { declarations, context, parameters }.ty(ty);
    if !Inference::default().is_too_large(&resolved) {
        return resolved;
    }
    let diagnostic = Diagnostic::new(Code::TypeTooLarge, format!("this type has more than {TYPE_PARTS_MAX} parts"))
        .at(ty.span, "a type that is too large")
        .hint("use a record, whose name is one part, or a list");
    context.report(diagnostic);
    Ty::Error
}

struct TypeResolver<'a, 'c> {
    declarations: &'a mut Declarations,
    context: &'a mut CheckContext<'c>,
    parameters: &'a mut TypeParameters,
}

/// The built-in types without arguments.
const PLAIN: [(&str, Ty); 10] = [
    ("Bool", Ty::BOOL),
    ("Int", Ty::INT),
    ("Float", Ty::FLOAT),
    ("Text", Ty::TEXT),
    ("Bytes", Ty::BYTES),
    ("Time", Ty::TIME),
    ("Duration", Ty::DURATION),
    ("Size", Ty::SIZE),
    ("Failure", Ty::FAILURE),
    ("Never", Ty::NEVER),
];

/// The built-in types with arguments, and the number of these.
const COMPOUND: [(&str, usize); 4] = [("List", 1), ("Option", 1), ("Map", 2), ("Result", 2)];

impl TypeResolver<'_, '_> {
    fn ty(&mut self, ty: &ast::Type) -> Ty {
        match &ty.kind {
            ast::TypeKind::Named { path, arguments } => self.named(path, arguments, ty.span),
            ast::TypeKind::Tuple(elements) if elements.is_empty() => Ty::UNIT,
            ast::TypeKind::Tuple(elements) => Ty::Tuple(elements.iter().map(|ty| self.ty(ty)).collect()),
            ast::TypeKind::Function { parameters, returns } => {
                let taken = parameters.iter().map(|ty| self.ty(ty)).collect();
                Ty::function(taken, returns.as_ref().map_or(Ty::UNIT, |ty| self.ty(ty)))
            }
            ast::TypeKind::Error => Ty::Error,
        }
    }

    fn named(&mut self, path: &ast::Path, arguments: &[ast::Type], span: Span) -> Ty {
        let mut parts: Vec<Ty> = arguments.iter().map(|ty| self.ty(ty)).collect();
        let Some((name, wanted)) = self.constructor(path) else { return Ty::Error };
        // `Result(T)` is short for `Result(T, Failure)`.
        if path.qualifier().is_empty() && path.last().as_str() == "Result" && parts.len() == 1 {
            parts.push(Ty::FAILURE);
        }
        if parts.len() != wanted {
            let takes = if wanted == 1 { "1 type".to_owned() } else { format!("{wanted} types") };
            let diagnostic =
                Diagnostic::new(Code::TypeArguments, format!("`{path}` takes {takes}, not {}", parts.len()))
                    .at(span, if wanted == 0 { "takes no types in parentheses" } else { "the wrong number of types" })
                    .hint(format!("write `{}`", example(path, wanted)));
            self.context.report(diagnostic);
            return Ty::Error;
        }
        assemble(name, parts)
    }

    /// Resolves the path of a type, and returns it with the number of its arguments.
    fn constructor(&mut self, path: &ast::Path) -> Option<(Ty, usize)> {
        let last = path.last();
        if last.is_missing() {
            return None;
        }
        match path.qualifier() {
            [] => self.unqualified(last),
            [module] => self.qualified(path, module),
            _ => self.unknown(path, None),
        }
    }

    fn unqualified(&mut self, name: &Name) -> Option<(Ty, usize)> {
        let word = name.as_str();
        if let Some((whole, _)) = self.declarations.types.get_key_value(self.declarations.own(word)) {
            let whole = whole.clone();
            self.declarations.refer(name.span, Symbol::Type(whole.clone()));
            return Some((Ty::named(&whole), 0));
        }
        let whole: Text = self.declarations.own(word).into();
        if self.declarations.aliases.contains_key(&whole) {
            return Some((self.alias(name, whole), 0));
        }
        if let Some((_, ty)) = PLAIN.iter().find(|(plain, _)| *plain == word) {
            return Some((ty.clone(), 0));
        }
        if word == HTML && self.context.library.definition(HTML).is_some() {
            return Some((Ty::named(HTML), 0));
        }
        if let Some((compound, count)) = COMPOUND.iter().find(|(compound, _)| *compound == word) {
            return Some((Ty::named(compound), *count));
        }
        let path = ast::Path { names: vec![name.clone()], span: name.span };
        let known = self.declarations.types.keys().chain(self.declarations.aliases.keys()).map(Text::as_str);
        let known = known
            .chain(std::iter::once(HTML))
            .chain(PLAIN.iter().map(|(name, _)| *name))
            .chain(COMPOUND.iter().map(|(name, _)| *name));
        match dialects::type_named(word) {
            Some(Advice::Do(advice)) => return self.no_type(&path, advice),
            Some(Advice::Write(ours)) => return self.unknown(&path, Some(ours.to_owned())),
            None => {}
        }
        // A type parameter that differs from a type only in case would be read as that type.
        let capitalised = known.clone().find(|known| known.eq_ignore_ascii_case(word)).map(str::to_owned);
        if capitalised.is_none() && !name.is_upper() {
            return self.type_parameter(name);
        }
        if let Some(of_program) = capitalised.as_ref().filter(|_| self.parameters.introduces && !name.is_upper()) {
            self.like_a_type(name, of_program.clone());
            return None;
        }
        let near = capitalised.or_else(|| nearest(word, known).map(str::to_owned)).or_else(|| self.elsewhere(word));
        self.unknown(&path, near)
    }

    /// Returns the type that a name of a type stands for.
    fn alias(&mut self, name: &Name, whole: Text) -> Ty {
        self.declarations.refer(name.span, Symbol::Type(whole.clone()));
        self.declarations.aliases[&whole].ty.clone()
    }

    /// Resolves a name in lower case. The signature of a `fn` introduces it; elsewhere it must be known.
    fn type_parameter(&mut self, name: &Name) -> Option<(Ty, usize)> {
        let word: Text = name.as_str().into();
        let is_known = self.parameters.names.contains(&word);
        if !is_known && !self.parameters.introduces {
            self.unknown_parameter(name);
            return None;
        }
        let symbol = Symbol::TypeParameter(self.parameters.function.clone(), word.clone());
        if is_known {
            self.declarations.refer(name.span, symbol);
        } else {
            self.declarations.define(name, symbol);
            self.parameters.names.push(word.clone());
        }
        Some((Ty::parameter(&word), 0))
    }

    /// Reports a name in a signature that differs from a type only in case.
    fn like_a_type(&mut self, name: &Name, ty: String) {
        let diagnostic = Diagnostic::new(Code::UnknownType, format!("there is no type `{name}`"))
            .at(name.span, format!("differs from the type `{ty}` only in case"))
            .note("a type parameter needs a name that is not that of a type in lower case")
            .suggest(format!("did you mean `{ty}`?"), name.span, ty);
        self.context.report(diagnostic);
    }

    fn unknown_parameter(&mut self, name: &Name) {
        let diagnostic = Diagnostic::new(Code::UnknownType, format!("there is no type `{name}`"))
            .at(name.span, "not declared")
            .note("types begin with an upper-case letter; a name in lower case is a type parameter");
        let known: Vec<String> = self.parameters.names.iter().map(Text::to_string).collect();
        let TypeParameters { function, .. } = &self.parameters;
        self.context.report(match (function.is_empty(), known.is_empty()) {
            (true, _) => diagnostic.hint("write the type: only a `fn` has type parameters"),
            (false, true) => diagnostic.hint(format!("use it in the parameters of `{function}` to introduce it")),
            (false, false) => diagnostic.hint(format!("`{function}` has the type parameters {}", listed(&known))),
        });
    }

    /// Returns the qualified name of the type in a module of the library.
    fn elsewhere(&self, word: &str) -> Option<String> {
        let names = self.context.library.modules.values().flat_map(|module| module.types.keys());
        names.map(Text::as_str).find(|name| name.rsplit('.').next() == Some(word)).map(str::to_owned)
    }

    fn qualified(&mut self, path: &ast::Path, module: &Name) -> Option<(Ty, usize)> {
        let Some(used) = self.declarations.here_mut().modules.get_mut(&module.text) else {
            let top = self.context.files.start(self.declarations.file);
            self.context.report_all(self.declarations.unknown_module(
                module,
                self.context.library,
                self.context.files,
                top,
            ));
            return None;
        };
        used.used = true;
        let (used_module, is_file) = (used.module.clone(), used.file.is_some());
        self.declarations.refer(module.span, Symbol::Module(used_module.clone()));
        let whole = format!("{}.{}", used_module, path.last());
        if is_file {
            return self.of_file(path, &whole);
        }
        let types = &self.context.library.modules.get(&used_module)?.types;
        if types.contains_key(whole.as_str()) {
            self.declarations.refer(path.last().span, Symbol::Type(whole.as_str().into()));
            return Some((Ty::named(&whole), 0));
        }
        let near = nearest(&whole, types.keys().map(Text::as_str)).map(str::to_owned);
        self.unknown(path, near)
    }

    /// Resolves a type that another file of the program declares.
    fn of_file(&mut self, path: &ast::Path, whole: &str) -> Option<(Ty, usize)> {
        if let Some(declared) = self.declarations.aliases.get(whole) {
            if !declared.public {
                let diagnostic = private_item(path.last(), path, declared.span);
                self.context.report(diagnostic);
            }
            return Some((self.alias(path.last(), whole.into()), 0));
        }
        let Some(declared) = self.declarations.types.get(whole) else {
            let module = whole.rsplit_once('.').map_or("", |(module, _)| module);
            let types = self.declarations.types.iter().filter(|(_, declared)| declared.public);
            let known = types
                .map(|(name, _)| name.as_str())
                .filter(|name| name.rsplit_once('.').is_some_and(|(declared_in, _)| declared_in == module));
            let near = nearest(whole, known).and_then(|near| near.rsplit('.').next());
            let near = near.map(|near| format!("{}.{near}", path.qualifier()[0]));
            return self.unknown(path, near);
        };
        if !declared.public {
            let diagnostic = private_item(path.last(), path, declared.span);
            self.context.report(diagnostic);
        }
        self.declarations.refer(path.last().span, Symbol::Type(whole.into()));
        Some((Ty::named(whole), 0))
    }

    fn no_type(&mut self, path: &ast::Path, advice: &str) -> Option<(Ty, usize)> {
        let diagnostic = Diagnostic::new(Code::UnknownType, format!("there is no type `{path}`"));
        self.context.report(diagnostic.at(path.span, "not declared").hint(advice));
        None
    }

    fn unknown(&mut self, path: &ast::Path, near: Option<String>) -> Option<(Ty, usize)> {
        let mut diagnostic =
            Diagnostic::new(Code::UnknownType, format!("there is no type `{path}`")).at(path.span, "not declared");
        diagnostic = match near {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), path.span, near),
            None if path.to_string().len() == 1 => diagnostic
                .hint(format!("a type that stands for any type is in lower case: `{}`", path.to_string().to_lowercase())),
            None if path.to_string().eq_ignore_ascii_case("http.request") => diagnostic
                .hint("name what the route reads as its parameters: `(page: Int = 1, header accept: Text, body order: Order)`"),
            None => diagnostic.hint(format!("declare it: `record {} {{ … }}`", path.last())),
        };
        self.context.report(diagnostic);
        None
    }
}

/// Returns the error for an item of another module that is not public.
pub(crate) fn private_item(name: &Name, path: &dyn std::fmt::Display, declared: Span) -> Diagnostic {
    Diagnostic::new(Code::PrivateItem, format!("`{path}` is private"))
        .at(name.span, "only its own module may use it")
        .because(declared, "declared here without `pub`")
        .hint("write `pub` before its declaration")
}

fn example(path: &ast::Path, wanted: usize) -> String {
    match wanted {
        0 => path.to_string(),
        1 => format!("{path}(Int)"),
        _ => format!("{path}(Text, Int)"),
    }
}

fn assemble(name: Ty, mut parts: Vec<Ty>) -> Ty {
    match (name.name().map(Text::as_str), parts.pop(), parts.pop()) {
        (Some("List"), Some(element), None) => Ty::list(element),
        (Some("Option"), Some(some), None) => Ty::option(some),
        (Some("Map"), Some(value), Some(key)) => Ty::map(key, value),
        (Some("Result"), Some(err), Some(ok)) => Ty::result(ok, err),
        _ => name,
    }
}
