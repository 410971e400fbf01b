//! Type inference: types that may contain unknowns, and their unification.
//!
//! A [`Ty`] is a [`enum@weir_host::Type`] that may contain unknowns ([`Ty::Unknown`]), which [`Inference`] solves by
//! unification (Robinson 1965), and [`Ty::Error`], which unifies with everything so that one error is reported once.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Text, Type, TypeShape};

/// The largest number of parts of a value's type.
pub(crate) const TYPE_PARTS_MAX: usize = 1000;

/// A type that may contain unknowns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ty {
    /// The type of an expression with a reported error. It unifies with everything.
    Error,
    /// An unknown, by its number in [`Inference`].
    Unknown(u32),
    /// A type without type arguments, or a named one.
    Plain(Type),
    List(Arc<Ty>),
    Map(Arc<(Ty, Ty)>),
    Option(Arc<Ty>),
    Result(Arc<(Ty, Ty)>),
    Tuple(Arc<[Ty]>),
    Function(Arc<(Vec<Ty>, Ty)>),
}

/// The name of [`Ty::Error`] as the type of a field that is declared with an unknown type. No program can declare it.
const ERROR: &str = "_";

/// The types that stand for the type parameters of a generic function, in one call of it.
pub(crate) type Substitution = IndexMap<Text, Ty>;

impl Ty {
    pub(crate) const UNIT: Ty = Ty::Plain(Type::Unit);
    pub(crate) const BOOL: Ty = Ty::Plain(Type::Bool);
    pub(crate) const INT: Ty = Ty::Plain(Type::Int);
    pub(crate) const FLOAT: Ty = Ty::Plain(Type::Float);
    pub(crate) const TEXT: Ty = Ty::Plain(Type::Text);
    pub(crate) const BYTES: Ty = Ty::Plain(Type::Bytes);
    pub(crate) const TIME: Ty = Ty::Plain(Type::Time);
    pub(crate) const DURATION: Ty = Ty::Plain(Type::Duration);
    pub(crate) const SIZE: Ty = Ty::Plain(Type::Size);
    pub(crate) const FAILURE: Ty = Ty::Plain(Type::Failure);
    pub(crate) const NEVER: Ty = Ty::Plain(Type::Never);

    pub(crate) fn named(name: &str) -> Ty {
        Ty::Plain(Type::Named(name.into()))
    }

    pub(crate) fn parameter(name: &Text) -> Ty {
        Ty::Plain(Type::Parameter(name.clone()))
    }

    pub(crate) fn list(element: Ty) -> Ty {
        Ty::List(Arc::new(element))
    }

    pub(crate) fn map(key: Ty, value: Ty) -> Ty {
        Ty::Map(Arc::new((key, value)))
    }

    pub(crate) fn option(some: Ty) -> Ty {
        Ty::Option(Arc::new(some))
    }

    pub(crate) fn result(ok: Ty, err: Ty) -> Ty {
        Ty::Result(Arc::new((ok, err)))
    }

    pub(crate) fn tuple(elements: Vec<Ty>) -> Ty {
        Ty::Tuple(elements.into())
    }

    pub(crate) fn function(parameters: Vec<Ty>, result: Ty) -> Ty {
        Ty::Function(Arc::new((parameters, result)))
    }

    /// Instantiates a type: each type parameter, such as `T`, becomes an unknown.
    pub(crate) fn of(ty: &Type, parameters: &mut Substitution, inference: &mut Inference) -> Ty {
        let mut part = |ty: &Type| Ty::of(ty, parameters, inference);
        match ty {
            Type::List(element) => Ty::list(part(element)),
            Type::Map(pair) => Ty::map(part(&pair.0), part(&pair.1)),
            Type::Option(some) => Ty::option(part(some)),
            Type::Result(pair) => Ty::result(part(&pair.0), part(&pair.1)),
            Type::Tuple(elements) => Ty::Tuple(elements.iter().map(part).collect()),
            Type::Function(signature) => {
                let taken = signature.0.iter().map(&mut part).collect();
                Ty::function(taken, part(&signature.1))
            }
            Type::Parameter(name) => parameters.entry(name.clone()).or_insert_with(|| inference.fresh()).clone(),
            Type::Named(name) if name.as_str() == ERROR => Ty::Error,
            plain => Ty::Plain(plain.clone()),
        }
    }

