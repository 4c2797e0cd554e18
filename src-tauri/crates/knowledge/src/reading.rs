//! One file on its way into the index: its bytes, the text that a reader makes of them, its passages.

use documents::Document;
use media::Kind;
use protocol::{Error, Reason};
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

/// The text that a model wrote of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The SHA-256 of the bytes of the image.
    pub hash: [u8; 32],
    /// The name of the model.
    pub model: String,
    /// Its text.
    pub text: String,
}

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
        /// The model that wrote the text, of an image; none for the text of the file itself.
        described_by: Option<String>,
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
    /// It is an image, which a model reads when the person says so.
    Image {
        /// The SHA-256 of its bytes.
        hash: [u8; 32],
        /// Its state.
        stamp: Stamp,
        /// Why a model could not read it; none if none was asked.
        error: Option<Error>,
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
    match text_in(bytes, &name, reader) {
        Ok(Some(text)) => read_text(text, hash, stamp, size),
        Ok(None) => Outcome::Image {
            hash,
            stamp,
            error: None,
        },
        Err(error) => Outcome::Failed { hash, stamp, error },
    }
}

/// The text in a file; `None` for an image, which a model has to look at.
pub(crate) fn text_in(bytes: Vec<u8>, name: &str, reader: &Reader<'_>) -> Result<Option<Text>, Error> {
    let is_image = is_image(&bytes);
    match reader(bytes, name) {
        // Letters at the beginning of a text can be those of an image, so texts are read first.
        Err(error) if is_image && error.reason == Some(Reason::FileKind) => Ok(None),
        read => read.map(Some),
    }
}

/// True for the bytes of an image that consists of pixels: a drawing in SVG is a text.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    Kind::of(bytes).is_ok_and(|kind| kind != Kind::Svg)
}

/// The text that a model wrote of an image, in passages that name the model.
pub fn describe(described: Described, stamp: Stamp, size: Size<'_>) -> Outcome {
    let Described { hash, model, text } = described;
    let mut passages = split(&text, Form::Prose, size);
    for passage in &mut passages {
        passage.headings.insert(0, format!("Described by {model}"));
    }
    Outcome::Read {
        hash,
        stamp,
        text,
        passages,
        described_by: Some(model),
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
        described_by: None,
    }
}
