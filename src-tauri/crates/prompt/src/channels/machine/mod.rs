//! The state machine behind the channel parser, which decides to which channel each stretch of text belongs. It sees
//! text and markers, no tokens.

mod call;
mod calls;
mod input;
mod messages;
mod speculation;
mod state;
mod thoughts;
mod words;

pub(super) use state::Machine;
