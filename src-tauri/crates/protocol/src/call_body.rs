//! The text of a tool call between its markers.

/// How a model writes a call between its markers, as its chat template shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallBody {
    /// The name of the tool and its arguments as JSON, in a frame of text.
    Json {
        /// The text before the name.
        before: String,
        /// The text between the name and the arguments.
        between: String,
        /// The text after the arguments.
        after: String,
    },
    /// Gemma 4: `call:NAME{key:value,…}`, keys in alphabetical order, texts between two of this token.
    Gemma {
        /// The quotation mark.
        quote: u32,
    },
}
