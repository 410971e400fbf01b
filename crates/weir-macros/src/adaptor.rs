//! Code generation of adaptors, which connect a call's frame with a Rust function.
//!
//! Adaptors follow the protocol of `weir::Call`. Locals have this crate's hygiene, so that none shadows a name of the
//! function's author.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::host::HostFunction;
use crate::marks::Flag;
use crate::parameter::{Parameter, Passing};
use crate::type_syntax::is_result;

/// Generates the `weir::FunctionCode` of a function.
pub(crate) fn code(function: &HostFunction) -> TokenStream {
    let parts = AdaptorTokens::of(function);
    match (function.waits, function.marks.has(Flag::Blocking)) {
        (true, _) => parts.waiting(),
        (_, true) => parts.blocking(),
        _ => parts.immediate(),
    }
}

/// The steps of an adaptor, from which its three kinds are assembled.
struct AdaptorTokens<'f> {
    function: &'f HostFunction,
    /// Refuses aliased arguments where Rust forbids them.
    distinct: TokenStream,
    /// Takes arguments by value, and values from the environment.
    takes: TokenStream,
    /// Borrows the arguments taken by `&`, each from its local `place_…`.
    holds: TokenStream,
    /// Borrows the arguments taken by `&mut`, each from its local `home_…` of type `&mut Value`.
    changes: TokenStream,
    /// Calls the function.
    invocation: TokenStream,
    /// Writes back the temporaries of mutable arguments.
    finishes: TokenStream,
    /// Creates the outcome.
    answer: TokenStream,
}

impl<'f> AdaptorTokens<'f> {
    fn of(function: &'f HostFunction) -> Self {
        AdaptorTokens {
            function,
            distinct: distinct(function),
            takes: function.parameters.iter().map(|parameter| take(function, parameter)).collect(),
            holds: passed(function, Passing::Borrow).map(hold).collect(),
            changes: passed(function, Passing::Change).map(change).collect(),
            invocation: invocation(function),
            finishes: passed(function, Passing::Change).map(finish).collect(),
            answer: outcome(&function.returns),
        }
    }

