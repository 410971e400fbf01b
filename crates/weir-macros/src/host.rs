//! Model of a host function, read from a Rust function and used to generate its adaptor.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Error, FnArg, Receiver, Result, ReturnType, Signature, Type, Visibility};

use crate::construct::StateConstructor;
use crate::docs;
use crate::marks::{Flag, FunctionMarks};
use crate::parameter::{Parameter, Passing, supported};

/// A host function: its Rust signature and its marks.
pub(crate) struct HostFunction {
    /// Name in Rust.
    pub(crate) ident: Ident,
    /// Name in Weir.
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) visibility: Visibility,
    /// `true` if the function is called as `Self::name`.
    pub(crate) associated: bool,
    /// `Some(true)` for `&mut self`, `Some(false)` for `&self`.
    pub(crate) receiver: Option<bool>,
    pub(crate) parameters: Vec<Parameter>,
    /// The return type as written.
    pub(crate) returns: Type,
    pub(crate) waits: bool,
    pub(crate) marks: FunctionMarks,
    /// The constructor of the state behind `self`, if there is one.
    pub(crate) constructor: Option<StateConstructor>,
}

impl HostFunction {
    pub(crate) fn read(
        marks: FunctionMarks,
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
            constructor: None,
        };
        function.check().map(|()| function)
    }

    /// Returns the function with `constructor` as the constructor of its state.
    pub(crate) fn made_by(mut self, constructor: Option<&StateConstructor>) -> Result<Self> {
        let (Some(constructor), Some(_)) = (constructor, self.receiver) else { return Ok(self) };
        if let Some(new) = &self.marks.new {
            return Err(Error::new_spanned(new, "the block's `#[new]` creates the state: remove `new = …`"));
        }
        let taken = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        if let Some(twice) = constructor.parameters.iter().find(|parameter| taken(&parameter.name)) {
            let why =
                format!("`{}` is a parameter of `#[new]` as well, and calls pass both by name: rename one", twice.name);
            return Err(Error::new_spanned(&self.ident, why));
        }
        self.constructor = Some(constructor.clone());
        Ok(self)
    }

    /// Checks the marks against the signature.
    fn check(&self) -> Result<()> {
        let blocking = self.marks.span_of(Flag::Blocking);
        if let (Some(span), true) = (blocking, self.waits) {
            return Err(Error::new(
                span,
                "`blocking` contradicts `async`: a function that may wait must not block its thread",
            ));
        }
        if let (Some(span), false) = (self.marks.span_of(Flag::AwaitsPeer), self.waits) {
            return Err(Error::new(
                span,
                "`awaits_peer` needs `async`: a function that waits for nobody waits for no peer",
            ));
        }
        if let (Some(span), true) = (self.marks.span_of(Flag::Pure), self.changes()) {
            return Err(Error::new(span, "`pure` contradicts `&mut`: a pure function changes nothing"));
        }
        if let Some(units) = &self.marks.units
            && (self.waits || blocking.is_some() || self.receiver == Some(true))
        {
            return Err(Error::new_spanned(
                units,
                "`units` is for functions that return immediately and have no state: a call that takes long runs on \
                 another thread",
            ));
        }
        if let Some(at_once) = &self.marks.at_once
            && !self.waits
        {
            return Err(Error::new_spanned(at_once, "`at_once` needs `async`: any other function returns at once"));
        }
        if let (Some(new), None) = (&self.marks.new, self.receiver) {
            return Err(Error::new_spanned(
                new,
                "`new` creates the state behind `self`, which this function does not take",
            ));
        }
        Ok(())
    }

    /// Returns `true` if the function changes its state or one of its arguments.
    pub(crate) fn changes(&self) -> bool {
        self.receiver == Some(true)
            || self.parameters.iter().any(|parameter| parameter.passing == Passing::Change || parameter.changes_inside)
    }

    /// Returns the path by which Rust calls the function.
    pub(crate) fn path(&self) -> TokenStream {
        let ident = &self.ident;
        if self.associated { quote!(Self::#ident) } else { quote!(#ident) }
    }
}

/// Returns the name of the hidden sibling of the function `ident`.
pub(crate) fn sibling_of(ident: &Ident) -> Ident {
    format_ident!("__weir_function_{}", ident.to_string().trim_start_matches("r#"), span = ident.span())
}

/// Refuses generic parameters, with which a function has no single signature.
pub(crate) fn refuse_generics(generics: &syn::Generics) -> Result<()> {
    if generics.params.is_empty() {
        return Ok(());
    }
    let why = "a host function has no generic parameters; take `weir::Value` for a type parameter `T`";
    Err(Error::new_spanned(&generics.params, why))
}

fn read_parameters(signature: &mut Signature) -> Result<Vec<Parameter>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut index = 0;
    for argument in &mut signature.inputs {
        let FnArg::Typed(typed) = argument else { continue };
        let parameter = Parameter::parse(typed, index)?;
        let options = parameters.iter().find(|before| before.passing == Passing::Options);
        if let (Some(options), true) = (options, parameter.passing != Passing::Environment) {
            return Err(Error::new_spanned(&options.ty, "options are the last parameter"));
        }
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
        let why = "a host function returns an owned value: clone the referenced one";
        return Err(Error::new_spanned(reference, why));
    }
    supported(ty).map(|()| (**ty).clone())
}
