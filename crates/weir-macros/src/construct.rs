//! Constructors of the private state of an `impl` block's functions.
//!
//! A *constructor* is the function of the block with the attribute `#[new]`. It is not a host function itself: its
//! parameters are appended to those of every function of the block that takes `self`, and calls pass them as constants.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, ImplItemFn, Result, ReturnType, Type};

use crate::parameter::{Parameter, Passing};
use crate::type_syntax::is_result;

/// The constructor of a state.
#[derive(Clone)]
pub(crate) struct StateConstructor {
    ident: Ident,
    /// The parameters; their indices count from 0.
    pub(crate) parameters: Vec<Parameter>,
    /// The return type if the constructor can fail.
    fallible: Option<Type>,
}

impl StateConstructor {
    /// Reads the function if it is a constructor, and removes the attributes that rustc does not know.
    pub(crate) fn read(method: &mut ImplItemFn) -> Result<Option<Self>> {
        let Some(at) = method.attrs.iter().position(is_new) else { return Ok(None) };
        method.attrs.remove(at);
        let signature = &mut method.sig;
        if let Some(receiver) = signature.receiver() {
            return Err(Error::new_spanned(
                receiver,
                "there is no state before its constructor has run: `#[new]` takes no `self`",
            ));
        }
        if let Some(waits) = &signature.asyncness {
            return Err(Error::new_spanned(
                waits,
                "states are created before anything runs: `#[new]` cannot be `async`",
            ));
        }
        let ReturnType::Type(_, returns) = &signature.output else {
            return Err(Error::new_spanned(&signature.ident, "`#[new]` returns the state: write `-> Self`"));
        };
        let fallible = is_result(returns).then(|| (**returns).clone());
        let mut parameters = Vec::new();
        for (argument, index) in signature.inputs.iter_mut().zip(0..) {
            let FnArg::Typed(typed) = argument else { continue };
            parameters.push(start_parameter(typed, index)?);
        }
        Ok(Some(StateConstructor { ident: signature.ident.clone(), parameters, fallible }))
    }

    /// Generates the calls of `weir::macros::FunctionBuilder` for the parameters.
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

    /// Generates the body of `weir::StateOf::make`, which has the local `arguments`.
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
        Passing::Environment => Err(Error::new_spanned(
            &typed.ty,
            "a state is created from constants: take the environment in the functions that use it",
        )),
        Passing::Options => Err(Error::new_spanned(&typed.ty, "a constructor takes each of its parameters by name")),
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

/// Converts the result of a constructor that can fail.
fn refused(returns: &Type, call: &TokenStream) -> TokenStream {
    quote_spanned! { Span::mixed_site()=>
        ::weir::macros::Fallible::result(#call).map_err(|error| ::weir::macros::constructor_failure(
            (&&&::weir::macros::ErrorTag::<<#returns as ::weir::macros::Fallible>::Err>::new()).failure(error)
        ))
    }
}
