//! `weir::library!`: generates a module of functions.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, Path, Result, Token, Visibility};

use crate::docs;
use crate::host::sibling_of;

struct LibraryInput {
    attributes: Vec<Attribute>,
    visibility: Option<Visibility>,
    name: Ident,
    functions: Vec<Path>,
}

impl Parse for LibraryInput {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = match input.parse()? {
            Visibility::Inherited => None,
            visibility => Some(visibility),
        };
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let functions = Punctuated::<Path, Token![,]>::parse_terminated_with(input, Path::parse_mod_style)?;
        Ok(LibraryInput { attributes, visibility, name, functions: functions.into_iter().collect() })
    }
}

/// Expands the macro.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    match syn::parse2::<LibraryInput>(input).and_then(|library| library.module()) {
        Ok(module) => module,
        Err(error) => error.into_compile_error(),
    }
}

impl LibraryInput {
    fn module(&self) -> Result<TokenStream> {
        self.refuse_twice()?;
        let LibraryInput { attributes, name, .. } = self;
        let visibility = self.visibility.as_ref().map_or_else(|| quote!(pub), |visibility| quote!(#visibility));
        let doc = docs::text(attributes);
        let shown = if doc.is_empty() { format!("The module `{name}`.") } else { doc.clone() };
        let text = name.to_string();
        let text = text.trim_start_matches("r#");
        let functions = self.functions.iter().map(sibling_path);
        Ok(quote! {
            #[doc = #shown]
            #[allow(unreachable_pub)]
            #[must_use]
            #visibility fn #name() -> ::weir::Module {
                let module = ::weir::Module::new(#text, #doc);
                #(let module = ::weir::macros::with_function(module, #functions());)*
                module
            }
        })
    }

    fn refuse_twice(&self) -> Result<()> {
        let written: Vec<String> = self.functions.iter().map(|path| quote!(#path).to_string()).collect();
        for (index, path) in self.functions.iter().enumerate() {
            if written[..index].contains(&written[index]) {
                return Err(Error::new_spanned(path, "this function is listed twice"));
            }
        }
        Ok(())
    }
}

fn sibling_path(path: &Path) -> TokenStream {
    let mut path = path.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = sibling_of(&last.ident);
    }
    quote_spanned!(syn::spanned::Spanned::span(&path)=> #path)
}
