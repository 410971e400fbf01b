//! `#[weir::batched]`: turns a function of a slice into a function of one element, whose calls may be gathered.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, GenericArgument, Ident, ItemFn, LitInt, LitStr, PathArguments, Result, Token, Type};

use crate::adaptor;
use crate::function::{described_result, location_of};
use crate::host::{HostFunction, sibling_of};
use crate::marks::FunctionMarks;
use crate::parameter::{Parameter, Passing};
use crate::type_syntax::{arguments_of, is_result};

/// The arguments of the attribute.
struct BatchOptions {
    at_most: usize,
    in_flight: Option<usize>,
    each: Option<String>,
    marks: FunctionMarks,
}

impl Parse for BatchOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut at_most, mut in_flight, mut each, mut marks) = (None, None, None, TokenStream::new());
        while !input.is_empty() {
            if input.peek(Ident) && input.peek2(Token![=]) && !input.peek3(Token![=]) {
                let word = input.fork().parse::<Ident>()?;
                if word == "at_most" {
                    at_most = Some(value::<LitInt>(input)?);
                } else if word == "in_flight" {
                    in_flight = Some(value::<LitInt>(input)?);
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
        let at_most =
            positive(&at_most.ok_or_else(missing)?, "a batch has at least one call: `at_most` must not be 0")?;
        let none_leaves = "no batch could ever leave: `in_flight` must not be 0";
        let in_flight = in_flight.map(|limit| positive(&limit, none_leaves)).transpose()?;
        Ok(BatchOptions { at_most, in_flight, each, marks: FunctionMarks::parse(marks)? })
    }
}

/// Returns the number of a literal, which must not be 0.
fn positive(literal: &LitInt, problem: &str) -> Result<usize> {
    match literal.base10_parse::<usize>()? {
        0 => Err(Error::new_spanned(literal, problem)),
        number => Ok(number),
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
    let BatchOptions { at_most, in_flight, each, marks } = options;
    let function = HostFunction::read(marks, attrs, vis, sig, false)?;
    if !function.waits {
        return Err(Error::new_spanned(sig.fn_token, "only functions that may wait can be batched: make it `async`"));
    }
    let batched = Batched::of(&function, each)?;
    Ok(batched.sibling(at_most, in_flight))
}

/// A function that answers many calls at once.
struct Batched<'f> {
    function: &'f HostFunction,
    /// Name of the parameter in Weir that the slice gathers.
    each: String,
    /// The slice parameter.
    many: &'f Parameter,
    element: &'f Type,
    /// The type of one answer, as one call sees it.
    answer: Type,
    /// True if the function returns a `Result` of all answers, so that a batch can fail as a whole.
    may_fail_as_a_whole: bool,
}

impl<'f> Batched<'f> {
    fn of(function: &'f HostFunction, each: Option<String>) -> Result<Self> {
        let wrong = || {
            Error::new_spanned(
                &function.ident,
                "a batched function takes one slice, `&[K]`, and otherwise only parameters by value and values from the \
                 environment",
            )
        };
        let is_slice =
            |parameter: &&Parameter| parameter.passing == Passing::Borrow && matches!(parameter.ty, Type::Slice(_));
        let mut slices = function.parameters.iter().filter(is_slice);
        let (Some(many), None) = (slices.next(), slices.next()) else { return Err(wrong()) };
        let is_taken = |parameter: &Parameter| {
            parameter.index == many.index && parameter.name == many.name
                || matches!(parameter.passing, Passing::Value | Passing::Environment)
        };
        if !function.parameters.iter().all(is_taken) {
            return Err(wrong());
        }
        let Type::Slice(slice) = &many.ty else { return Err(wrong()) };
        let (answer, may_fail_as_a_whole) = answer_of(&function.returns)?;
        let each = each.unwrap_or_else(|| many.name.strip_suffix('s').unwrap_or(&many.name).to_owned());
        Ok(Batched { function, each, many, element: &slice.elem, answer, may_fail_as_a_whole })
    }

    /// Returns the parameters that all calls of a batch have in common.
    fn common(&self) -> impl Iterator<Item = &Parameter> {
        self.function.parameters.iter().filter(|parameter| parameter.passing == Passing::Value)
    }

    fn sibling(&self, at_most: usize, in_flight: Option<usize>) -> TokenStream {
        let Batched { function, each, element, many, .. } = self;
        let HostFunction { name, doc, visibility, .. } = function;
        let sibling = sibling_of(&function.ident);
        let effects = function.marks.effects(true, false);
        let takes: TokenStream = function
            .parameters
            .iter()
            .map(|parameter| match parameter.passing {
                Passing::Borrow => {
                    quote_spanned!(element.span()=> .takes::<#element>(#each, ::core::option::Option::None))
                }
                _ => parameter.described(),
            })
            .collect();
        let (gives, code) = (described_result(&self.answer), self.code(at_most));
        let location = location_of(&function.ident);
        let (index, in_flight) = (many.index, option(in_flight));
        quote! {
            #[doc(hidden)]
            #[allow(dead_code, unreachable_pub, unused_mut, unused_variables, clippy::all)]
            #visibility fn #sibling() -> ::weir::Function {
                #[allow(unused_imports)]
                use ::weir::macros::{FailsDisplayed as _, FailsTyped as _, FailsWithError as _};
                ::weir::macros::FunctionBuilder::new(#name, #doc, #effects) #location #takes #gives
                    .build_batched(::weir::Batch::new(#at_most, #in_flight, #index), #code)
            }
        }
    }

    fn code(&self, at_most: usize) -> TokenStream {
        let Batched { function, each, element, .. } = self;
        let given = function.parameters.iter().filter(|parameter| parameter.passing == Passing::Environment);
        let given = given.map(|parameter| {
            let (value, ty) = (parameter.local("value"), &parameter.ty);
            quote_spanned!(Span::mixed_site()=> let #value = ::weir::macros::environment_owned::<#ty>(environment)?;)
        });
        let common = self.common().zip(0usize..).map(|(parameter, index)| {
            let (value, ty, name) = (parameter.local("value"), &parameter.ty, &parameter.name);
            quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
                let #value = ::weir::macros::common_argument::<#ty>(common, #index, #name)?;
            )
        });
        let clones = self.common().map(|parameter| {
            let value = parameter.local("value");
            quote_spanned!(Span::mixed_site()=> let #value = ::core::clone::Clone::clone(&#value);)
        });
        let many = self.many.local("value");
        let (invocation, round) = (adaptor::invocation(function), self.round());
        quote_spanned! { Span::mixed_site()=>
            ::weir::macros::batch(|arguments, common, environment| {
                #(#given)* #(#common)*
                let pending: ::weir::macros::PendingBatch = ::std::boxed::Box::pin(async move {
                    let mut calls = ::weir::macros::BatchCalls::<#element>::new(arguments, #each);
                    while let ::core::option::Option::Some(#many) = calls.next(#at_most) {
                        #(#clones)*
                        let answers = #invocation.await;
                        #round
                    }
                    calls.answers()
                });
                ::core::result::Result::Ok(pending)
            })
        }
    }

    /// Generates the treatment of what one call of Rust returns, which is in the local `answers`.
    fn round(&self) -> TokenStream {
        let (outcome, answer) = (adaptor::outcome(&self.answer), &self.answer);
        if !self.may_fail_as_a_whole {
            return quote_spanned! { Span::mixed_site()=>
                calls.answer(answers.into_iter().map(|returned| #outcome).collect());
            };
        }
        let own = arguments_of(&self.function.returns, "Result").and_then(|types| arguments_of(types[0], "Vec"));
        let wraps = own.is_some_and(|types| types.first().is_some_and(|ty| !is_result(ty)));
        let wrapped = if wraps {
            quote_spanned!(Span::mixed_site()=> ::core::result::Result::Ok(returned))
        } else {
            quote_spanned!(Span::mixed_site()=> returned)
        };
        quote_spanned! { Span::mixed_site()=>
            match answers {
                ::core::result::Result::Ok(answers) => calls.answer(
                    answers.into_iter().map(|returned| { let returned: #answer = #wrapped; #outcome }).collect(),
                ),
                ::core::result::Result::Err(error) => {
                    let returned: #answer = ::core::result::Result::Err(error);
                    calls.fail(#outcome);
                }
            }
        }
    }
}

/// Returns the type that one call sees, and true if a batch can fail as a whole: of `Vec<A>`, and of `Result<Vec<A>, E>`.
fn answer_of(returns: &Type) -> Result<(Type, bool)> {
    let wrong = || Error::new_spanned(returns, "a batched function returns one answer for each call, in a `Vec`");
    let only = |types: Vec<&Type>| types.first().copied().cloned();
    if !is_result(returns) {
        return Ok((arguments_of(returns, "Vec").and_then(only).ok_or_else(wrong)?, false));
    }
    let all = arguments_of(returns, "Result").and_then(only);
    let answer = all.as_ref().and_then(|all| arguments_of(all, "Vec")).and_then(only).ok_or_else(wrong)?;
    if is_result(&answer) {
        return Ok((answer, true));
    }
    let mut result = returns.clone();
    if let Type::Path(path) = &mut result
        && let Some(last) = path.path.segments.last_mut()
        && let PathArguments::AngleBracketed(arguments) = &mut last.arguments
        && let Some(first) = arguments.args.first_mut()
    {
        *first = GenericArgument::Type(answer);
    }
    Ok((result, true))
}

fn option(number: Option<usize>) -> TokenStream {
    match number {
        Some(number) => quote!(::core::option::Option::Some(#number)),
        None => quote!(::core::option::Option::None),
    }
}
