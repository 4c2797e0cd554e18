//! Standard output and standard error: text for people, JSON lines for programs.

mod answer_lines;
pub mod exit_code;
mod failure;
mod plural;
mod printer;
mod terminal;

pub(crate) use answer_lines::AnswerLines;
pub(crate) use failure::{fail, print_failure, sentence, warn};
pub(crate) use plural::plural;
pub(crate) use printer::Printer;
pub(crate) use terminal::Stream;
pub use terminal::{line, text};
