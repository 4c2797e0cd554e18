//! One file on its way into the index: its bytes, the text that a reader makes of them, its passages.

use documents::Document;
use protocol::Error;
use sha2::{Digest, Sha256};

use crate::folder::{read, FoundFile, Reading, Rules, SkipReason, Source, Stamp};
use crate::passages::{split, Form, Passage, Size};

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text; pages end with [`documents::PAGE_BREAK`].
    pub text: String,
    /// Its structure.
    pub form: Form,
}

impl Text {
    /// The text of a document with this name.
    pub fn of(document: Document, name: &str) -> Self {
        Self {
            form: Form::of(document.kind, name),
            text: document.text,
        }
    }
}

/// Makes text of the bytes of a file with this name, or says why there is none.
pub type Reader<'a> = dyn Fn(Vec<u8>, &str) -> Result<Text, Error> + 'a;

/// The outcome of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its text and the passages of it.
    Read {
        /// The SHA-256 of its bytes.
        hash: [u8; 32],
        /// Its state.
        stamp: Stamp,
        /// The whole text.
        text: String,
        /// Its passages.
        passages: Vec<Passage>,
    },
    /// Its bytes are those that were read before.
    Same {
        /// Its state.
        stamp: Stamp,
    },
    /// There is no text in it that can be read.
    Failed {
        /// The SHA-256 of its bytes.
        hash: [u8; 32],
        /// Its state.
        stamp: Stamp,
        /// Why.
        error: Error,
    },
    /// It was not read.
    Skipped(SkipReason),
}

/// Reads a file and splits it. `known`: the hash of the bytes that were read of it before; the same ones are not read
/// again.
pub fn prepare(
    source: &Source,
    rules: &Rules,
    file: &FoundFile,
    known: Option<[u8; 32]>,
    reader: &Reader<'_>,
    size: Size<'_>,
) -> Outcome {
    let Reading { bytes, hash, stamp } = match read(source, file, rules.most_bytes) {
        Ok(reading) => reading,
        Err(reason) => return Outcome::Skipped(reason),
    };
    if known == Some(hash) {
        return Outcome::Same { stamp };
    }
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    match reader(bytes, &name) {
        Ok(text) => read_text(text, hash, stamp, size),
        Err(error) => Outcome::Failed { hash, stamp, error },
    }
}

/// [`prepare`] for a text that no file holds.
pub fn prepare_text(text: Text, stamp: Stamp, known: Option<[u8; 32]>, size: Size<'_>) -> Outcome {
    let hash: [u8; 32] = Sha256::digest(text.text.as_bytes()).into();
    match known == Some(hash) {
        true => Outcome::Same { stamp },
        false => read_text(text, hash, stamp, size),
    }
}

fn read_text(Text { text, form }: Text, hash: [u8; 32], stamp: Stamp, size: Size<'_>) -> Outcome {
    Outcome::Read {
        hash,
        stamp,
        passages: split(&text, form, size),
        text,
    }
}
