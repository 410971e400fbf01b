//! Items: the declarations at the top level of a file.

use super::{Block, Docs, Expr, FileIndex, Name, Path, Pattern, Service, Session, TableDeclaration, Type};
use crate::Span;
use std::sync::Arc;

/// One item.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// The file that has it.
    pub file: FileIndex,
    /// Documentation above it.
    pub docs: Docs,
    /// Source range of `pub`, if other modules may use the item.
    pub public: Option<Span>,
    /// Form of the item.
    pub kind: ItemKind,
    /// Source range, without the documentation.
    pub span: Span,
}

/// The forms of an item. Source from which no item can be read is reported and left out.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemKind {
    /// `use http, files`.
    Use(Use),
    /// `library common = "../common"`.
    Library(LibraryFolder),
    /// `shared name = value`.
    Shared(Shared),
    /// `constraint ledger on billing.post`.
    Constraint(Constraint),
    /// `table users: User key name`.
    Table(TableDeclaration),
    /// `config rate: Int = 100`, `secret signing_key: Bytes`.
    Config(Config),
    /// `const attempts_max = 3`.
    Constant(NamedConstant),
    /// `type Prices = Map(Text, Int)`.
    Alias(TypeAlias),
    /// `record Post { id: Int }`.
    Record(Record),
    /// `enum Shape { Circle(radius: Float), Empty }`.
    Enum(Enum),
    /// `fn name(a: Int) -> Int { … }`.
    Function(Function),
    /// `service name on http(port: 8080) { … }`.
    Service(Service),
    /// `for x in source { … }`.
    Entry(Entry),
    /// `on failure of files.read { … }`, for the whole file.
    FailureHandler(FailureHandler),
    /// `test "name" { … }`.
    Test(Test),
}

/// `library common = "../common"`: a folder of modules that programs share.
#[derive(Clone, PartialEq, Debug)]
pub struct LibraryFolder {
    /// Name, with which the modules of the folder begin: `use common.dates`.
    pub name: Name,
    /// Path of the folder, relative to that of the program.
    pub path: Arc<str>,
    /// Source range of the path, including the quotes.
    pub path_span: Span,
}

/// `use http, billing.invoices, my_module as m`.
#[derive(Clone, PartialEq, Debug)]
pub struct Use {
    /// Modules; at least one.
    pub modules: Vec<UsedModule>,
}

/// One module of a `use`.
#[derive(Clone, PartialEq, Debug)]
pub struct UsedModule {
    /// Folders of the module, outermost first.
    pub folders: Vec<Name>,
    /// Name of the module.
    pub name: Name,
    /// Name of the module in this file.
    pub alias: Option<Name>,
    /// Source range of folders, name and alias.
    pub span: Span,
}

impl UsedModule {
    /// Returns the name of the module with those of its folders: `billing.invoices`.
    #[must_use]
    pub fn path(&self) -> Arc<str> {
        if self.folders.is_empty() {
            return self.name.text.clone();
        }
        let names = self.folders.iter().chain([&self.name]).map(Name::as_str);
        names.collect::<Vec<_>>().join(".").into()
    }

    /// Returns the name that the module has in the file.
    #[must_use]
    pub fn called(&self) -> &Name {
        self.alias.as_ref().unwrap_or(&self.name)
    }
}

/// `shared name: Type = value`: one value for all flows, or one for each session if `per session` follows.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// Name.
    pub name: Name,
    /// Type, if written.
    pub ty: Option<Type>,
    /// Initial value.
    pub value: Expr,
    /// True if `per session` follows.
    pub per_session: bool,
}

/// `constraint ledger per session on billing.post, read billing.total`: a resource outside the program that steps hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraint {
    /// Name.
    pub name: Name,
    /// True if `per session` follows: all steps hold it per session.
    pub per_session: bool,
    /// Functions and modules behind `on`, each call of which holds it.
    pub bindings: Vec<ConstraintBinding>,
}

/// One function or module that a constraint is bound to.
#[derive(Clone, PartialEq, Debug)]
pub struct ConstraintBinding {
    /// True if `read` precedes: a call holds the constraint together with other readers.
    pub read: bool,
    /// Path of the function, or name of the module.
    pub path: Path,
    /// Source range of `read` and the path.
    pub span: Span,
}

