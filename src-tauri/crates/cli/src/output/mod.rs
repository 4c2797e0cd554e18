//! Standard output and standard error: text for people, JSON lines for programs.

mod answer_lines;
pub mod exit_code;
mod failure;
mod one_line;
mod plural;
mod printer;
mod terminal;
mod tokens;

pub(crate) use answer_lines::AnswerLines;
pub(crate) use failure::{fail, print_failure, sentence, warn, without_numbers};
pub(crate) use one_line::{exact_line, one_line, visible_line};
pub(crate) use plural::plural;
pub(crate) use printer::Printer;
pub use terminal::{line, text};
pub(crate) use terminal::{report, Stream};
pub(crate) use tokens::context_length;
