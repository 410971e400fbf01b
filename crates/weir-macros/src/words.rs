//! Code generation of typed entry points: functions whose parameters and result are scalars take and return words.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::adaptor::invocation;
use crate::host::HostFunction;
use crate::marks::Flag;
use crate::parameter::{Parameter, Passing};
use crate::type_syntax::is_result;

/// The maximum number of parameters of a typed entry point.
const PARAMETERS_MAX: usize = 8;

/// Generates `.words(…)` for a function that can have a typed entry point. The types decide whether it has one, which is
/// known when the generated code is compiled.
pub(crate) fn entry_point(function: &HostFunction) -> TokenStream {
    let by_value = function.parameters.iter().all(|parameter| parameter.passing == Passing::Value);
    let waits = function.waits || function.marks.has(Flag::Blocking);
    let has_state = function.receiver.is_some() || function.constructor.is_some();
    let fits = function.parameters.len() <= PARAMETERS_MAX;
    if !by_value || waits || has_state || !fits || is_result(&function.returns) {
        return TokenStream::new();
    }
    let (returns, invocation) = (&function.returns, invocation(function));
    let types = function.parameters.iter().map(|parameter| &parameter.ty);
    let takes = function.parameters.iter().map(take);
    quote_spanned! { Span::mixed_site()=>
        .words(if <#returns as ::weir::macros::HostType>::WORD #(&& <#types as ::weir::macros::HostType>::WORD)* {
            let code: ::weir::macros::WordCode = |words| {
                #(#takes)*
                ::weir::macros::answer_word(#invocation)
            };
            ::core::option::Option::Some(code)
        } else {
            ::core::option::Option::None
        })
    }
}

fn take(parameter: &Parameter) -> TokenStream {
    let Parameter { name, ty, index, .. } = parameter;
    let value = parameter.local("value");
    let take = quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
        let #value = ::weir::macros::word_argument::<#ty>(words, #index, #name)?;
    );
    quote!(#take)
}
