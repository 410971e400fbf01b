//! Configuration of a program: the values of its `config` and `secret` declarations.
//!
//! The declarations are read from the tree, so that a program is checked once, with its values. A value is looked for in
//! 1. `--set`, 2. the environment, 3. a file that the environment names, 4. the file of `--config`.

use std::env;
use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use weir_host::{Library, Secret, Text, Type, Value};
use weir_library::configuration;
use weir_library::crypto::Secrets;
use weir_syntax::ast::{self, ItemKind, Tree, TypeKind};
use weir_syntax::{SourceFile, SourceId};

use crate::Exit;
use crate::arguments::ConfigurationArguments;
use crate::terminal::Terminal;

/// Maximum length of a file with configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A `config` or `secret` of a program.
struct Declaration {
    name: String,
    ty: Type,
    secret: bool,
    has_default: bool,
}

/// A text that is the value of a declaration, and its place for messages.
struct Found {
    text: String,
    place: String,
}

/// The configuration of a program, and everything that is wrong with it.
#[derive(Default)]
pub(crate) struct Configuration {
    values: IndexMap<Text, Value>,
    secrets: IndexMap<Text, Secret>,
    problems: Vec<String>,
    /// The files that variables of the environment name.
    pub(crate) files: Vec<PathBuf>,
}

impl Configuration {
    /// Reads the configuration of a program that is run.
    pub(crate) fn read(id: SourceId, file: &SourceFile, arguments: &ConfigurationArguments) -> Configuration {
        let declarations = declarations(&weir_syntax::parse(id, file.text()).tree);
        let mut read = Configuration::default();
        let set = read.set(arguments);
        let mut of_file = read.file(arguments.config.as_deref());
        for name in set.keys().chain(of_file.keys()) {
            read.check_name(name, &declarations);
        }
        for declaration in &declarations {
            let found = read.found(declaration, &set, &mut of_file);
            read.take(declaration, found);
        }
        read
    }

    /// Reads the configuration of a program that is tested or looked at: its secrets have known values, and names in `--set` that are
    /// meant for other programs are left out.
    #[cfg(feature = "tools")]
    pub(crate) fn read_for_tests(id: SourceId, file: &SourceFile, arguments: &ConfigurationArguments) -> Configuration {
        let declarations = declarations(&weir_syntax::parse(id, file.text()).tree);
        let mut read = Configuration::default();
        let set = read.set(arguments);
        let mut of_file = read.file(arguments.config.as_deref());
        for declaration in declarations.iter().filter(|declaration| !declaration.secret) {
            let found = read.found(declaration, &set, &mut of_file);
            read.take(declaration, found);
        }
        read
    }

    /// Passes the values to the compiler, and the secrets to the functions.
    pub(crate) fn apply(&self, library: &mut Library) {
        library.configuration = self.values.clone();
        library.environment.insert(Secrets::new(self.secrets.clone()));
    }

    /// Reports everything that is missing or wrong.
    ///
    /// # Errors
    /// Fails with the exit code if there is anything.
    pub(crate) fn check(&self, terminal: &mut Terminal) -> Result<(), Exit> {
        match &self.problems[..] {
            [] => Ok(()),
            [only] => Err(terminal.fail(Exit::Environment, only, &[])),
            several => {
                let message = format!("the configuration has {} problems", several.len());
                let several: Vec<&str> = several.iter().map(String::as_str).collect();
                Err(terminal.fail(Exit::Environment, &message, &several))
            }
        }
    }

    fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Returns the values of `--set`.
    fn set(&mut self, arguments: &ConfigurationArguments) -> IndexMap<String, String> {
        let mut set = IndexMap::new();
        for argument in &arguments.set {
            match argument.split_once('=') {
                Some((name, text)) => _ = set.insert(name.trim().to_owned(), text.to_owned()),
                None => self.problem(format!("`--set {argument}` must have the form `--set NAME=VALUE`")),
            }
        }
        set
    }

