//! `#[command]`: a function that windows call, described for the generator of their TypeScript interface.

mod attribute;
mod describe;

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{parse_macro_input, ItemFn, Path, Token};

use attribute::Options;

/// Makes a function a command of Tauri and describes it. The options are the windows that call it, `all` for every one,
/// and `body`, `header` and `types`, which the README of this crate explains.
#[proc_macro_attribute]
pub fn command(options: TokenStream, function: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options as Options);
    let function = parse_macro_input!(function as ItemFn);
    match describe::describe(&options, &function) {
        Ok(description) => quote! {
            #[::tauri::command]
            #function
            #description
        }
        .into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Expands the paths of all commands to `all`, the handler for Tauri, and in tests to `describe`, their descriptions.
#[proc_macro]
pub fn list(paths: TokenStream) -> TokenStream {
    let paths = match Punctuated::<Path, Token![,]>::parse_terminated.parse(paths) {
        Ok(paths) => paths,
        Err(error) => return error.into_compile_error().into(),
    };
    let descriptions = paths.iter().map(|path| {
        let mut path = path.clone();
        if let Some(last) = path.segments.last_mut() {
            last.ident = describe::name_of(&last.ident);
        }
        path
    });
    let paths = paths.iter();
    quote! {
        /// The handler of every command.
        pub fn all() -> impl Fn(::tauri::ipc::Invoke) -> bool + Send + Sync + 'static {
            ::tauri::generate_handler![#(#paths),*]
        }

        /// The descriptions of every command, in the order of the list.
        #[cfg(test)]
        fn describe(types: &mut crate::commands::interface::Types) -> Vec<crate::commands::interface::Description> {
            vec![#(#descriptions(types)),*]
        }
    }
    .into()
}
