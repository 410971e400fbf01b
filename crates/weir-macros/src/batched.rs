//! `#[weir::batched]`: turns a function of a slice into a function of one element, whose calls may be gathered.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Ident, ItemFn, LitInt, LitStr, Result, Token, Type};

use crate::adaptor;
use crate::function::{described_result, location_of};
use crate::host::{HostFunction, sibling_of};
use crate::marks::FunctionMarks;
use crate::parameter::{Parameter, Passing};
use crate::type_syntax::arguments_of;

/// The arguments of the attribute.
struct BatchOptions {
    at_most: usize,
    each: Option<String>,
    marks: FunctionMarks,
}

impl Parse for BatchOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut at_most, mut each, mut marks) = (None, None, TokenStream::new());
        while !input.is_empty() {
            if input.peek(Ident) && input.peek2(Token![=]) && !input.peek3(Token![=]) {
                let word = input.fork().parse::<Ident>()?;
                if word == "at_most" {
                    at_most = Some(value::<LitInt>(input)?);
                } else if word == "each" {
                    each = Some(value::<LitStr>(input)?.value());
                } else {
                    marks.extend(one(input)?);
                }
            } else {
                marks.extend(one(input)?);
            }
            input.parse::<Option<Token![,]>>()?;
        }
        let missing = || {
            Error::new(Span::call_site(), "the maximum number of calls in a batch is missing: write `at_most = 500`")
        };
        let limit = at_most.ok_or_else(missing)?;
        let at_most = limit.base10_parse::<usize>()?;
        if at_most == 0 {
            return Err(Error::new_spanned(limit, "a batch has at least one call: `at_most` must not be 0"));
        }
        Ok(BatchOptions { at_most, each, marks: FunctionMarks::parse(marks)? })
    }
}

fn value<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Ident>()?;
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Parses the tokens of a mark, and adds a comma.
fn one(input: ParseStream<'_>) -> Result<TokenStream> {
    let mut mark = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        mark.extend([input.parse::<proc_macro2::TokenTree>()?]);
    }
    Ok(quote!(#mark,))
}

/// Expands the attribute. A mistake becomes a compile error beside the function, which stays callable.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let error = Error::new(error.span(), "`#[weir::batched]` applies to functions").into_compile_error();
            return quote!(#item #error);
        }
    };
    let sibling = syn::parse2(options).and_then(|options| sibling(options, &mut function));
    let sibling = sibling.unwrap_or_else(Error::into_compile_error);
    quote!(#function #sibling)
}

fn sibling(options: BatchOptions, item: &mut ItemFn) -> Result<TokenStream> {
    if let Some(receiver) = item.sig.receiver() {
        return Err(Error::new_spanned(
            receiver,
            "a batch gathers calls of several call sites, which have no common `self`",
        ));
    }
    let ItemFn { attrs, vis, sig, .. } = item;
    let function = HostFunction::read(options.marks, attrs, vis, sig, false)?;
    if !function.waits {
        return Err(Error::new_spanned(sig.fn_token, "only functions that may wait can be batched: make it `async`"));
    }
    let batched = Batched::of(&function, options.at_most, options.each)?;
    Ok(batched.sibling())
}

/// A function that answers many calls at once.
struct Batched<'f> {
    function: &'f HostFunction,
    at_most: usize,
    /// Name of the single parameter in Weir.
    each: String,
    /// The slice parameter.
    many: &'f Parameter,
    element: &'f Type,
    /// The type of one answer.
    answer: &'f Type,
}

impl<'f> Batched<'f> {
    fn of(function: &'f HostFunction, at_most: usize, each: Option<String>) -> Result<Self> {
        let mut given = function.parameters.iter().filter(|parameter| parameter.passing != Passing::Environment);
        let wrong = || {
            Error::new_spanned(
                &function.ident,
                "a batched function takes one slice, `&[K]`, besides values from the environment",
            )
        };
        let many = given.next().ok_or_else(wrong)?;
        let (Type::Slice(slice), Passing::Borrow, None) = (&many.ty, many.passing, given.next()) else {
            return Err(wrong());
        };
        let answer =
            arguments_of(&function.returns, "Vec").and_then(|types| types.first().copied()).ok_or_else(|| {
                Error::new_spanned(&function.returns, "a batched function returns one answer for each call, in a `Vec`")
            })?;
        let each = each.unwrap_or_else(|| many.name.strip_suffix('s').unwrap_or(&many.name).to_owned());
        Ok(Batched { function, at_most, each, many, element: &slice.elem, answer })
    }

    fn sibling(&self) -> TokenStream {
        let Batched { function, at_most, each, element, .. } = self;
        let HostFunction { name, doc, visibility, .. } = function;
        let sibling = sibling_of(&function.ident);
        let effects = function.marks.effects(true, false);
        let takes = quote_spanned!(element.span()=> .takes::<#element>(#each, ::core::option::Option::None));
        let (gives, code) = (described_result(self.answer), self.code());
        let location = location_of(&function.ident);
        quote! {
            #[doc(hidden)]
            #[allow(dead_code, unreachable_pub, unused_mut, unused_variables, clippy::all)]
            #visibility fn #sibling() -> ::weir::Function {
                #[allow(unused_imports)]
                use ::weir::macros::{FailsDisplayed as _, FailsTyped as _, FailsWithError as _};
                ::weir::macros::FunctionBuilder::new(#name, #doc, #effects) #location #takes #gives .build_batched(#at_most, #code)
            }
        }
    }

    fn code(&self) -> TokenStream {
        let Batched { function, at_most, each, element, .. } = self;
        let given = function.parameters.iter().filter(|parameter| parameter.passing == Passing::Environment);
        let given = given.map(|parameter| {
            let (value, ty) = (parameter.local("value"), &parameter.ty);
            quote_spanned!(Span::mixed_site()=> let #value = ::weir::macros::environment_of::<#ty>(environment)?;)
        });
        let (many, outcome) = (self.many.local("value"), adaptor::outcome(self.answer));
        let invocation = adaptor::invocation(function);
        quote_spanned! { Span::mixed_site()=>
            ::weir::macros::batch(|arguments, environment| {
                #(#given)*
                let pending: ::weir::macros::PendingBatch = ::std::boxed::Box::pin(async move {
                    let mut calls = ::weir::macros::BatchCalls::<#element>::new(arguments, #each);
                    while let ::core::option::Option::Some(#many) = calls.next(#at_most) {
                        let answers = #invocation.await;
                        calls.answer(answers.into_iter().map(|returned| #outcome).collect());
                    }
                    calls.answers()
                });
                ::core::result::Result::Ok(pending)
            })
        }
    }
}