    /// Returns the values of the file of `--config`.
    fn file(&mut self, path: Option<&Path>) -> IndexMap<String, Found> {
        let Some(path) = path else { return IndexMap::new() };
        let place = path.display().to_string();
        let table = read_file(path)
            .and_then(|text| text.parse::<toml::Table>().map_err(|error| format!("is not TOML: {}", error.message())));
        let table = match table {
            Ok(table) => table,
            Err(why) => {
                self.problem(format!("the file `{place}` of `--config` {why}"));
                return IndexMap::new();
            }
        };
        let mut values = IndexMap::new();
        for (name, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(value) => value.to_string(),
                _ => {
                    self.problem(format!("`{name}` in `{place}` must be a text, a number, `true` or `false`"));
                    continue;
                }
            };
            values.insert(name, Found { text, place: format!("in `{place}`") });
        }
        values
    }

    /// Reports a name in `--set` or the file that the program does not declare.
    fn check_name(&mut self, name: &str, declarations: &[Declaration]) {
        if declarations.iter().any(|declaration| declaration.name == name) {
            return;
        }
        let known: Vec<String> = declarations.iter().map(|declaration| format!("`{}`", declaration.name)).collect();
        let known = if known.is_empty() { "it declares none".into() } else { format!("it has {}", known.join(", ")) };
        self.problem(format!("the program has no `config {name}`; {known}"));
    }

    /// Looks for the value of a declaration.
    fn found(
        &mut self,
        declaration: &Declaration,
        set: &IndexMap<String, String>,
        of_file: &mut IndexMap<String, Found>,
    ) -> Option<Found> {
        let name = &declaration.name;
        if let Some(text) = set.get(name) {
            if !declaration.secret {
                return Some(Found { text: text.clone(), place: "in `--set`".into() });
            }
            self.problem(format!(
                "the secret `{name}` must not be set with `--set`: other users of the machine can see command lines"
            ));
        }
        let variable = variable(name);
        if let Some(text) = env::var_os(&variable) {
            let place = format!("in the environment variable `{variable}`");
            match text.into_string() {
                Ok(text) => return Some(Found { text, place }),
                Err(_) => self.problem(format!("`{name}` {place}: not UTF-8")),
            }
        }
        let variable = format!("{variable}_FILE");
        if let Some(path) = env::var_os(&variable) {
            self.files.push(PathBuf::from(&path));
            match read_file(Path::new(&path)) {
                Ok(text) => {
                    let text = text.trim_end_matches(['\n', '\r']).to_owned();
                    return Some(Found { text, place: format!("in the file that `{variable}` names") });
                }
                Err(why) => self.problem(format!("the file that the environment variable `{variable}` names {why}")),
            }
        }
        of_file.swap_remove(name)
    }

    /// Takes the value of a declaration, or reports that it is missing or wrong. A secret is never shown.
    fn take(&mut self, declaration: &Declaration, found: Option<Found>) {
        let Declaration { name, ty, secret, has_default } = declaration;
        let Some(Found { text, place }) = found else {
            if !has_default {
                self.problem(missing(declaration));
            }
            return;
        };
        let wrong = |what: &dyn Display| format!("`{name}` {place}: {what}");
        match secret {
            true => match configuration::secret(ty, &text) {
                Ok(secret) => _ = self.secrets.insert(name.as_str().into(), secret),
                Err(what) => self.problem(wrong(&what)),
            },
            false => match configuration::value(ty, &text) {
                Ok(value) => _ = self.values.insert(name.as_str().into(), value),
                Err(what) => self.problem(wrong(&what)),
            },
        }
    }
}

/// Returns the message for a declaration without a value.
fn missing(declaration: &Declaration) -> String {
    let Declaration { name, ty, secret, .. } = declaration;
    let variable = variable(name);
    if *secret {
        let form = if *ty == Type::Bytes { " (in base64)" } else { "" };
        return format!(
            "`secret {name}` is not set: set the environment variable `{variable}`{form}, or `{variable}_FILE` to the \
             name of a file that contains it"
        );
    }
    format!("`config {name}: {ty}` is not set: set the environment variable `{variable}`, or pass `--set {name}=…`")
}

/// Returns the environment variable of a name.
fn variable(name: &str) -> String {
    format!("WEIR_{}", name.to_uppercase())
}

/// Reads a file of limited length; the error says what is wrong with it.
fn read_file(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if text.len() as u64 > FILE_BYTES_MAX { Err(format!("is longer than {FILE_BYTES_MAX} bytes")) } else { Ok(text) }
}

/// Returns the declarations whose types are right; the compiler reports the others.
fn declarations(tree: &Tree) -> Vec<Declaration> {
    let declared = tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Config(config) => Some(Declaration {
            name: config.name.to_string(),
            ty: type_of(&config.ty)?,
            secret: config.secret,
            has_default: config.default.is_some(),
        }),
        _ => None,
    });
    declared.collect()
}

fn type_of(ty: &ast::Type) -> Option<Type> {
    let TypeKind::Named { path, .. } = &ty.kind else { return None };
    let [name] = &path.names[..] else { return None };
    Some(match name.as_str() {
        "Bool" => Type::Bool,
        "Int" => Type::Int,
        "Float" => Type::Float,
        "Text" => Type::Text,
        "Size" => Type::Size,
        "Duration" => Type::Duration,
        "Bytes" => Type::Bytes,
        _ => return None,
    })
}
