//! Parameters of a host function, and their passing modes.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Pat, PatType, Result, Type};

/// Passing mode of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// By value.
    Value,
    /// By `&`.
    Borrow,
    /// By `&mut`.
    Change,
    /// By `&`, from the values that the embedder provides.
    Environment,
    /// A struct by value whose fields are the last parameters in Weir.
    Options,
}

/// A parameter of a Rust function.
#[derive(Clone)]
pub(crate) struct Parameter {
    /// Name in Weir.
    pub(crate) name: String,
    /// The type, without the `&`.
    pub(crate) ty: Type,
    /// The passing mode.
    pub(crate) passing: Passing,
    /// True if it is passed by `&` to a function that changes it all the same.
    pub(crate) changes_inside: bool,
    /// The value if a call leaves the parameter out.
    pub(crate) default: Option<Expr>,
    /// The index among the arguments of a call, which do not include the environment's values.
    pub(crate) index: usize,
}

impl Parameter {
    /// Reads a parameter, and removes the attributes that rustc does not know.
    pub(crate) fn parse(typed: &mut PatType, index: usize) -> Result<Self> {
        let name = name(&typed.pat)?;
        let attributes = own_attributes(&mut typed.attrs);
        let mut passing = passing(&typed.ty)?;
        let (mut default, mut changes_inside) = (None, false);
        for attribute in &attributes {
            if attribute.path().is_ident("default") {
                default = Some(attribute.parse_args::<Expr>()?);
            } else if attribute.path().is_ident("options") {
                if passing.0 != Passing::Value {
                    return Err(Error::new_spanned(attribute, "options are taken by value"));
                }
                passing.0 = Passing::Options;
            } else if attribute.path().is_ident("changes_inside") {
                if passing.0 != Passing::Borrow {
                    return Err(Error::new_spanned(attribute, "a value that synchronises its changes is taken by `&`"));
                }
                changes_inside = true;
            } else if passing.0 == Passing::Borrow {
                passing.0 = Passing::Environment;
            } else {
                return Err(Error::new_spanned(attribute, "a value from the environment is taken by `&`"));
            }
        }
        if let (Some(default), Passing::Change | Passing::Environment | Passing::Options) = (&default, passing.0) {
            return Err(Error::new_spanned(default, "only parameters taken by value or by `&` can have a default"));
        }
        if let (Some(default), true) = (&default, changes_inside) {
            return Err(Error::new_spanned(default, "a parameter that is changed has no default"));
        }
        Ok(Parameter { name, ty: passing.1, passing: passing.0, changes_inside, default, index })
    }

    /// Returns the name of this parameter's local of the given `kind` in the adaptor.
    pub(crate) fn local(&self, kind: &str) -> Ident {
        format_ident!("{kind}_{}", self.name, span = proc_macro2::Span::mixed_site())
    }

    /// Generates the call of `weir::macros::FunctionBuilder` for this parameter.
    pub(crate) fn described(&self) -> TokenStream {
        let (name, ty) = (&self.name, &self.ty);
        let default = self.default_value();
        match self.passing {
            Passing::Value => quote_spanned!(ty.span()=> .takes::<#ty>(#name, #default)),
            Passing::Borrow if self.changes_inside => quote_spanned!(ty.span()=> .changes::<#ty>(#name)),
            Passing::Borrow => quote_spanned!(ty.span()=> .borrows::<#ty>(#name, #default)),
            Passing::Change => quote_spanned!(ty.span()=> .changes::<#ty>(#name)),
            Passing::Options => quote_spanned!(ty.span()=> .options::<#ty>()),
            Passing::Environment => TokenStream::new(),
        }
    }

    /// Generates the default, if there is one.
    pub(crate) fn default_value(&self) -> TokenStream {
        match &self.default {
            None => quote!(::core::option::Option::None),
            Some(value) => some_default(value),
        }
    }
}

/// Generates a default. A string literal is converted to whichever type the parameter has.
pub(crate) fn some_default(value: &Expr) -> TokenStream {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
            quote_spanned!(value.span()=> ::core::option::Option::Some(::core::convert::Into::into(#value)))
        }
        value => quote_spanned!(value.span()=> ::core::option::Option::Some(#value)),
    }
}

fn name(pattern: &Pat) -> Result<String> {
    match pattern {
        Pat::Ident(ident) if ident.subpat.is_none() => {
            let name = ident.ident.to_string();
            Ok(name.trim_start_matches("r#").trim_start_matches('_').to_owned())
        }
        other => {
            Err(Error::new_spanned(other, "a parameter of a host function needs a name, by which calls can pass it"))
        }
    }
}

/// Removes the attributes that rustc does not know, and returns them.
pub(crate) fn own_attributes(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let own = |attribute: &Attribute| {
        ["default", "environment", "options", "changes_inside"].iter().any(|name| attribute.path().is_ident(name))
    };
    let (own, others) = std::mem::take(attributes).into_iter().partition(own);
    *attributes = others;
    own
}

fn passing(ty: &Type) -> Result<(Passing, Type)> {
    match ty {
        Type::Reference(reference) => {
            if let Some(lifetime) = &reference.lifetime {
                return Err(Error::new(
                    lifetime.span(),
                    "arguments are borrowed only for the call: remove the lifetime",
                ));
            }
            supported(&reference.elem)?;
            let passing = if reference.mutability.is_some() { Passing::Change } else { Passing::Borrow };
            Ok((passing, (*reference.elem).clone()))
        }
        other => supported(other).map(|()| (Passing::Value, other.clone())),
    }
}

/// Refuses types for which a missing trait implementation would give a less helpful error.
pub(crate) fn supported(ty: &Type) -> Result<()> {
    let why = match ty {
        Type::ImplTrait(_) => "a host function names its types: `impl Trait` does not say which value Weir passes",
        Type::Reference(_) => "a reference to a reference cannot be passed",
        Type::TraitObject(_) => "a host function names its types: `dyn Trait` does not say which value Weir passes",
        Type::Ptr(_) => "a raw pointer cannot be passed",
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, why))
}
