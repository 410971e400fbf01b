//! Symbols: everything that has a name, and the references to it.

use weir_host::Text;
use weir_syntax::Span;

use crate::typed_tree::LocalId;

/// A declared entity.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
