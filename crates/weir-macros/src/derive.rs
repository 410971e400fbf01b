//! `#[derive(weir::Type)]`: implements `weir::HostType` for a Rust type.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitStr, Path, Result};

use crate::docs;

mod enumeration;
mod opaque;
mod record;

/// The arguments of the attribute `#[weir(…)]`.
#[derive(Default)]
pub(crate) struct TypeOptions {
    name: Option<LitStr>,
    opaque: Option<Span>,
    unique: Option<Span>,
    handle: Option<Path>,
    snapshots: Option<Path>,
}

/// A type with a derived implementation: its Rust name, its name in Weir and its documentation.
pub(crate) struct DerivedType<'a> {
    ident: &'a Ident,
    name: String,
    doc: String,
}

/// Expands the derive macro.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(input).and_then(|input| implementation(&input)).unwrap_or_else(Error::into_compile_error)
}

fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        let why = "a derived type has no generic parameters: define a newtype for each instance";
        return Err(Error::new_spanned(&input.generics.params, why));
    }
    let options = TypeOptions::parse(&input.attrs)?;
    let derived = DerivedType {
        ident: &input.ident,
        name: options.name.as_ref().map_or_else(|| input.ident.to_string(), LitStr::value),
        doc: docs::text(&input.attrs),
    };
    if options.opaque.is_some() {
        return Ok(opaque::expand(
            &derived,
            options.unique.is_some(),
            (options.handle.as_ref(), options.snapshots.as_ref()),
        ));
    }
    if let Some(span) = options.unique {
        return Err(Error::new(span, "only an opaque type can be `unique`: `#[weir(opaque, unique)]`"));
    }
    if let Some(handle) = &options.handle {
        return Err(Error::new_spanned(
            handle,
            "only an opaque type has a `handle`: `#[weir(opaque, unique, handle = …)]`",
        ));
    }
    if let Some(snapshots) = &options.snapshots {
        return Err(Error::new_spanned(
            snapshots,
            "only an opaque type has `snapshots`: `#[weir(opaque, unique, snapshots = …)]`",
        ));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(record::record(&derived, fields)),
            _ if options.name.is_some() => Err(Error::new(
                options.name.span(),
                "a tuple struct becomes its contents in Weir and has no name: remove `name`",
            )),
            Fields::Unnamed(fields) => Ok(record::tuple(&derived, fields)),
            Fields::Unit => Ok(record::unit(&derived)),
        },
        Data::Enum(data) => enumeration::expand(&derived, data),
        Data::Union(data) => {
            Err(Error::new_spanned(data.union_token, "the fields of a union cannot be read: make it opaque"))
        }
    }
}

impl TypeOptions {
    fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut options = TypeOptions::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("weir")) {
            attribute.parse_nested_meta(|meta| {
                let span = meta.path.span();
                if meta.path.is_ident("opaque") {
                    options.opaque = Some(span);
                } else if meta.path.is_ident("unique") {
                    options.unique = Some(span);
                } else if meta.path.is_ident("name") {
                    options.name = Some(whole_name(meta.value()?.parse()?)?);
                } else if meta.path.is_ident("handle") {
                    options.handle = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("snapshots") {
                    options.snapshots = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error(
                        "the options are `opaque`, `unique`, `handle = function`, `snapshots = function` and `name = \"module.Name\"`",
                    ));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

fn whole_name(name: LitStr) -> Result<LitStr> {
    match name.value().split('.').all(|part| syn::parse_str::<Ident>(part).is_ok()) {
        true => Ok(name),
        false => Err(Error::new_spanned(name, "a type's name is `Name` or `module.Name`")),
    }
}

impl DerivedType<'_> {
    /// Generates the implementation for a named type. `shape` is its definition, `parts` are the types that it
    /// mentions.
    fn named(&self, shape: &TokenStream, parts: &[&syn::Type], conversions: &TokenStream) -> TokenStream {
        let DerivedType { ident, name, doc } = self;
        let parts = parts.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as ::weir::HostType>::define(definitions);));
        quote! {
            #[automatically_derived]
            impl ::weir::HostType for #ident {
                fn ty() -> ::weir::Type {
                    ::weir::Type::named(#name)
                }

                fn define(definitions: &mut ::std::vec::Vec<::weir::TypeDefinition>) {
                    ::weir::macros::define::<Self>(definitions, #doc, || #shape, |definitions| { #(#parts)* });
                }

                #conversions
            }
        }
    }
}