    /// Returns the type with each type parameter replaced by its type, or by a new unknown if it has none yet.
    pub(crate) fn instantiated(&self, types: &mut Substitution, inference: &mut Inference) -> Ty {
        self.map_parameters(&mut |name| types.entry(name.clone()).or_insert_with(|| inference.fresh()).clone())
    }

    /// Returns the type with each type parameter replaced by its type, where it has one.
    pub(crate) fn substituted(&self, types: &Substitution) -> Ty {
        self.map_parameters(&mut |name| types.get(name).cloned().unwrap_or_else(|| Ty::parameter(name)))
    }

    fn map_parameters(&self, replace: &mut dyn FnMut(&Text) -> Ty) -> Ty {
        match self {
            Ty::Plain(Type::Parameter(name)) => replace(name),
            Ty::Error | Ty::Unknown(_) | Ty::Plain(_) => self.clone(),
            Ty::List(element) => Ty::list(element.map_parameters(replace)),
            Ty::Map(pair) => Ty::map(pair.0.map_parameters(replace), pair.1.map_parameters(replace)),
            Ty::Option(some) => Ty::option(some.map_parameters(replace)),
            Ty::Result(pair) => Ty::result(pair.0.map_parameters(replace), pair.1.map_parameters(replace)),
            Ty::Tuple(elements) => Ty::Tuple(elements.iter().map(|element| element.map_parameters(replace)).collect()),
            Ty::Function(signature) => {
                let taken = signature.0.iter().map(|ty| ty.map_parameters(replace)).collect();
                Ty::function(taken, signature.1.map_parameters(replace))
            }
        }
    }

    /// Converts a type without type parameters.
    pub(crate) fn fixed(ty: &Type) -> Ty {
        Ty::of(ty, &mut Substitution::new(), &mut Inference::default())
    }

    pub(crate) fn is_never(&self) -> bool {
        *self == Ty::NEVER
    }

