//! Standard output and standard error: text for people, JSON lines for programs.

mod answer_lines;
mod failure;
mod printer;
mod terminal;

pub(crate) use answer_lines::AnswerLines;
pub(crate) use failure::{fail, sentence, warn};
pub(crate) use printer::Printer;
pub(crate) use terminal::soft;
pub use terminal::{line, text};
