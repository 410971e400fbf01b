//! `#[weir::function]`: from a Rust function to the hidden sibling that makes its `weir::Function`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, ImplItem, Item, ItemFn, ItemImpl, PathArguments, Receiver, Result,
    ReturnType, Signature, Type, Visibility,
};

use crate::marks::{Flag, Marks};
use crate::parameter::{Parameter, Passing, supported};
use crate::{adaptor, docs};

/// What a Rust function says of itself.
pub(crate) struct HostFunction {
    /// Its name in Rust.
    pub(crate) ident: Ident,
    /// Its name in Weir.
    name: String,
    doc: String,
    visibility: Visibility,
    /// Whether `Self::` comes before its name.
    associated: bool,
    /// Whether it takes `&self`, or by `true` `&mut self`.
    pub(crate) receiver: Option<bool>,
    pub(crate) parameters: Vec<Parameter>,
    /// What it returns, as written.
    pub(crate) returns: Type,
    pub(crate) waits: bool,
    pub(crate) marks: Marks,
}

/// The expansion of the attribute. What is wrong becomes an error beside the item, which stays callable.
pub(crate) fn expand(marks: TokenStream, item: TokenStream) -> TokenStream {
    let mut parsed =
        match syn::parse2::<Item>(item.clone()).or_else(|_| syn::parse2::<ItemFn>(item.clone()).map(Item::Fn)) {
            Ok(parsed) => parsed,
            Err(error) => return with_error(item, error),
        };
    let siblings = match (Marks::parse(marks), &mut parsed) {
        (Err(error), _) => Err(error),
        (Ok(marks), Item::Fn(function)) => free_function(&marks, function),
        (Ok(marks), Item::Impl(block)) => implementation(&marks, block),
        (Ok(_), other) => Err(Error::new_spanned(other, "`#[weir::function]` is for functions and `impl` blocks")),
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

fn free_function(marks: &Marks, function: &mut ItemFn) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, .. } = function;
    let associated = sig.receiver().is_some();
    Ok(HostFunction::read(marks.clone(), attrs, vis, sig, associated)?.sibling())
}

fn implementation(marks: &Marks, block: &mut ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(
            path.span(),
            "the functions of a trait are called through it: mark an `impl` of the type",
        ));
    }
    refuse_generics(&block.generics)?;
    let mut errors: Option<Error> = None;
    let mut siblings = TokenStream::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let read = own_marks(&mut method.attrs)
            .and_then(|own| HostFunction::read(marks.with(own), &method.attrs, &method.vis, &mut method.sig, true));
        match read {
            Ok(function) => siblings.extend(function.sibling()),
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

/// The marks of one function of a block, which its own `#[weir::function(…)]` gives.
fn own_marks(attributes: &mut Vec<Attribute>) -> Result<Marks> {
    let is_mark = |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "function");
    let Some(position) = attributes.iter().position(is_mark) else { return Ok(Marks::default()) };
    match attributes.remove(position).meta {
        syn::Meta::List(list) => Marks::parse(list.tokens),
        _ => Ok(Marks::default()),
    }
}

fn refuse_generics(generics: &syn::Generics) -> Result<()> {
    if generics.params.is_empty() {
        return Ok(());
    }
    let why = "a host function has no generic parameters; `weir::Value` stands for a type `T` that calls decide";
    Err(Error::new_spanned(&generics.params, why))
}

/// The name of the hidden sibling of the function `ident`.
pub(crate) fn sibling_of(ident: &Ident) -> Ident {
    format_ident!("__weir_function_{}", ident.to_string().trim_start_matches("r#"), span = ident.span())
}

impl HostFunction {
    fn read(
        marks: Marks,
        attributes: &[Attribute],
        visibility: &Visibility,
        signature: &mut Signature,
        associated: bool,
    ) -> Result<Self> {
        let parameters = read_parameters(signature)?;
        refuse_generics(&signature.generics)?;
        marks.check()?;
        let ident = signature.ident.clone();
        let name = marks.name.as_ref().map_or_else(|| ident.to_string(), syn::LitStr::value);
        let function = HostFunction {
            name: name.trim_start_matches("r#").to_owned(),
            doc: docs::text(attributes),
            visibility: visibility.clone(),
            associated,
            receiver: signature.receiver().map(by_reference).transpose()?,
            parameters,
            returns: returns(&signature.output)?,
            waits: signature.asyncness.is_some(),
            marks,
            ident,
        };
        function.check().map(|()| function)
    }

