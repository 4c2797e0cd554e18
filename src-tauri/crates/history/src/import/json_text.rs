//! JSON texts of one import.

use protocol::{json_values, JsonExcess};
use serde_json::Value;

use crate::{Error, Result};

/// The most values of an import, such as texts and times; a message of ChatGPT has about 45. A value takes up to 300
/// bytes of memory, although `[]` has two in the file.
const MOST_VALUES: usize = 5_000_000;

/// The deepest nesting, which is the parser's own limit.
const DEEPEST: usize = 128;

/// The byte order mark that some programs write before JSON.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A text without its byte order mark.
pub(super) fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Parses the texts of one import, which have a number of values together.
pub(super) struct JsonText {
    values_left: usize,
}

impl Default for JsonText {
    fn default() -> Self {
        Self {
            values_left: MOST_VALUES,
        }
    }
}

impl JsonText {
    /// The value of a text.
    ///
    /// # Errors
    /// [`Error::Import`] if it is too much, or begins with `no_json` if it is no JSON.
    pub(super) fn parse(&mut self, text: &[u8], no_json: impl Fn() -> String) -> Result<Value> {
        let text = unmarked(text);
        let count = json_values(text, DEEPEST, self.values_left).map_err(|excess| {
            Error::Import(match excess {
                JsonExcess::Depth => format!("{} (it is nested more than {DEEPEST} levels deep)", no_json()),
                JsonExcess::Values => "it holds more than 5,000,000 values".into(),
            })
        })?;
        self.values_left -= count;
        serde_json::from_slice(text).map_err(|error| Error::Import(format!("{} ({error})", no_json())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &mut JsonText, text: &str) -> String {
        let parsed = texts.parse(text.as_bytes(), || "it is no JSON".into());
        parsed.map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn the_texts_of_an_import_have_a_number_of_values_together() {
        let mut texts = JsonText { values_left: 5 };
        assert_eq!(said(&mut texts, "\u{feff}[1,[2]]"), "[1,[2]]");
        assert_eq!(texts.values_left, 2);
        assert!(said(&mut texts, "[[],[],[],[]]").contains("more than 5,000,000 values"));
        assert_eq!(said(&mut texts, "[\"[,[,[,\"]"), "[\"[,[,[,\"]");
        assert!(said(&mut texts, "[[1]]").contains("more than 5,000,000 values"));
        assert!(said(&mut texts, "[").contains("it is no JSON"));
    }
}