/// `config rate: Int = 100` or `secret signing_key: Bytes`: a value that is set where the program runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// True for a `secret`.
    pub secret: bool,
    /// Name.
    pub name: Name,
    /// Type; for a secret, the form in which it is written.
    pub ty: Type,
    /// Value if none is set.
    pub default: Option<Expr>,
}

/// `const attempts_max = 3`.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedConstant {
    /// Name.
    pub name: Name,
    /// Type, if it is written.
    pub ty: Option<Type>,
    /// The constant expression.
    pub value: Expr,
}

/// `type Prices = Map(Text, Int)`: another name of a type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeAlias {
    /// The name.
    pub name: Name,
    /// The type that it stands for.
    pub ty: Type,
}

/// `record Post { id: Int, title: Text }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Name of the type.
    pub name: Name,
    /// Fields in source order.
    pub fields: Vec<FieldDeclaration>,
}

/// One field of a record declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldDeclaration {
    /// Documentation above it.
    pub docs: Docs,
    /// Name of the field.
    pub name: Name,
    /// Type of the field.
    pub ty: Type,
    /// Name of the field outside the program, in JSON and the like.
    pub external: Option<ExternalName>,
    /// Value of the field if a literal leaves it out.
    pub default: Option<Expr>,
    /// Source range from the name to the end.
    pub span: Span,
}

/// `as "user-name"`: the name of a field or variant outside the program.
#[derive(Clone, PartialEq, Debug)]
pub struct ExternalName {
    /// The name with escapes resolved.
    pub text: Arc<str>,
    /// Source range, including the quotes.
    pub span: Span,
}

/// `enum Shape { Circle(radius: Float), Square(Float), Empty }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Enum {
    /// Name of the type.
    pub name: Name,
    /// Variants in source order.
    pub variants: Vec<Variant>,
}

/// One variant of an enum declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Variant {
    /// Documentation above it.
    pub docs: Docs,
    /// Name of the variant.
    pub name: Name,
    /// Values of the payload, in source order.
    pub payload: Vec<PayloadField>,
    /// Name of the variant outside the program, in JSON and the like.
    pub external: Option<ExternalName>,
    /// Source range from the name to the end.
    pub span: Span,
}

/// One value of a variant's payload.
#[derive(Clone, PartialEq, Debug)]
pub struct PayloadField {
    /// Name, if there is one.
    pub name: Option<Name>,
    /// Type.
    pub ty: Type,
    /// Source range of name and type.
    pub span: Span,
}

/// `fn name(a: Int, b: Text = "x") -> Type { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Name.
    pub name: Name,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Return type; `()` if none is written.
    pub returns: Option<Type>,
    /// Body.
    pub body: Block,
}

/// One parameter of a `fn` or a route.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Name.
    pub name: Name,
    /// Type.
    pub ty: Type,
    /// Default value.
    pub default: Option<Expr>,
    /// Source range of name, type and default.
    pub span: Span,
}

/// `for x in source { … }` at the top level: each element starts one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Pattern that binds each element.
    pub pattern: Pattern,
    /// The source of the elements.
    pub source: Expr,
    /// `session = value`, at the head of the braces.
    pub session: Option<Session>,
    /// Body of one flow.
    pub body: Block,
    /// `at end { … }`: runs once, after the last element.
    pub end: Option<Block>,
}

/// `on failure of files.read(name) as failure { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct FailureHandler {
    /// The function whose failures it handles.
    pub function: Path,
    /// Patterns for the first arguments of the call that failed.
    pub arguments: Vec<Pattern>,
    /// Name of the failure in the body.
    pub failure: Option<Name>,
    /// Body that runs instead.
    pub body: Block,
    /// Source range of the handler.
    pub span: Span,
}

/// `test "name" { … }`.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// Name of the test with escapes resolved.
    pub name: Arc<str>,
    /// Source range of the name, including the quotes.
    pub name_span: Span,
    /// Body of the test.
    pub body: Block,
}
