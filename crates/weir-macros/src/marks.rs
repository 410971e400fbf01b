//! Marks: properties of a function that its signature cannot express, and their contradictions.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Path, Result, Token};

/// A mark without a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    Pure,
    Reads,
    Deferrable,
    Idempotent,
    Commutes,
    Barrier,
    Blocking,
    AwaitsPeer,
    Total,
    MayEnd,
    ReplacesElement,
    SeesSnapshot,
    Internal,
}

const FLAGS: [(&str, Flag); 13] = [
    ("pure", Flag::Pure),
    ("reads", Flag::Reads),
    ("deferrable", Flag::Deferrable),
    ("idempotent", Flag::Idempotent),
    ("commutes", Flag::Commutes),
    ("barrier", Flag::Barrier),
    ("blocking", Flag::Blocking),
    ("awaits_peer", Flag::AwaitsPeer),
    ("total", Flag::Total),
    ("may_end", Flag::MayEnd),
    ("replaces_element", Flag::ReplacesElement),
    ("sees_snapshot", Flag::SeesSnapshot),
    ("internal", Flag::Internal),
];

/// Pairs of marks that contradict each other, with the reason.
const CONTRADICTIONS: [(Flag, Flag, &str); 6] = [
    (Flag::Reads, Flag::Pure, "`reads` contradicts `pure`: a pure function does not observe the outside world"),
    (Flag::Deferrable, Flag::Pure, "`deferrable` contradicts `pure`: there is no effect to defer"),
    (Flag::Deferrable, Flag::Reads, "`deferrable` contradicts `reads`: there is no effect to defer"),
    (Flag::Barrier, Flag::Pure, "`barrier` contradicts `pure`: pure functions are not ordered with other calls"),
    (Flag::MayEnd, Flag::Total, "`may_end` contradicts `total`: a total function returns"),
    (Flag::Barrier, Flag::Reads, "`barrier` contradicts `reads`: reads are not ordered with one another"),
];

const EXPECTED: &str = "the marks are `pure`, `reads`, `fresh = \"2m\"`, `deferrable`, `idempotent`, `commutes`, \
                        `barrier`, `blocking`, `awaits_peer`, `total`, `may_end`, `replaces_element`, `sees_snapshot`, `internal`, `name = \"…\"`, \
                        `new = path`, `room = bytes`, `units = work`, `later = call` and `at_once = result`";

/// The marks of one function.
#[derive(Clone, Default)]
pub(crate) struct FunctionMarks {
    flags: Vec<(Flag, Span)>,
    fresh: Option<(u64, Span)>,
    /// Name in Weir.
    pub(crate) name: Option<LitStr>,
    /// Path of the function that creates the state.
    pub(crate) new: Option<Path>,
    /// Bytes that a call is about to allocate, as an expression over references to its parameters.
    pub(crate) room: Option<Expr>,
    /// Units of work of a call, as an expression over the values of its parameters.
    pub(crate) units: Option<Expr>,
    /// The `Option<weir::AwaitedCall>` of a call that exceeds its units, as an expression over the values of its parameters.
    pub(crate) later: Option<Expr>,
    /// The `Option` of the result of a call that need not wait, as an expression over the values of its parameters.
    pub(crate) at_once: Option<Expr>,
}

enum FunctionMark {
    Flag(Flag, Span),
    Fresh(u64, Span),
    Name(LitStr),
    New(Path),
    Room(Expr),
    Units(Expr),
    Later(Expr),
    AtOnce(Expr),
}

impl Parse for FunctionMark {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let word: Ident = input.parse()?;
        if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| word == name) {
            return Ok(FunctionMark::Flag(*flag, word.span()));
        }
        if !["fresh", "name", "new", "room", "units", "later", "at_once"].iter().any(|name| word == name) {
            return Err(Error::new(word.span(), format!("unknown mark `{word}`; {EXPECTED}")));
        }
        input.parse::<Token![=]>()?;
        if word == "new" {
            return Ok(FunctionMark::New(input.parse()?));
        }
        if word == "room" {
            return Ok(FunctionMark::Room(input.parse()?));
        }
        if word == "units" {
            return Ok(FunctionMark::Units(input.parse()?));
        }
        if word == "later" {
            return Ok(FunctionMark::Later(input.parse()?));
        }
        if word == "at_once" {
            return Ok(FunctionMark::AtOnce(input.parse()?));
        }
        let text: LitStr = input.parse()?;
        if word == "name" {
            name(text)
        } else {
            nanoseconds(&text).map(|nanos| FunctionMark::Fresh(nanos, word.span()))
        }
    }
}

fn name(text: LitStr) -> Result<FunctionMark> {
    match syn::parse_str::<Ident>(&text.value()) {
        Ok(_) => Ok(FunctionMark::Name(text)),
        Err(_) => Err(Error::new(text.span(), "a function's name consists of letters, digits and `_`")),
    }
}

/// Parses a duration such as `2m` into nanoseconds.
fn nanoseconds(text: &LitStr) -> Result<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ];
    let written = text.value();
    let (digits, unit) = written.split_at(written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len()));
    let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| nanos);
    let count = digits.parse::<u64>().ok().filter(|count| *count > 0);
    let nanos = unit.zip(count).and_then(|(unit, count)| unit.checked_mul(count));
    nanos.ok_or_else(|| {
        Error::new(text.span(), "a duration is a number and a unit, such as `500ms`, `30s`, `2m` or `1h`")
    })
}

