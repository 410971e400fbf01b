//! Structs: a record if the fields are named, otherwise the field itself or a tuple.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FieldsNamed, FieldsUnnamed, Type};

use super::DerivedType;

/// Generates a record for `struct Post { id: i64, title: String }`.
pub(super) fn record(derived: &DerivedType<'_>, fields: &FieldsNamed) -> TokenStream {
    let idents: Vec<_> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
    let names: Vec<_> = idents.iter().map(|ident| ident.to_string().trim_start_matches("r#").to_owned()).collect();
    let types: Vec<&Type> = fields.named.iter().map(|field| &field.ty).collect();
    let described =
        types.iter().zip(&names).map(|(ty, name)| quote_spanned!(ty.span()=> ::weir::macros::field::<#ty>(#name)));
    let read = idents
        .iter()
        .zip(&types)
        .zip(&names)
        .map(|((ident, ty), name)| quote_spanned!(ty.span()=> #ident: parts.field::<#ty>(#name)?));
    let written = idents
        .iter()
        .zip(&types)
        .map(|(ident, ty)| quote_spanned!(ty.span()=> <#ty as ::weir::HostType>::into_value(self.#ident)?));
    let shape = quote!(::weir::TypeShape::Record(::std::vec![#(#described),*]));
    let conversions = quote! {
        fn from_value(value: ::weir::Value) -> ::core::result::Result<Self, ::weir::Failure> {
            let ::weir::Value::Record(parts) = value else {
                return ::core::result::Result::Err(::weir::macros::mismatched::<Self>(&value));
            };
            let mut parts = ::weir::macros::Parts::new(parts);
            ::core::result::Result::Ok(Self { #(#read),* })
        }

        fn into_value(self) -> ::core::result::Result<::weir::Value, ::weir::Failure> {
            ::core::result::Result::Ok(::weir::Value::Record(::core::convert::From::from([
                #(#written),*
            ])))
        }
    };
    derived.named(&shape, &types, &conversions)
}

/// Generates an `Int` for `struct PostId(i64)`, and a tuple for `struct Point(f64, f64)`.
pub(super) fn tuple(derived: &DerivedType<'_>, fields: &FieldsUnnamed) -> TokenStream {
    let types: Vec<&Type> = fields.unnamed.iter().map(|field| &field.ty).collect();
    match types.as_slice() {
        [] => unit(derived),
        [inner] => newtype(derived, inner),
        types => several(derived, types),
    }
}

fn newtype(derived: &DerivedType<'_>, inner: &Type) -> TokenStream {
    let ident = derived.ident;
    quote_spanned! { inner.span()=>
        #[automatically_derived]
        impl ::weir::HostType for #ident {
            fn ty() -> ::weir::Type {
                <#inner as ::weir::HostType>::ty()
            }

            fn define(definitions: &mut ::std::vec::Vec<::weir::TypeDefinition>) {
                <#inner as ::weir::HostType>::define(definitions);
            }

            fn from_value(value: ::weir::Value) -> ::core::result::Result<Self, ::weir::Failure> {
                <#inner as ::weir::HostType>::from_value(value).map(Self)
            }

            fn into_value(self) -> ::core::result::Result<::weir::Value, ::weir::Failure> {
                <#inner as ::weir::HostType>::into_value(self.0)
            }

            #[inline]
            fn copied(value: &::weir::Value) -> ::core::option::Option<Self> {
                <#inner as ::weir::HostType>::copied(value).map(Self)
            }
        }
    }
}

fn several(derived: &DerivedType<'_>, types: &[&Type]) -> TokenStream {
    let ident = derived.ident;
    let described = types.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as ::weir::HostType>::ty()));
    let parts = types.iter().map(|ty| quote_spanned!(ty.span()=> parts.next::<#ty>()?));
    let indices = (0..types.len()).map(syn::Index::from);
    quote! {
        #[automatically_derived]
        impl ::weir::HostType for #ident {
            fn ty() -> ::weir::Type {
                ::weir::Type::tuple(::std::vec![#(#described),*])
            }

            fn define(definitions: &mut ::std::vec::Vec<::weir::TypeDefinition>) {
                #(<#types as ::weir::HostType>::define(definitions);)*
            }

            fn from_value(value: ::weir::Value) -> ::core::result::Result<Self, ::weir::Failure> {
                let ::weir::Value::Record(parts) = value else {
                    return ::core::result::Result::Err(::weir::macros::mismatched::<Self>(&value));
                };
                let mut parts = ::weir::macros::Parts::new(parts);
                ::core::result::Result::Ok(Self(#(#parts),*))
            }

            fn into_value(self) -> ::core::result::Result<::weir::Value, ::weir::Failure> {
                ::core::result::Result::Ok(::weir::Value::Record(::core::convert::From::from([
                    #(::weir::HostType::into_value(self.#indices)?),*
                ])))
            }
        }
    }
}

/// Generates `()` for `struct Nothing;`.
pub(super) fn unit(derived: &DerivedType<'_>) -> TokenStream {
    let ident = derived.ident;
    quote! {
        #[automatically_derived]
        impl ::weir::HostType for #ident {
            fn ty() -> ::weir::Type {
                ::weir::Type::Unit
            }

            fn from_value(value: ::weir::Value) -> ::core::result::Result<Self, ::weir::Failure> {
                <() as ::weir::HostType>::from_value(value).map(|()| Self {})
            }

            fn into_value(self) -> ::core::result::Result<::weir::Value, ::weir::Failure> {
                ::core::result::Result::Ok(::weir::Value::Unit)
            }
        }
    }
}
