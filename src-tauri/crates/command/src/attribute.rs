//! The options in the brackets of `#[command(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Meta, MetaNameValue, Result, Token};

/// A name in TypeScript and the text beside it: a header, or a type.
pub struct Named {
    pub name: Ident,
    pub text: LitStr,
}

/// The options of a command.
#[derive(Default)]
pub struct Options {
    /// The windows that call it; `all` stands for every one.
    pub windows: Vec<Ident>,
    /// The argument whose bytes are the body of the call.
    pub body: Option<Ident>,
    /// Arguments that are sent as headers.
    pub headers: Vec<Named>,
    /// TypeScript types that are narrower than those of Rust, by the argument; `result` is that of the result.
    pub types: Vec<Named>,
}

impl Options {
    /// The TypeScript type that was given for an argument, or for `result`.
    pub fn type_of(&self, name: &Ident) -> Option<&LitStr> {
        self.types
            .iter()
            .find(|named| named.name == *name)
            .map(|named| &named.text)
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        for option in Punctuated::<Meta, Token![,]>::parse_terminated(input)? {
            match &option {
                Meta::Path(path) => options.windows.push(path.require_ident()?.clone()),
                Meta::List(list) if list.path.is_ident("body") => options.body = Some(list.parse_args()?),
                Meta::List(list) if list.path.is_ident("header") => options.headers.extend(named(list)?),
                Meta::List(list) if list.path.is_ident("types") => options.types.extend(named(list)?),
                other => {
                    return Err(Error::new_spanned(
                        other,
                        "expected a window, `body`, `header` or `types`",
                    ))
                }
            }
        }
        if options.windows.is_empty() {
            return Err(input.error("expected the windows that call this command, or `all`"));
        }
        Ok(options)
    }
}

/// The pairs of a list such as `header(name = "ponder-name")`.
fn named(list: &syn::MetaList) -> Result<Vec<Named>> {
    let pairs = list.parse_args_with(Punctuated::<MetaNameValue, Token![,]>::parse_terminated)?;
    let named = pairs.into_iter().map(|pair| {
        let name = pair.path.require_ident()?.clone();
        match pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Ok(Named { name, text }),
            other => Err(Error::new_spanned(other, "expected a text")),
        }
    });
    named.collect()
}
