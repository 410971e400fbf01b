//! `#[weir::function]`: generates a hidden sibling of a Rust function that creates its `weir::Function`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItem, Item, ItemFn, ItemImpl, Result, Type};

use crate::adaptor;
use crate::construct::StateConstructor;
use crate::host::{HostFunction, refuse_generics, sibling_of};
use crate::marks::FunctionMarks;
use crate::parameter::Parameter;
use crate::type_syntax::is_result;
use crate::words;

/// Expands the attribute. A mistake becomes a compile error beside the item, which stays callable.
pub(crate) fn expand(marks: TokenStream, item: TokenStream) -> TokenStream {
    let mut parsed =
        match syn::parse2::<Item>(item.clone()).or_else(|_| syn::parse2::<ItemFn>(item.clone()).map(Item::Fn)) {
            Ok(parsed) => parsed,
            Err(error) => return with_error(item, error),
        };
    let siblings = match (FunctionMarks::parse(marks), &mut parsed) {
        (Err(error), _) => Err(error),
        (Ok(marks), Item::Fn(function)) => free_function(&marks, function),
        (Ok(marks), Item::Impl(block)) => implementation(&marks, block),
        (Ok(_), other) => Err(Error::new_spanned(other, "`#[weir::function]` applies to functions and `impl` blocks")),
    };
    match siblings {
        Ok(siblings) => quote!(#parsed #siblings),
        Err(error) => with_error(parsed.into_token_stream(), error),
    }
}

fn with_error(item: TokenStream, error: Error) -> TokenStream {
    let error = error.into_compile_error();
    quote!(#item #error)
}

fn free_function(marks: &FunctionMarks, function: &mut ItemFn) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, .. } = function;
    let associated = sig.receiver().is_some();
    HostFunction::read(marks.clone(), attrs, vis, sig, associated).map(|function| sibling(&function))
}

fn implementation(marks: &FunctionMarks, block: &mut ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(
            path.span(),
            "functions of a trait `impl` cannot be host functions: use an inherent `impl` of the type",
        ));
    }
    refuse_generics(&block.generics)?;
    let (constructor, at) = constructor(block)?;
    let mut errors: Option<Error> = None;
    let mut siblings = TokenStream::new();
    for (item, index) in block.items.iter_mut().zip(0..) {
        let ImplItem::Fn(method) = item else { continue };
        if at == Some(index) {
            continue;
        }
        let read = own_marks(&mut method.attrs)
            .and_then(|own| HostFunction::read(marks.with(own), &method.attrs, &method.vis, &mut method.sig, true))
            .and_then(|function| function.made_by(constructor.as_ref()));
        match read {
            Ok(function) => siblings.extend(sibling(&function)),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    let owner = &block.self_ty;
    Ok(quote!(impl #owner { #siblings }))
}

/// Returns the constructor of the block's state, and the index of its item.
fn constructor(block: &mut ItemImpl) -> Result<(Option<StateConstructor>, Option<usize>)> {
    let mut found = (None, None);
    for (item, index) in block.items.iter_mut().zip(0..) {
        let ImplItem::Fn(method) = item else { continue };
        let Some(constructor) = StateConstructor::read(method)? else { continue };
        if found.0.is_some() {
            return Err(Error::new_spanned(&method.sig.ident, "only one function of a block can be its `#[new]`"));
        }
        found = (Some(constructor), Some(index));
    }
    Ok(found)
}

/// Removes the `#[weir::function(…)]` of one function of a block, and returns its marks.
fn own_marks(attributes: &mut Vec<Attribute>) -> Result<FunctionMarks> {
    let is_mark = |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "function");
    let Some(position) = attributes.iter().position(is_mark) else { return Ok(FunctionMarks::default()) };
    match attributes.remove(position).meta {
        syn::Meta::List(list) => FunctionMarks::parse(list.tokens),
        _ => Ok(FunctionMarks::default()),
    }
}

/// Generates the function that creates the `weir::Function`.
fn sibling(function: &HostFunction) -> TokenStream {
    let HostFunction { name, doc, visibility, .. } = function;
    let sibling = sibling_of(&function.ident);
    let effects = function.marks.effects(function.waits, function.changes());
    let visible = function.marks.visibility();
    let parameters = function.parameters.iter().map(Parameter::described);
    let (result, state) = (described_result(&function.returns), described_state(function));
    let starts = function.constructor.as_ref().map(StateConstructor::described);
    let (code, words, location) = (adaptor::code(function), words::entry_point(function), location_of(&function.ident));
    quote! {
        #[doc(hidden)]
        #[allow(dead_code, unreachable_pub, unused_mut, unused_variables, clippy::all)]
        #visibility fn #sibling() -> ::weir::Function {
            #[allow(unused_imports)]
            use ::weir::macros::{FailsDisplayed as _, FailsTyped as _, FailsWithError as _};
            ::weir::macros::FunctionBuilder::new(#name, #doc, #effects) #location #(#parameters)* #starts #result #state #words #visible .build(#code)
        }
    }
}

/// Generates the source location. The tokens have the span of the function's name, so that `line!()` returns its line.
pub(crate) fn location_of(name: &Ident) -> TokenStream {
    quote_spanned! { name.span()=>
        .located_at(::weir::Location {
            crate_folder: match ::core::option_env!("CARGO_MANIFEST_DIR") {
                ::core::option::Option::Some(folder) => folder,
                ::core::option::Option::None => "",
            },
            file: ::core::file!(),
            line: ::core::line!(),
            column: ::core::column!(),
        })
    }
}

fn described_state(function: &HostFunction) -> TokenStream {
    let Some(changes) = function.receiver else { return TokenStream::new() };
    let mode = Ident::new(if changes { "Write" } else { "Read" }, Span::mixed_site());
    let make = match (&function.constructor, &function.marks.new) {
        (Some(constructor), _) => constructor.made(),
        (None, Some(path)) => quote_spanned!(path.span()=> ::core::result::Result::Ok(#path())),
        (None, None) => {
            let make = quote_spanned!(function.ident.span()=> <Self as ::core::default::Default>::default());
            quote!(::core::result::Result::Ok(#make))
        }
    };
    quote_spanned! { Span::mixed_site()=>
        .with_state::<Self>(::weir::Mode::#mode, |arguments| {
            ::weir::macros::make_state::<Self>(|| { #make })
        })
    }
}

/// Generates the result and failure types for a function that returns this type.
pub(crate) fn described_result(returns: &Type) -> TokenStream {
    if !is_result(returns) {
        return quote_spanned!(returns.span()=> .returns::<#returns>());
    }
    quote_spanned! { returns.span()=>
        .returns::<<#returns as ::weir::macros::Fallible>::Ok>()
        .fails(
            (&&&::weir::macros::ErrorTag::<<#returns as ::weir::macros::Fallible>::Err>::new()).failure_type(),
            |definitions| {
                (&&&::weir::macros::ErrorTag::<<#returns as ::weir::macros::Fallible>::Err>::new())
                    .failure_define(definitions)
            },
        )
    }
}
