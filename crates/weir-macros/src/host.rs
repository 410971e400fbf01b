//! What a Rust function says of itself: the model that the attributes read off it and write adaptors from.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Error, FnArg, Receiver, Result, ReturnType, Signature, Type, Visibility};

use crate::construct::Constructor;
use crate::docs;
use crate::marks::{Flag, FunctionMarks};
use crate::parameter::{Parameter, Passing, supported};

/// What a Rust function says of itself.
pub(crate) struct HostFunction {
    /// Its name in Rust.
    pub(crate) ident: Ident,
    /// Its name in Weir.
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) visibility: Visibility,
    /// Whether `Self::` comes before its name.
    pub(crate) associated: bool,
    /// Whether it takes `&self`, or by `true` `&mut self`.
    pub(crate) receiver: Option<bool>,
    pub(crate) parameters: Vec<Parameter>,
    /// What it returns, as written.
    pub(crate) returns: Type,
    pub(crate) waits: bool,
    pub(crate) marks: FunctionMarks,
    /// What makes the state behind `self`, where it is made of something.
    pub(crate) constructor: Option<Constructor>,
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

    /// The same function, the state of which is made by `constructor`.
    pub(crate) fn made_by(mut self, constructor: Option<&Constructor>) -> Result<Self> {
        let (Some(constructor), Some(_)) = (constructor, self.receiver) else { return Ok(self) };
        if let Some(new) = &self.marks.new {
            return Err(Error::new_spanned(new, "`#[new]` of this block makes the state: leave this out"));
        }
        let taken = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        if let Some(twice) = constructor.parameters.iter().find(|parameter| taken(&parameter.name)) {
            let why = format!("`{}` is a parameter of `#[new]` too, and a call gives both by name", twice.name);
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
                "`blocking` contradicts `async`: a function that may wait never holds its thread",
            ));
        }
        if let (Some(span), true) = (self.marks.span_of(Flag::Pure), self.changes()) {
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

    /// Whether it changes what it is called on or with.
    pub(crate) fn changes(&self) -> bool {
        self.receiver == Some(true) || self.parameters.iter().any(|parameter| parameter.passing == Passing::Change)
    }

    /// What calls it in Rust.
    pub(crate) fn path(&self) -> TokenStream {
        let ident = &self.ident;
        if self.associated { quote!(Self::#ident) } else { quote!(#ident) }
    }
}

/// The name of the hidden sibling of the function `ident`.
pub(crate) fn sibling_of(ident: &Ident) -> Ident {
    format_ident!("__weir_function_{}", ident.to_string().trim_start_matches("r#"), span = ident.span())
}

/// A generic function has no one signature.
pub(crate) fn refuse_generics(generics: &syn::Generics) -> Result<()> {
    if generics.params.is_empty() {
        return Ok(());
    }
    let why = "a host function has no generic parameters; `weir::Value` stands for a type `T` that calls decide";
    Err(Error::new_spanned(&generics.params, why))
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
