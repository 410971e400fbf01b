//! Symbols: everything that has a name, and the references to it.

use weir_host::Text;
use weir_syntax::Span;
use weir_syntax::ast::FileIndex;

/// The id of a local name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocalId {
    pub(crate) file: FileIndex,
    /// The number in the file.
    pub(crate) index: u32,
}

/// A declared entity.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Symbol {
    /// A local name.
    Local(LocalId),
    /// A `fn` of the program.
    Function(Text),
    /// A shared value.
    Shared(Text),
    /// A constraint.
    Constraint(Text),
    /// A `config` or `secret`.
    Config(Text),
    /// A `const`.
    Constant(Text),
    /// A service.
    Service(Text),
    /// A record, enum or host type, by its qualified name.
    Type(Text),
    /// A type parameter: its `fn` and its name.
    TypeParameter(Text, Text),
    /// A variant: its enum and its name.
    Variant(Text, Text),
    /// A field: its record and its name.
    Field(Text, Text),
    /// A function of the library, by its path.
    HostFunction(Text),
    /// A source of the library, by its path.
    Source(Text),
    /// A module of the library.
    Module(Text),
}

impl Symbol {
    /// Returns the module of the program that declares the symbol; empty for the main file, and `None` for a symbol that no
    /// item declares.
    pub(crate) fn module(&self) -> Option<&str> {
        let name = match self {
            Symbol::Function(name)
            | Symbol::Shared(name)
            | Symbol::Constraint(name)
            | Symbol::Config(name)
            | Symbol::Constant(name)
            | Symbol::Service(name)
            | Symbol::Type(name)
            | Symbol::Variant(name, _)
            | Symbol::Field(name, _) => name,
            Symbol::Local(_)
            | Symbol::TypeParameter(..)
            | Symbol::HostFunction(_)
            | Symbol::Source(_)
            | Symbol::Module(_) => return None,
        };
        Some(name.rsplit_once('.').map_or("", |(module, _)| module))
    }
}

/// A place that names a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The span of the name.
    pub span: Span,
    /// The symbol that it names.
    pub symbol: Symbol,
    /// True if this is the symbol's declaration.
    pub defines: bool,
}
