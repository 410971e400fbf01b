//! Opaque types: shared behind an `Arc`, or moved if they are unique.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Path;

use super::DerivedType;

/// Generates the implementation for a type that only host functions look into.
///
/// `handle` returns the handle of a value of the type, and `snapshots` the number of the store of which a value has snapshots.
pub(super) fn expand(
    derived: &DerivedType<'_>,
    unique: bool,
    (handle, snapshots): (Option<&Path>, Option<&Path>),
) -> TokenStream {
    let ident = derived.ident;
    let shareable = !unique;
    let shape = quote!(::weir::TypeShape::Opaque { shareable: #shareable });
    let implementation = derived.named(&shape, &[], &conversions(unique));
    let host_value = host_value(ident, &derived.name, (handle, snapshots));
    quote!(#implementation #host_value)
}

fn conversions(unique: bool) -> TokenStream {
    let prefix = if unique { "unique" } else { "shared" };
    let step = |name: &str| Ident::new(&format!("{prefix}_{name}"), Span::call_site());
    let (from_value, in_place, in_place_mut) = (step("from_value"), step("in_place"), step("in_place_mut"));
    let value = match unique {
        true => quote!(::weir::Value::Unique(::weir::Unique::new(::std::boxed::Box::new(self)))),
        false => quote!(::weir::Value::Host(::std::sync::Arc::new(self))),
    };
    quote! {
        fn from_value(value: ::weir::Value) -> ::core::result::Result<Self, ::weir::Failure> {
            ::weir::macros::#from_value(value)
        }

        fn into_value(self) -> ::core::result::Result<::weir::Value, ::weir::Failure> {
            ::core::result::Result::Ok(#value)
        }

        #[inline]
        fn in_place(value: &::weir::Value) -> ::core::option::Option<&Self> {
            ::weir::macros::#in_place(value)
        }

        #[inline]
        fn in_place_mut(value: &mut ::weir::Value) -> ::core::option::Option<&mut Self> {
            ::weir::macros::#in_place_mut(value)
        }
    }
}

fn host_value(ident: &Ident, name: &str, (handle, snapshots): (Option<&Path>, Option<&Path>)) -> TokenStream {
    let handle = handle.map(|handle| {
        quote! {
            fn handle(&self) -> ::weir::Value {
                #handle(self)
            }
        }
    });
    let snapshots = snapshots.map(|snapshots| {
        quote! {
            fn snapshots(&self) -> ::core::option::Option<::core::num::NonZeroUsize> {
                #snapshots(self)
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl ::weir::HostValue for #ident {
            fn type_name(&self) -> &'static str {
                #name
            }

            fn as_any(&self) -> &dyn ::core::any::Any {
                self
            }

            fn as_any_mut(&mut self) -> &mut dyn ::core::any::Any {
                self
            }

            fn into_any(
                self: ::std::sync::Arc<Self>,
            ) -> ::std::sync::Arc<dyn ::core::any::Any + ::core::marker::Send + ::core::marker::Sync> {
                self
            }

            fn into_any_box(
                self: ::std::boxed::Box<Self>,
            ) -> ::std::boxed::Box<dyn ::core::any::Any + ::core::marker::Send + ::core::marker::Sync> {
                self
            }

            #handle
            #snapshots
        }
    }
}