    /// Generates the steps from the borrows to the outcome.
    fn body(&self) -> TokenStream {
        let AdaptorTokens { holds, changes, invocation, finishes, answer, .. } = self;
        let (state, room) = (state(self.function), room(self.function));
        let waits = if self.function.waits { quote!(.await) } else { TokenStream::new() };
        quote_spanned! { Span::mixed_site()=>
            #holds #changes #state #room
            let returned = #invocation #waits;
            #finishes
            ::core::result::Result::Ok(#answer)
        }
    }

    fn immediate(&self) -> TokenStream {
        let AdaptorTokens { distinct, takes, .. } = self;
        let (lock, units) = (lock(self.function, "write", "read"), units(self.function));
        let locks: TokenStream = locked(self.function).map(lock_read).collect();
        let places: TokenStream =
            passed(self.function, Passing::Borrow).map(|parameter| place(self.function, parameter)).collect();
        let body = self.body();
        let (indices, mut_slots) = mut_slots(self.function);
        let inner = match (indices.as_slice(), mut_slots.as_slice()) {
            ([], _) if is_result(&self.function.returns) => quote!(#places #body),
            ([], _) => self.answered(&places),
            ([index], [home]) => quote_spanned! { Span::mixed_site()=>
                ::weir::macros::with_mut_slot(call, #index, |call, #home| { #places #body })
            },
            _ => quote_spanned! { Span::mixed_site()=>
                ::weir::macros::with_mut_slots(call, [#(#indices),*], |call, [#(#mut_slots),*]| { #places #body })
            },
        };
        quote_spanned! { Span::mixed_site()=>
            ::weir::macros::immediate(|call| { #locks #units #distinct #takes #lock #inner })
        }
    }

    /// Generates the steps for a function that changes no argument and cannot fail. Nothing of the call is borrowed any
    /// more when the value is available, so the value can be written directly to the call's slot.
    fn answered(&self, places: &TokenStream) -> TokenStream {
        let AdaptorTokens { holds, invocation, .. } = self;
        let (state, room) = (state(self.function), room(self.function));
        quote_spanned! { Span::mixed_site()=>
            let returned = { #places #holds #state #room #invocation };
            ::core::result::Result::Ok(::weir::macros::answer_to(call, returned))
        }
    }

    fn waiting(&self) -> TokenStream {
        let (prepare, body, settled) = (self.prepare(), self.body(), self.settled());
        let (at_once, opened) = (self.at_once(), passed(self.function, Passing::Change).map(open));
        let opened: TokenStream = opened.collect();
        quote_spanned! { Span::mixed_site()=>
            ::weir::macros::waiting(|call| {
                #at_once
                #prepare
                let pending: ::weir::macros::Pending = ::std::boxed::Box::pin(async move {
                    let outcome = ::weir::macros::catch_panic_async(::core::pin::pin!(async { #opened #body })).await;
                    #settled
                });
                ::core::result::Result::Ok(pending)
            })
        }
    }

    /// Generates the answer of a call that need not wait.
    fn at_once(&self) -> TokenStream {
        let Some(at_once) = &self.function.marks.at_once else { return TokenStream::new() };
        let (values, answer, returns) = (values(self.function), &self.answer, &self.function.returns);
        quote_spanned! { at_once.span().resolved_at(Span::mixed_site())=>
            let known: ::core::option::Option<#returns> = { #values #at_once };
            if let ::core::option::Option::Some(returned) = known {
                return ::core::result::Result::Err(#answer);
            }
        }
    }

    fn blocking(&self) -> TokenStream {
        let (prepare, body, settled) = (self.prepare(), self.body(), self.settled());
        let opened: TokenStream = passed(self.function, Passing::Change).map(open).collect();
        quote_spanned! { Span::mixed_site()=>
            ::weir::macros::blocking(|call| {
                #prepare
                let job: ::weir::macros::BlockingJob = ::std::boxed::Box::new(move || {
                    let outcome = ::weir::macros::catch_panic(|| { #opened #body });
                    #settled
                });
                ::core::result::Result::Ok(job)
            })
        }
    }

    /// Takes everything that the call will need. Fallible steps come first, so that no value is taken out of its slot
    /// unnecessarily.
    fn prepare(&self) -> TokenStream {
        let AdaptorTokens { distinct, takes, .. } = self;
        let lock = lock(self.function, "write_owned", "read_owned");
        let loans = self.function.parameters.iter().map(loan);
        quote!(#distinct #takes #lock #(#loans)*)
    }

    fn settled(&self) -> TokenStream {
        let loans = self.function.parameters.iter().filter_map(|parameter| match parameter.passing {
            Passing::Borrow => Some(parameter.local("place")),
            Passing::Change => Some(parameter.local("home")),
            _ => None,
        });
        quote_spanned! { Span::mixed_site()=>
            ::weir::macros::Settled {
                outcome,
                restored: ::weir::macros::restored([#(#loans),*]),
            }
        }
    }
}

fn passed(function: &HostFunction, passing: Passing) -> impl Iterator<Item = &Parameter> {
    function.parameters.iter().filter(move |parameter| parameter.passing == passing)
}

/// Returns true if a function waits or blocks its thread: then it owns what it takes.
fn goes_elsewhere(function: &HostFunction) -> bool {
    function.waits || function.marks.has(Flag::Blocking)
}

/// Returns the arguments that are locked for reading once, before the units are declared: those taken by `&`, unless another one is
/// changed, which may be the same shared value.
fn locked(function: &HostFunction) -> impl Iterator<Item = &Parameter> {
    let locks = !goes_elsewhere(function) && passed(function, Passing::Change).next().is_none();
    passed(function, Passing::Borrow).filter(move |_| locks)
}

fn lock_read(parameter: &Parameter) -> TokenStream {
    let (locked, index) = (parameter.local("locked"), parameter.index);
    quote_spanned!(Span::mixed_site()=> let #locked = call.lock_read(#index);)
}

fn take(function: &HostFunction, parameter: &Parameter) -> TokenStream {
    let Parameter { name, ty, index, .. } = parameter;
    let value = parameter.local("value");
    let environment = if goes_elsewhere(function) { quote!(environment_owned) } else { quote!(environment) };
    match parameter.passing {
        Passing::Value => quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
            let #value = call.take::<#ty>(#index, #name)?;
        ),
        Passing::Environment => quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
            let #value = ::weir::macros::#environment::<#ty>(call.environment)?;
        ),
        Passing::Options => quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
            let #value = <#ty as ::weir::FunctionOptions>::take(call, #index)?;
        ),
        _ => TokenStream::new(),
    }
}

fn place(function: &HostFunction, parameter: &Parameter) -> TokenStream {
    let (place, index) = (parameter.local("place"), parameter.index);
    if locked(function).any(|locked| locked.index == index) {
        let locked = parameter.local("locked");
        return quote_spanned!(Span::mixed_site()=> let #place = call.borrow_locked(#index, &#locked););
    }
    quote_spanned!(Span::mixed_site()=> let #place = call.borrow_read(#index);)
}

fn mut_slots(function: &HostFunction) -> (Vec<usize>, Vec<Ident>) {
    passed(function, Passing::Change).map(|parameter| (parameter.index, parameter.local("home"))).unzip()
}

fn loan(parameter: &Parameter) -> TokenStream {
    let index = parameter.index;
    let (place, home) = (parameter.local("place"), parameter.local("home"));
    match parameter.passing {
        Passing::Borrow => quote_spanned!(Span::mixed_site()=> let #place = call.borrow_owned(#index);),
        Passing::Change => quote_spanned!(Span::mixed_site()=> let mut #home = call.borrow_owned_mut(#index);),
        _ => TokenStream::new(),
    }
}

/// Borrows the value in an `OwnedBorrow` mutably.
fn open(parameter: &Parameter) -> TokenStream {
    let home = parameter.local("home");
    quote_spanned!(Span::mixed_site()=> let #home = #home.value_mut()?;)
}

fn hold(parameter: &Parameter) -> TokenStream {
    let Parameter { name, ty, .. } = parameter;
    let (value, place) = (parameter.local("value"), parameter.local("place"));
    quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
        let #value = ::weir::macros::borrow_argument::<#ty>(&#place, #name)?;
    )
}

fn change(parameter: &Parameter) -> TokenStream {
    let Parameter { name, ty, .. } = parameter;
    let (value, home) = (parameter.local("value"), parameter.local("home"));
    quote_spanned!(ty.span().resolved_at(Span::mixed_site())=>
        let mut #value = ::weir::macros::borrow_argument_mut::<#ty>(#home, #name)?;
    )
}

fn finish(parameter: &Parameter) -> TokenStream {
    let value = parameter.local("value");
    quote_spanned!(Span::mixed_site()=> #value.finish()?;)
}

/// Rust guarantees the function that a mutable reference is not aliased.
fn distinct(function: &HostFunction) -> TokenStream {
    let named = |parameter: &Parameter| {
        let Parameter { name, index, .. } = parameter;
        quote!((#index, #name))
    };
    let changed: Vec<_> = passed(function, Passing::Change).map(named).collect();
    let read: Vec<_> = passed(function, Passing::Borrow).map(named).collect();
    if changed.is_empty() || changed.len() + read.len() < 2 {
        return TokenStream::new();
    }
    quote_spanned!(Span::mixed_site()=> ::weir::macros::distinct(call, &[#(#changed),*], &[#(#read),*])?;)
}

/// Locks the state of the call site.
fn lock(function: &HostFunction, write: &str, read: &str) -> TokenStream {
    let Some(changes) = function.receiver else { return TokenStream::new() };
    let lock = Ident::new(if changes { write } else { read }, Span::mixed_site());
    quote_spanned!(Span::mixed_site()=> let mut state = call.site_state()?.#lock();)
}

/// Borrows `self`.
fn state(function: &HostFunction) -> TokenStream {
    match function.receiver {
        None => TokenStream::new(),
        Some(true) => quote_spanned! { Span::mixed_site()=>
            let this = ::weir::macros::state_mut::<Self>(&mut state)?;
        },
        Some(false) => quote_spanned! { Span::mixed_site()=>
            let this = ::weir::macros::state_ref::<Self>(&state)?;
        },
    }
}

/// Asks for the room that the function declares to need, over references to its parameters.
fn room(function: &HostFunction) -> TokenStream {
    let Some(bytes) = &function.marks.room else { return TokenStream::new() };
    let visible = function.parameters.iter().filter(|parameter| parameter.passing != Passing::Environment);
    let references = visible.map(|parameter| {
        let (name, value) = (Ident::new(&parameter.name, Span::call_site()), parameter.local("value"));
        match parameter.passing {
            Passing::Value => quote!(let #name = &#value;),
            _ => quote!(let #name = &*#value;),
        }
    });
    quote_spanned! { bytes.span().resolved_at(Span::mixed_site())=>
        ::weir::memory::ask({ #(#references)* #bytes })?;
    }
}

/// Declares the units of the call, over the values of its parameters, before it takes one of them.
fn units(function: &HostFunction) -> TokenStream {
    let Some(units) = &function.marks.units else { return TokenStream::new() };
    let values = values(function);
    let later = function.marks.later.as_ref().map(|later| {
        quote_spanned! { later.span().resolved_at(Span::mixed_site())=>
            if let ::core::option::Option::Some(awaited) = call.awaited.take() {
                let begun: ::core::option::Option<::weir::AwaitedCall> = { #values #later };
                *awaited = begun;
            }
        }
    });
    let changed = passed(function, Passing::Change).map(|parameter| parameter.index);
    quote_spanned! { units.span().resolved_at(Span::mixed_site())=>
        let units: u64 = { #values #units };
        // Another thread changes a value of the program in its place, but not one of the frame.
        let units = if [#(#changed),*].iter().all(|index: &usize| call.shared(*index).is_some()) { units } else { 0 };
        if !call.declare_units(units) {
            #later
            return ::core::result::Result::Ok(::weir::Outcome::ExceedsUnits);
        }
    }
}

/// Makes the values of the parameters visible by their names; of one from the environment, the environment.
fn values(function: &HostFunction) -> TokenStream {
    let value = |parameter: &Parameter| {
        let name = Ident::new(&parameter.name, Span::call_site());
        if parameter.passing == Passing::Environment {
            return quote_spanned!(Span::mixed_site()=> let #name: &::weir::Environment = call.environment;);
        }
        let (borrowed, place) = (place(function, parameter), parameter.local("place"));
        quote_spanned!(Span::mixed_site()=> #borrowed let #name: &::weir::Value = &#place;)
    };
    function.parameters.iter().map(value).collect()
}

pub(crate) fn invocation(function: &HostFunction) -> TokenStream {
    let path = function.path();
    let this = function.receiver.map(|_| quote_spanned!(Span::mixed_site()=> this,));
    let arguments = function.parameters.iter().map(|parameter| {
        let value = parameter.local("value");
        match parameter.passing {
            Passing::Value | Passing::Options => quote!(#value),
            Passing::Borrow | Passing::Environment => quote!(&*#value),
            Passing::Change => quote!(&mut *#value),
        }
    });
    quote!(#path(#this #(#arguments),*))
}

/// Generates the outcome of a function that returns this type and whose result is in the local `returned`.
pub(crate) fn outcome(returns: &Type) -> TokenStream {
    let span = returns.span().resolved_at(Span::mixed_site());
    if !is_result(returns) {
        return quote_spanned!(span=> ::weir::macros::answer(returned));
    }
    quote_spanned! { Span::mixed_site()=>
        match ::weir::macros::Fallible::result(returned) {
            ::core::result::Result::Ok(value) => ::weir::macros::answer(value),
            ::core::result::Result::Err(error) => {
                (&&&::weir::macros::ErrorTag::<<#returns as ::weir::macros::Fallible>::Err>::new()).failure(error)
            }
        }
    }
}
