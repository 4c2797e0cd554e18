//! Tool calls as models write them, read into names and JSON arguments.
//!
//! The body of a call shows in which form it is written, so that a model is understood even if its template
//! asks for another form than the one it was trained on.

mod call;
mod forms;
mod nesting;
mod number;
mod python_value;
mod schema;
mod tag;
mod tools;

#[cfg(test)]
mod tests;

pub(crate) use call::{BareCall, CallContext, ParsedCall, ParsedCalls};
pub(crate) use forms::{bare, is_torn, may_hold_text, object, read, read_arguments, OpenCall};
pub(crate) use tools::Tools;
