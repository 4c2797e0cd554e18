//! Token ids to text, one id at a time.

use std::sync::Arc;

use super::tokens::Tokenizer;

/// A streaming detokenizer: characters leave it whole and as soon as their last byte is there.
///
/// Joined pieces and [`finish`](Self::finish) are the lossy UTF-8 reading of all bytes: every maximal invalid stretch
/// becomes one U+FFFD. The `tokenizers` crate instead turns a whole run of byte tokens into replacement characters when
/// one byte of it is wrong, which would take back characters that were already shown.
#[derive(Debug)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    // At most three bytes: the beginning of a character that may still be completed.
    pending: Vec<u8>,
}

impl Detokenizer {
    /// A detokenizer at the start of a text.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            tokenizer,
            pending: Vec::new(),
        }
    }

    /// The text that this id completes; empty while a character is incomplete. Unknown ids have no text.
    pub fn push(&mut self, id: u32) -> String {
        let mut bytes = self.tokenizer.bytes(id);
        if !self.pending.is_empty() {
            self.pending.append(&mut bytes);
            std::mem::swap(&mut self.pending, &mut bytes);
        }
        // Almost every token is a text of its own.
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return text,
            Err(broken) => broken.into_bytes(),
        };
        let mut text = String::new();
        let mut rest = bytes.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, broken) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(length) = error.error_len() else {
                self.pending = broken.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &broken[length..];
        }
        text.push_str(&String::from_utf8_lossy(rest));
        text
    }

    /// True while a character is incomplete.
    pub fn is_in_character(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The rest at the end, or before a marker: U+FFFD for a character that was never completed.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

impl Tokenizer {
    /// Decodes ids, control tokens as they are spelled; broken UTF-8 becomes U+FFFD. Unknown ids have no text.
    pub fn decode(self: &Arc<Self>, ids: &[u32]) -> String {
        let mut detokenizer = Detokenizer::new(self.clone());
        let mut text: String = ids.iter().map(|id| detokenizer.push(*id)).collect();
        text.push_str(&detokenizer.finish());
        text
    }
}
