//! The description of a command: a function that exists in tests alone and names the types by `ts_rs::TS`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Meta, Pat, PathArguments, PathSegment,
    Result, ReturnType, Type,
};

use crate::attribute::{Named, Options};

/// Arguments that Tauri gives by itself.
const OF_TAURI: [&str; 6] = ["AppHandle", "Request", "State", "Webview", "WebviewWindow", "Window"];

/// The name of the function that describes a command.
pub fn name_of(command: &Ident) -> Ident {
    format_ident!("__describe_{command}", span = command.span())
}

/// The function that describes a command.
pub fn describe(options: &Options, function: &ItemFn) -> Result<TokenStream> {
    let command = &function.sig.ident;
    let (name, describe) = (command.to_string(), name_of(command));
    let docs = docs(&function.attrs);
    if docs.is_empty() {
        return Err(Error::new_spanned(
            command,
            "a command has documentation, which its interface repeats",
        ));
    }
    let windows = windows(options);
    let arguments = arguments(options, function)?;
    let result = result(options, &function.sig.output);
    Ok(quote! {
        #[cfg(test)]
        #[doc(hidden)]
        pub(super) fn #describe(
            types: &mut crate::commands::interface::Types,
        ) -> crate::commands::interface::Description {
            crate::commands::interface::Description {
                name: #name,
                docs: #docs,
                windows: #windows,
                arguments: vec![#(#arguments),*],
                result: #result,
            }
        }
    })
}

/// The variants of `WindowName` that are the named windows, so that a window that does not exist does not compile.
fn windows(options: &Options) -> TokenStream {
    if options.windows.iter().any(|window| window == "all") {
        return quote!(::api::WindowName::ALL.to_vec());
    }
    let variants = options.windows.iter().map(|window| {
        let name = window.to_string();
        let (head, tail) = name.split_at(1);
        Ident::new(&(head.to_uppercase() + tail), window.span())
    });
    quote!(vec![#(::api::WindowName::#variants),*])
}

fn arguments(options: &Options, function: &ItemFn) -> Result<Vec<TokenStream>> {
    let mut arguments = Vec::new();
    let text = |name: &Ident, kind: TokenStream, ty: TokenStream| {
        let name = camel_case(&name.to_string());
        quote! {
            crate::commands::interface::Argument {
                name: #name,
                kind: crate::commands::interface::Kind::#kind,
                ty: #ty,
            }
        }
    };
    if let Some(body) = &options.body {
        arguments.push(text(body, quote!(Body), quote!("Uint8Array".to_owned())));
    }
    for Named { name, text: header } in &options.headers {
        arguments.push(text(name, quote!(Header(#header)), quote!("string".to_owned())));
    }
    for argument in &function.sig.inputs {
        let FnArg::Typed(argument) = argument else {
            return Err(Error::new_spanned(argument, "a command is no method"));
        };
        let segment = last_segment(&argument.ty);
        if segment.is_some_and(|segment| OF_TAURI.iter().any(|own| segment.ident == own)) {
            continue;
        }
        let Pat::Ident(pattern) = &*argument.pat else {
            return Err(Error::new_spanned(&argument.pat, "an argument of a command has a name"));
        };
        if let Some(body) = &options.body {
            return Err(Error::new_spanned(
                pattern,
                format!("{body} is the body; the call has no other arguments"),
            ));
        }
        let name = &pattern.ident;
        let channel = segment.filter(|segment| segment.ident == "Channel").and_then(inner);
        let kind = if channel.is_some() {
            quote!(Channel)
        } else {
            quote!(Value)
        };
        let ty = name_of_type(options, name, channel.unwrap_or(&argument.ty));
        arguments.push(text(name, kind, ty));
    }
    Ok(arguments)
}

/// The TypeScript type inside the promise.
fn result(options: &Options, output: &ReturnType) -> TokenStream {
    let ReturnType::Type(_, ty) = output else {
        return quote!("void".to_owned());
    };
    let value = last_segment(ty)
        .filter(|segment| segment.ident == "Result")
        .and_then(inner)
        .unwrap_or(ty);
    match value {
        Type::Tuple(tuple) if tuple.elems.is_empty() => quote!("void".to_owned()),
        // Bytes that Tauri passes on as they are.
        value if last_segment(value).is_some_and(|segment| segment.ident == "Response") => {
            quote!("ArrayBuffer".to_owned())
        }
        value => name_of_type(options, &format_ident!("result"), value),
    }
}

/// The expression that names a type in TypeScript, and lets its file be imported.
fn name_of_type(options: &Options, name: &Ident, ty: &Type) -> TokenStream {
    match options.type_of(name) {
        Some(text) => quote!(types.name_as::<#ty>(#text)),
        None => quote!(types.name::<#ty>()),
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// The first type between the angle brackets.
fn inner(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The lines of documentation in one.
fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// The name as Tauri expects it from JavaScript.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words.filter(|word| !word.is_empty()) {
        let (head, tail) = word.split_at(1);
        camel += &(head.to_uppercase() + tail);
    }
    camel
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn names_are_those_of_javascript() {
        assert_eq!(camel_case("on_event"), "onEvent");
        assert_eq!(camel_case("id"), "id");
    }

    #[test]
    fn a_command_needs_documentation_and_a_body_is_alone() {
        let undocumented: ItemFn = parse_quote! { pub async fn stop(app: State<'_, App>) -> Result<()> {} };
        let options: Options = parse_quote!(chat);
        let error = describe(&options, &undocumented).expect_err("it is refused");
        assert!(error.to_string().contains("documentation"), "{error}");

        let crowded: ItemFn = parse_quote! {
            /// Adds an image.
            pub async fn add(app: State<'_, App>, request: Request<'_>, name: String) -> Result<()> {}
        };
        let options: Options = parse_quote!(chat, body(bytes));
        let error = describe(&options, &crowded).expect_err("it is refused");
        assert!(error.to_string().contains("no other arguments"), "{error}");
    }

    #[test]
    fn an_unknown_option_or_no_window_is_refused() {
        assert!(syn::parse_str::<Options>("chat, colour = \"green\"").is_err());
        assert!(syn::parse_str::<Options>("body(bytes)").is_err());
    }
}
