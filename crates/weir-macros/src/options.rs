//! `#[derive(weir::FunctionOptions)]`: implements `weir::FunctionOptions` for a struct whose fields are parameters of host functions.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Result};

use crate::parameter::{some_default, supported};

/// Expands the derive macro.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    syn::parse2::<DeriveInput>(input).and_then(|input| implementation(&input)).unwrap_or_else(Error::into_compile_error)
}

fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics.params, "options have no generic parameters"));
    }
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "options are the named fields of a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "options are the named fields of a struct"));
    };
    let described = fields.named.iter().map(described).collect::<Result<Vec<_>>>()?;
    let taken = fields.named.iter().zip(0..).map(taken);
    let ident = &input.ident;
    Ok(quote_spanned! { Span::mixed_site()=>
        #[automatically_derived]
        impl ::weir::FunctionOptions for #ident {
            fn describe(builder: ::weir::macros::FunctionBuilder) -> ::weir::macros::FunctionBuilder {
                builder #(#described)*
            }

            fn take(
                call: &mut ::weir::Call<'_>,
                first: usize,
            ) -> ::core::result::Result<Self, ::std::boxed::Box<::weir::Failure>> {
                ::core::result::Result::Ok(Self { #(#taken),* })
            }
        }
    })
}

/// Generates the call of `weir::macros::FunctionBuilder` for a field.
fn described(field: &Field) -> Result<TokenStream> {
    supported(&field.ty)?;
    let mut default = quote!(::core::option::Option::None);
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("default")) {
        default = some_default(&attribute.parse_args::<Expr>()?);
    }
    let (name, ty) = (name(field), &field.ty);
    Ok(quote_spanned!(ty.span()=> .takes::<#ty>(#name, #default)))
}

fn taken((field, index): (&Field, usize)) -> TokenStream {
    let (ident, name, ty) = (&field.ident, name(field), &field.ty);
    quote_spanned!(ty.span().resolved_at(Span::mixed_site())=> #ident: call.take::<#ty>(first + #index, #name)?)
}

/// Returns the field's name in Weir.
fn name(field: &Field) -> String {
    field.ident.as_ref().map(|ident| ident.to_string().trim_start_matches("r#").to_owned()).unwrap_or_default()
}
