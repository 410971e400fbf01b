//! Enums: the position of a variant is its tag, and its fields are its payload.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataEnum, Error, Ident, Member, Result, Type, Variant};

use super::DerivedType;

/// Generates the implementation for an enum.
pub(super) fn expand(derived: &DerivedType<'_>, data: &DataEnum) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return Err(Error::new(derived.ident.span(), "an enum without variants has no values"));
    }
    let variants: Vec<VariantTokens<'_>> =
        data.variants.iter().zip(0_u32..).map(|(variant, tag)| VariantTokens::of(variant, tag)).collect();
    let described = variants.iter().map(VariantTokens::described);
    let read = variants.iter().map(VariantTokens::read);
    let written = variants.iter().map(VariantTokens::written);
    let types: Vec<&Type> = variants.iter().flat_map(|variant| variant.types.iter().copied()).collect();
    let shape = quote!(::weir::TypeShape::Enum(::std::vec![#(#described),*]));
    let conversions = quote! {
        fn from_value(value: ::weir::Value) -> ::core::result::Result<Self, ::weir::Failure> {
            match value {
                #(#read)*
                other => ::core::result::Result::Err(::weir::macros::mismatched::<Self>(&other)),
            }
        }

        fn into_value(self) -> ::core::result::Result<::weir::Value, ::weir::Failure> {
            ::core::result::Result::Ok(match self { #(#written)* })
        }
    };
    Ok(derived.named(&shape, &types, &conversions))
}

/// One variant of the enum.
struct VariantTokens<'a> {
    ident: &'a Ident,
    tag: u32,
    members: Vec<Member>,
    types: Vec<&'a Type>,
}

impl<'a> VariantTokens<'a> {
    fn of(variant: &'a Variant, tag: u32) -> Self {
        let members = variant.fields.members().collect();
        VariantTokens {
            ident: &variant.ident,
            tag,
            members,
            types: variant.fields.iter().map(|field| &field.ty).collect(),
        }
    }

    fn names(&self) -> Vec<String> {
        let name = |member: &Member| match member {
            Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        self.members.iter().map(name).collect()
    }

    fn described(&self) -> TokenStream {
        let name = self.ident.to_string();
        let fields = self
            .types
            .iter()
            .zip(self.names())
            .map(|(ty, name)| quote_spanned!(ty.span()=> ::weir::macros::field::<#ty>(#name)));
        quote!(::weir::macros::variant(#name, ::std::vec![#(#fields),*]))
    }

    fn read(&self) -> TokenStream {
        let VariantTokens { ident, tag, members, .. } = self;
        if members.is_empty() {
            return quote! {
                ::weir::Value::Variant(#tag, ::core::option::Option::None) => {
                    ::core::result::Result::Ok(Self::#ident {})
                }
            };
        }
        let names = self.names();
        quote! {
            ::weir::Value::Variant(#tag, ::core::option::Option::Some(parts)) => {
                let mut parts = ::weir::macros::Parts::new(parts);
                ::core::result::Result::Ok(Self::#ident { #(#members: parts.field(#names)?),* })
            }
        }
    }

    fn written(&self) -> TokenStream {
        let VariantTokens { ident, tag, members, .. } = self;
        if members.is_empty() {
            return quote!(Self::#ident {} => ::weir::Value::Variant(#tag, ::core::option::Option::None),);
        }
        let locals: Vec<Ident> = (0..members.len()).map(|index| format_ident!("part_{index}")).collect();
        quote! {
            Self::#ident { #(#members: #locals),* } => {
                ::weir::Value::variant(#tag, [#(::weir::HostType::into_value(#locals)?),*])
            }
        }
    }
}