    /// Returns the name of a record, enum or host type.
    pub(crate) fn name(&self) -> Option<&Text> {
        match self {
            Ty::Plain(Type::Named(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns whether `<` works on values of the type. On those of a type parameter it does if it works on the type that
    /// the parameter stands for.
    pub(crate) fn has_order(&self) -> bool {
        const ORDERED: [Ty; 9] =
            [Ty::INT, Ty::FLOAT, Ty::TEXT, Ty::TIME, Ty::DURATION, Ty::SIZE, Ty::BYTES, Ty::Error, Ty::NEVER];
        self.parameter_name().is_some() || ORDERED.contains(self)
    }

    /// Returns the types that this type is composed of.
    fn parts(&self) -> Vec<&Ty> {
        match self {
            Ty::Error | Ty::Unknown(_) | Ty::Plain(_) => Vec::new(),
            Ty::List(part) | Ty::Option(part) => vec![part],
            Ty::Map(pair) | Ty::Result(pair) => vec![&pair.0, &pair.1],
            Ty::Tuple(parts) => parts.iter().collect(),
            Ty::Function(signature) => signature.0.iter().chain([&signature.1]).collect(),
        }
    }

    /// Calls `visit` with each type parameter in the type.
    pub(crate) fn each_parameter(&self, visit: &mut dyn FnMut(&Text)) {
        match self.parameter_name() {
            Some(name) => visit(name),
            None => self.parts().into_iter().for_each(|part| part.each_parameter(visit)),
        }
    }

    /// Returns whether a type parameter is a part of the type.
    pub(crate) fn mentions_parameter(&self) -> bool {
        self.parameter_name().is_some() || self.parts().into_iter().any(Ty::mentions_parameter)
    }

    /// Returns whether the type is or contains that of a function.
    pub(crate) fn mentions_function(&self) -> bool {
        matches!(self, Ty::Function(_)) || self.parts().into_iter().any(Ty::mentions_function)
    }

    /// Returns the name of a type parameter.
    pub(crate) fn parameter_name(&self) -> Option<&Text> {
        match self {
            Ty::Plain(Type::Parameter(name)) => Some(name),
            _ => None,
        }
    }

    /// Converts the type for declarations and the IR. An unknown that is still unsolved has no values, so that any type serves.
    pub(crate) fn to_type(&self) -> Type {
        match self {
            Ty::Error => Type::named(ERROR),
            Ty::Unknown(_) => Type::Unit,
            Ty::Plain(ty) => ty.clone(),
            Ty::List(element) => Type::list(element.to_type()),
            Ty::Map(pair) => Type::map(pair.0.to_type(), pair.1.to_type()),
            Ty::Option(some) => Type::option(some.to_type()),
            Ty::Result(pair) => Type::result(pair.0.to_type(), pair.1.to_type()),
            Ty::Tuple(elements) => Type::Tuple(elements.iter().map(Ty::to_type).collect()),
            Ty::Function(signature) => {
                let taken = signature.0.iter().map(Ty::to_type).collect();
                Type::Function(Arc::new((taken, signature.1.to_type())))
            }
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Error | Ty::Unknown(_) => f.write_str("_"),
            Ty::Plain(ty) => write!(f, "{ty}"),
            Ty::List(element) => write!(f, "List({element})"),
            Ty::Map(pair) => write!(f, "Map({}, {})", pair.0, pair.1),
            Ty::Option(some) => write!(f, "Option({some})"),
            Ty::Result(pair) => write!(f, "Result({}, {})", pair.0, pair.1),
            Ty::Tuple(elements) => write!(f, "({})", commas(elements)),
            Ty::Function(signature) => write!(f, "fn({}) -> {}", commas(&signature.0), signature.1),
        }
    }
}

fn commas(types: &[Ty]) -> String {
    types.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ")
}

/// The solutions of unknowns.
#[derive(Default)]
pub(crate) struct Inference {
    known: Vec<Option<Ty>>,
}

impl Inference {
    /// Returns whether all unknowns have a solution.
    pub(crate) fn is_solved(&self) -> bool {
        self.known.iter().all(Option::is_some)
    }

    /// Creates an unknown.
    pub(crate) fn fresh(&mut self) -> Ty {
        self.known.push(None);
        Ty::Unknown(self.known.len() as u32 - 1)
    }

    /// Resolves the outermost unknown of a type.
    pub(crate) fn shallow(&self, ty: &Ty) -> Ty {
        let mut ty = ty;
        while let Ty::Unknown(at) = ty {
            match self.known.get(*at as usize) {
                Some(Some(known)) => ty = known,
                _ => break,
            }
        }
        ty.clone()
    }

    /// Returns whether a type has more than [`TYPE_PARTS_MAX`] parts. Visits no more than that.
    pub(crate) fn is_too_large(&self, ty: &Ty) -> bool {
        self.parts_left(ty, Some(TYPE_PARTS_MAX)).is_none()
    }

    /// Subtracts the parts of a type from `left`; `None` if there are more.
    fn parts_left(&self, ty: &Ty, left: Option<usize>) -> Option<usize> {
        let left = left?.checked_sub(1);
        match self.shallow(ty) {
            Ty::Error | Ty::Unknown(_) | Ty::Plain(_) => left,
            Ty::List(part) | Ty::Option(part) => self.parts_left(&part, left),
            Ty::Map(pair) | Ty::Result(pair) => self.parts_left(&pair.1, self.parts_left(&pair.0, left)),
            Ty::Tuple(parts) => parts.iter().try_fold(left?, |left, part| self.parts_left(part, Some(left))),
            Ty::Function(signature) => {
                let left = signature.0.iter().try_fold(left?, |left, part| self.parts_left(part, Some(left)));
                self.parts_left(&signature.1, left)
            }
        }
    }

    /// Resolves every unknown in a type.
    pub(crate) fn resolve(&self, ty: &Ty) -> Ty {
        match self.shallow(ty) {
            Ty::List(element) => Ty::list(self.resolve(&element)),
            Ty::Map(pair) => Ty::map(self.resolve(&pair.0), self.resolve(&pair.1)),
            Ty::Option(some) => Ty::option(self.resolve(&some)),
            Ty::Result(pair) => Ty::result(self.resolve(&pair.0), self.resolve(&pair.1)),
            Ty::Tuple(elements) => Ty::Tuple(elements.iter().map(|element| self.resolve(element)).collect()),
            Ty::Function(signature) => {
                let taken = signature.0.iter().map(|ty| self.resolve(ty)).collect();
                Ty::function(taken, self.resolve(&signature.1))
            }
            other => other,
        }
    }

    /// Unifies two types by solving unknowns. Returns false if they differ.
    pub(crate) fn unify(&mut self, a: &Ty, b: &Ty) -> bool {
        match (self.shallow(a), self.shallow(b)) {
            (Ty::Error, other) | (other, Ty::Error) => {
                self.spoil(&other);
                true
            }
            (Ty::Unknown(x), Ty::Unknown(y)) if x == y => true,
            (Ty::Unknown(x), other) | (other, Ty::Unknown(x)) => self.fill(x, other),
            (Ty::Plain(x), Ty::Plain(y)) => x == y,
            (Ty::List(x), Ty::List(y)) | (Ty::Option(x), Ty::Option(y)) => self.unify(&x, &y),
            (Ty::Map(x), Ty::Map(y)) | (Ty::Result(x), Ty::Result(y)) => {
                self.unify(&x.0, &y.0) && self.unify(&x.1, &y.1)
            }
            (Ty::Tuple(x), Ty::Tuple(y)) => self.unify_all(&x, &y),
            (Ty::Function(x), Ty::Function(y)) => self.unify_all(&x.0, &y.0) && self.unify(&x.1, &y.1),
            _ => false,
        }
    }

    /// Resolves every unknown in a type to [`Ty::Error`], because the expression that would determine it has an error.
    fn spoil(&mut self, ty: &Ty) {
        match self.shallow(ty) {
            Ty::Unknown(at) => self.known[at as usize] = Some(Ty::Error),
            Ty::List(part) | Ty::Option(part) => self.spoil(&part),
            Ty::Map(pair) | Ty::Result(pair) => {
                self.spoil(&pair.0);
                self.spoil(&pair.1);
            }
            Ty::Tuple(parts) => parts.iter().for_each(|part| self.spoil(part)),
            Ty::Function(signature) => {
                signature.0.iter().for_each(|part| self.spoil(part));
                self.spoil(&signature.1);
            }
            Ty::Error | Ty::Plain(_) => {}
        }
    }

    fn unify_all(&mut self, a: &[Ty], b: &[Ty]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.unify(a, b))
    }

    fn fill(&mut self, unknown: u32, ty: Ty) -> bool {
        if self.mentions(&ty, unknown) {
            return false;
        }
        self.known[unknown as usize] = Some(ty);
        true
    }

    fn mentions(&self, ty: &Ty, unknown: u32) -> bool {
        match self.shallow(ty) {
            Ty::Unknown(at) => at == unknown,
            Ty::List(part) | Ty::Option(part) => self.mentions(&part, unknown),
            Ty::Map(pair) | Ty::Result(pair) => self.mentions(&pair.0, unknown) || self.mentions(&pair.1, unknown),
            Ty::Tuple(parts) => parts.iter().any(|part| self.mentions(part, unknown)),
            Ty::Function(signature) => {
                signature.0.iter().any(|part| self.mentions(part, unknown)) || self.mentions(&signature.1, unknown)
            }
            Ty::Error | Ty::Plain(_) => false,
        }
    }
}

/// Returns the fields of a record, or those of all variants of an enum.
pub(crate) fn fields_of(shape: &TypeShape) -> Vec<&weir_host::Field> {
    match shape {
        TypeShape::Record(fields) => fields.iter().collect(),
        TypeShape::Enum(variants) => variants.iter().flat_map(|variant| &variant.fields).collect(),
        TypeShape::Opaque { .. } => Vec::new(),
    }
}

/// Adds the named types that a type mentions.
pub(crate) fn names_in(ty: &Type, found: &mut Vec<Text>) {
    match ty {
        Type::Named(name) if found.last() != Some(name) => found.push(name.clone()),
        Type::List(part) | Type::Option(part) => names_in(part, found),
        Type::Map(pair) | Type::Result(pair) => {
            names_in(&pair.0, found);
            names_in(&pair.1, found);
        }
        Type::Tuple(parts) => parts.iter().for_each(|part| names_in(part, found)),
        Type::Function(signature) => {
            signature.0.iter().for_each(|part| names_in(part, found));
            names_in(&signature.1, found);
        }
        _ => {}
    }
}