    /// Checks the marks against the signature.
    fn check(&self) -> Result<()> {
        let blocking = self.marks.place(Flag::Blocking);
        if let (Some(span), true) = (blocking, self.waits) {
            return Err(Error::new(
                span,
                "`blocking` contradicts `async`: a function that may wait never holds its thread",
            ));
        }
        if let (Some(span), true) = (self.marks.place(Flag::Pure), self.changes()) {
            return Err(Error::new(span, "`pure` contradicts `&mut`: a pure function changes nothing"));
        }
        if let (Some(new), None) = (&self.marks.new, self.receiver) {
            return Err(Error::new_spanned(
                new,
                "`new` makes what is behind `self`, which this function does not take",
            ));
        }
        Ok(())
    }

    fn changes(&self) -> bool {
        self.receiver == Some(true) || self.parameters.iter().any(|parameter| parameter.passing == Passing::Change)
    }

    /// What calls it in Rust.
    pub(crate) fn path(&self) -> TokenStream {
        let ident = &self.ident;
        if self.associated { quote!(Self::#ident) } else { quote!(#ident) }
    }

    /// Whether it returns a `Result`.
    pub(crate) fn fails(&self) -> bool {
        let Type::Path(path) = &self.returns else { return false };
        path.path.segments.last().is_some_and(|last| {
            let types = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().filter(|argument| matches!(argument, GenericArgument::Type(_))).count()
                }
                _ => 0,
            };
            last.ident == "Result" && types > 0
        })
    }

    fn sibling(&self) -> TokenStream {
        let HostFunction { name, doc, visibility, .. } = self;
        let sibling = sibling_of(&self.ident);
        let effects = self.marks.effects(self.waits, self.changes());
        let parameters = self.parameters.iter().map(Parameter::described);
        let (result, state) = (self.described_result(), self.described_state());
        let code = adaptor::code(self);
        quote! {
            #[doc(hidden)]
            #[allow(dead_code, unreachable_pub, unused_mut, unused_variables, clippy::all)]
            #visibility fn #sibling() -> ::weir::Function {
                #[allow(unused_imports)]
                use ::weir::macros::{FailsDisplayed as _, FailsTyped as _, FailsWithError as _};
                ::weir::macros::Described::new(#name, #doc, #effects) #(#parameters)* #result #state .runs(#code)
            }
        }
    }

    fn described_result(&self) -> TokenStream {
        let returns = &self.returns;
        if !self.fails() {
            return quote_spanned!(returns.span()=> .gives::<#returns>());
        }
        quote_spanned! { returns.span()=>
            .gives::<<#returns as ::weir::macros::Fallible>::Ok>()
            .fails(
                (&&&::weir::macros::Tag::<<#returns as ::weir::macros::Fallible>::Err>::new()).failure_type(),
                |definitions| {
                    (&&&::weir::macros::Tag::<<#returns as ::weir::macros::Fallible>::Err>::new())
                        .failure_define(definitions)
                },
            )
        }
    }

    fn described_state(&self) -> TokenStream {
        let Some(changes) = self.receiver else { return TokenStream::new() };
        let mode = Ident::new(if changes { "Write" } else { "Read" }, Span::mixed_site());
        let make = match &self.marks.new {
            Some(path) => quote_spanned!(path.span()=> #path()),
            None => quote_spanned!(self.ident.span()=> <Self as ::core::default::Default>::default()),
        };
        quote! {
            .keeps(::core::any::type_name::<Self>(), ::weir::Mode::#mode, || {
                ::weir::macros::make_state::<Self>(#make)
            })
        }
    }
}

fn read_parameters(signature: &mut Signature) -> Result<Vec<Parameter>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut index = 0;
    for argument in &mut signature.inputs {
        let FnArg::Typed(typed) = argument else { continue };
        let parameter = Parameter::parse(typed, index)?;
        index += usize::from(parameter.passing != Passing::Environment);
        parameters.push(parameter);
    }
    Ok(parameters)
}

fn by_reference(receiver: &Receiver) -> Result<bool> {
    if receiver.reference.is_none() || receiver.colon_token.is_some() {
        let why = "the state of a call site outlives the call: take `&mut self` or `&self`";
        return Err(Error::new_spanned(receiver, why));
    }
    Ok(receiver.mutability.is_some())
}

fn returns(output: &ReturnType) -> Result<Type> {
    let ReturnType::Type(_, ty) = output else { return Ok(syn::parse_quote!(())) };
    if let Type::Reference(reference) = &**ty {
        let why = "a host function gives a value of its own: clone what it would lend";
        return Err(Error::new_spanned(reference, why));
    }
    supported(ty).map(|()| (**ty).clone())
}
