//! Servers that are programs of this computer, spoken to by their standard input and output.

mod error_lines;
mod guard;
mod launch;

pub use error_lines::ErrorLines;
pub use guard::take_role;
pub use launch::{find, Guard, Launch, StartError};
