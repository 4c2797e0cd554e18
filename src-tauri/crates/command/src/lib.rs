//! `#[command]`: a function that windows call, described for the generator of their TypeScript interface.

mod attribute;
mod describe;

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{parse_macro_input, ItemFn, Token, UseTree};

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
    let trees = match Punctuated::<UseTree, Token![,]>::parse_terminated.parse(paths) {
        Ok(trees) => trees,
        Err(error) => return error.into_compile_error().into(),
    };
    let (paths, descriptions): (Vec<_>, Vec<_>) = trees.iter().flat_map(functions).unzip();
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

/// The paths of the functions in a tree such as `chats::{chat, chats}`, and of those that describe them.
fn functions(tree: &UseTree) -> Vec<(proc_macro2::TokenStream, proc_macro2::TokenStream)> {
    match tree {
        UseTree::Path(path) => {
            let (folder, inner) = (&path.ident, functions(&path.tree).into_iter());
            let within = |path| quote!(#folder::#path);
            inner
                .map(|(path, description)| (within(path), within(description)))
                .collect()
        }
        UseTree::Group(group) => group.items.iter().flat_map(functions).collect(),
        UseTree::Name(name) => {
            let (name, description) = (&name.ident, describe::name_of(&name.ident));
            vec![(quote!(#name), quote!(#description))]
        }
        other => vec![(quote!(#other), quote!(#other))],
    }
}