impl FunctionMarks {
    /// Parses the marks between the parentheses of an attribute.
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut marks = FunctionMarks::default();
        for mark in Punctuated::<FunctionMark, Token![,]>::parse_terminated.parse2(tokens)? {
            marks.add(mark)?;
        }
        Ok(marks)
    }

    fn add(&mut self, mark: FunctionMark) -> Result<()> {
        let (twice, span) = match &mark {
            FunctionMark::Flag(flag, span) => (self.has(*flag), *span),
            FunctionMark::Fresh(_, span) => (self.fresh.is_some(), *span),
            FunctionMark::Name(name) => (self.name.is_some(), name.span()),
            FunctionMark::New(path) => (self.new.is_some(), syn::spanned::Spanned::span(path)),
            FunctionMark::Room(bytes) => (self.room.is_some(), syn::spanned::Spanned::span(bytes)),
            FunctionMark::Units(units) => (self.units.is_some(), syn::spanned::Spanned::span(units)),
            FunctionMark::Later(call) => (self.later.is_some(), syn::spanned::Spanned::span(call)),
            FunctionMark::AtOnce(result) => (self.at_once.is_some(), syn::spanned::Spanned::span(result)),
        };
        if twice {
            return Err(Error::new(span, "this mark is repeated"));
        }
        match mark {
            FunctionMark::Flag(flag, span) => self.flags.push((flag, span)),
            FunctionMark::Fresh(nanos, span) => self.fresh = Some((nanos, span)),
            FunctionMark::Name(name) => self.name = Some(name),
            FunctionMark::New(path) => self.new = Some(path),
            FunctionMark::Room(bytes) => self.room = Some(bytes),
            FunctionMark::Units(units) => self.units = Some(units),
            FunctionMark::Later(call) => self.later = Some(call),
            FunctionMark::AtOnce(result) => self.at_once = Some(result),
        }
        Ok(())
    }

    /// Returns these marks of a block, with those of one of its functions added.
    pub(crate) fn with(&self, own: FunctionMarks) -> FunctionMarks {
        let mut marks = self.clone();
        marks.flags.extend(own.flags);
        marks.fresh = own.fresh.or(marks.fresh);
        marks.name = own.name.or(marks.name);
        marks.new = own.new.or(marks.new);
        marks.room = own.room.or(marks.room);
        marks.units = own.units.or(marks.units);
        marks.later = own.later.or(marks.later);
        marks.at_once = own.at_once.or(marks.at_once);
        marks
    }

    /// Returns `true` if the flag is set.
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.span_of(flag).is_some()
    }

    /// Returns the span of the flag, if it is set.
    pub(crate) fn span_of(&self, flag: Flag) -> Option<Span> {
        self.flags.iter().find(|(given, _)| *given == flag).map(|(_, span)| *span)
    }

    /// Checks that the marks do not contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        for (one, other, why) in CONTRADICTIONS {
            if let (Some(span), true) = (self.span_of(one), self.has(other)) {
                return Err(Error::new(span, why));
            }
        }
        match self.fresh {
            Some((_, span)) if self.has(Flag::Pure) => {
                Err(Error::new(span, "`fresh` contradicts `pure`: the result of a pure function never becomes stale"))
            }
            Some((_, span)) if !self.has(Flag::Reads) => Err(Error::new(
                span,
                "`fresh` needs `reads`: only results of functions that do not change the world may be reused",
            )),
            _ => Ok(()),
        }
    }

    /// Generates the call of the builder that hides the function, if it is internal.
    pub(crate) fn visibility(&self) -> TokenStream {
        if self.has(Flag::Internal) { quote!(.internal()) } else { TokenStream::new() }
    }

    /// Generates the `weir::Effects`. A function that changes nothing is idempotent, whether or not it is marked so.
    pub(crate) fn effects(&self, waits: bool, changes: bool) -> TokenStream {
        let (world, leaves) = match (self.has(Flag::Pure), self.has(Flag::Reads)) {
            (true, _) => (quote!(Pure), true),
            (_, true) => (quote!(Reads), true),
            _ => (quote!(Writes), false),
        };
        let fresh_ns = self.fresh.map_or(quote!(None), |(nanos, _)| quote!(Some(#nanos)));
        let deferrable = self.has(Flag::Deferrable);
        let idempotent = self.has(Flag::Idempotent) || (leaves && !changes);
        let commutes = self.has(Flag::Commutes);
        let barrier = self.has(Flag::Barrier);
        let blocking = self.has(Flag::Blocking);
        let awaits_peer = self.has(Flag::AwaitsPeer);
        let total = self.has(Flag::Total);
        let may_end = self.has(Flag::MayEnd);
        let replaces_element = self.has(Flag::ReplacesElement);
        let sees_snapshot = self.has(Flag::SeesSnapshot);
        let declares_units = self.units.is_some();
        let leaves_thread = self.later.is_some();
        quote! {
            ::weir::Effects {
                world: ::weir::World::#world,
                fresh_ns: ::core::option::Option::#fresh_ns,
                deferrable: #deferrable,
                idempotent: #idempotent,
                commutes: #commutes,
                barrier: #barrier,
                blocking: #blocking,
                waits: #waits,
                awaits_peer: #awaits_peer,
                total: #total,
                may_end: #may_end,
                replaces_element: #replaces_element,
                sees_snapshot: #sees_snapshot,
                declares_units: #declares_units,
                leaves_thread: #leaves_thread,
            }
        }
    }
}
