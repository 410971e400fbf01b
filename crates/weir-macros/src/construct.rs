//! Constructors: what makes the private state of an `impl` block's functions, out of what is known at start.
//!
//! A *constructor* is the function of the block that `#[new]` stands before. It is no function of the host by itself:
//! its parameters follow those of every function of the block that takes `self`, and a call gives them as constants.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, ImplItemFn, Result, ReturnType, Type};

use crate::parameter::{Parameter, Passing};
use crate::type_syntax::is_result;

/// What makes the state.
#[derive(Clone)]
pub(crate) struct Constructor {
    ident: Ident,
    /// What it takes; their indices count from 0.
    pub(crate) parameters: Vec<Parameter>,
    /// Whether it may refuse.
    fallible: Option<Type>,
}

impl Constructor {
    /// Reads the function if it is a constructor, and takes the attributes off it that rustc would not know.
    pub(crate) fn read(method: &mut ImplItemFn) -> Result<Option<Self>> {
        let Some(at) = method.attrs.iter().position(is_new) else { return Ok(None) };
        method.attrs.remove(at);
        let signature = &mut method.sig;
        if let Some(receiver) = signature.receiver() {
            return Err(Error::new_spanned(receiver, "what makes the state has none yet: `#[new]` takes no `self`"));
        }
        if let Some(waits) = &signature.asyncness {
            return Err(Error::new_spanned(waits, "states are made before anything runs: `#[new]` cannot wait"));
        }
        let ReturnType::Type(_, returns) = &signature.output else {
            return Err(Error::new_spanned(&signature.ident, "`#[new]` gives the state: `-> Self`"));
        };
        let fallible = is_result(returns).then(|| (**returns).clone());
        let mut parameters = Vec::new();
        for (argument, index) in signature.inputs.iter_mut().zip(0..) {
            let FnArg::Typed(typed) = argument else { continue };
            parameters.push(start_parameter(typed, index)?);
        }
        Ok(Some(Constructor { ident: signature.ident.clone(), parameters, fallible }))
    }

    /// The steps of `weir::macros::FunctionBuilder` for its parameters.
    pub(crate) fn described(&self) -> TokenStream {
        let each = self.parameters.iter().map(|parameter| {
            let (name, ty, default) = (&parameter.name, &parameter.ty, parameter.default_value());
            match parameter.passing {
                Passing::Borrow => quote_spanned!(ty.span()=> .constructor_borrows::<#ty>(#name, #default)),
                _ => quote_spanned!(ty.span()=> .constructor_takes::<#ty>(#name, #default)),
            }
        });
        each.collect()
    }

    /// The body of `weir::StateOf::make`, with the local `arguments`.
    pub(crate) fn made(&self) -> TokenStream {
        let takes = self.parameters.iter().map(taken);
        let arguments = self.parameters.iter().map(|parameter| {
            let value = parameter.local("value");
            if parameter.passing == Passing::Borrow { quote!(&*#value) } else { quote!(#value) }
        });
        let ident = &self.ident;
        let call = quote_spanned!(ident.span()=> Self::#ident(#(#arguments),*));
        let made = match &self.fallible {
            None => quote!(::core::result::Result::Ok(#call)),
            Some(returns) => refused(returns, &call),
        };
        quote!(#(#takes)* #made)
    }
}

fn is_new(attribute: &Attribute) -> bool {
    attribute.path().is_ident("new")
}

fn start_parameter(typed: &mut syn::PatType, index: usize) -> Result<Parameter> {
    let parameter = Parameter::parse(typed, index)?;
    match parameter.passing {
        Passing::Value | Passing::Borrow => Ok(parameter),
        Passing::Change => {
            Err(Error::new_spanned(&typed.ty, "a constant cannot be changed: take it by value or by `&`"))
        }
        Passing::Environment => {
            Err(Error::new_spanned(&typed.ty, "states are made of constants: take the environment where it is used"))
        }
    }
}

fn taken(parameter: &Parameter) -> TokenStream {
    let Parameter { name, ty, index, .. } = parameter;
    let value = parameter.local("value");
    let take = match parameter.passing {
        Passing::Borrow => quote!(constructor_argument_ref),
        _ => quote!(constructor_argument),
    };
    quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
        let #value = ::weir::macros::#take::<#ty>(arguments, #index, #name)?;
    )
}

/// What a constructor that may refuse gave.
fn refused(returns: &Type, call: &TokenStream) -> TokenStream {
    quote_spanned! { Span::mixed_site()=>
        ::weir::macros::Fallible::result(#call).map_err(|error| ::weir::macros::constructor_failure(
            (&&&::weir::macros::ErrorTag::<<#returns as ::weir::macros::Fallible>::Err>::new()).failure(error)
        ))
    }
}
