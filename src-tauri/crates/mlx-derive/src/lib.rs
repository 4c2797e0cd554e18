//! `#[derive(Parameters)]`: every tensor that a struct or an enum holds.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{parse_macro_input, Data, DeriveInput, Error, Field, Fields, Result};

/// Implements `mlx::parameters::Parameters`: fields are visited in the order of their declaration. Those with
/// `#[parameters(skip)]` are left out.
#[proc_macro_derive(Parameters, attributes(parameters))]
pub fn parameters(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let arms = match &input.data {
        Data::Struct(data) => vec![arm(&quote!(Self), &data.fields)?],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let ident = &variant.ident;
                arm(&quote!(Self::#ident), &variant.fields)
            })
            .collect::<Result<_>>()?,
        Data::Union(_) => return Err(Error::new(name.span(), "the fields of a union cannot be visited")),
    };
    Ok(quote! {
        impl ::mlx::parameters::Parameters for #name {
            fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a ::mlx::tensor::Tensor)) {
                match self {
                    #(#arms)*
                }
            }
        }
    })
}

/// The arm of a `match` that visits the fields of a struct or of one variant.
fn arm(path: &TokenStream, fields: &Fields) -> Result<TokenStream> {
    let mut members = Vec::new();
    for (field, member) in fields.iter().zip(fields.members()) {
        if !is_skipped(field)? {
            members.push(member);
        }
    }
    let names: Vec<_> = (0..members.len()).map(|index| format_ident!("field{index}")).collect();
    Ok(quote! {
        #path { #(#members: #names,)* .. } => {
            #(::mlx::parameters::Parameters::visit(#names, visitor);)*
        }
    })
}

fn is_skipped(field: &Field) -> Result<bool> {
    let mut skipped = false;
    for attribute in field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("parameters"))
    {
        attribute.parse_nested_meta(|meta| {
            skipped = meta.path.is_ident("skip");
            if skipped {
                Ok(())
            } else {
                Err(meta.error("the one option is `skip`"))
            }
        })?;
    }
    Ok(skipped)
}
