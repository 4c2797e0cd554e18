//! Answers in the form of a JSON schema: which tokens may come next. A mask of the vocabulary for each step, no tensors
//! and no tokenizer; the grammar engine is llguidance.

mod answer_grammar;
mod call_grammar;
mod closing;
mod error;
mod gemma_arguments;
mod limits;
mod literal;
mod schema;
mod vocabulary;

pub use answer_grammar::AnswerGrammar;
pub use error::{Error, Result};
pub use schema::{any_object, check, check_calls};
pub use vocabulary::Vocabulary;
