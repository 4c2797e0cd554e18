//! Documents: from the bytes of a file to text that a model can be given, and to pages that a person looks at. Pure: no
//! MLX, network or database; every limit on hostile files stands here, and is checked before anything is unfolded.
//! Nothing that a file names is loaded.

mod budget;
mod detect;
mod error;
mod excerpt;
mod formats;
mod kind;
mod limits;
mod page_image;
mod quote;

pub use error::{Error, Result};
pub use excerpt::{pieces, unit, whole, PAGE_BREAK};
pub use kind::DocumentKind;
pub use limits::{MAX_BYTES, MAX_TEXT};
pub use page_image::{PageImage, PageMark, PageRequest};
pub use quote::quoted;

use std::time::Duration;

use budget::Budget;
use detect::kind_of;
use formats::archive::Archive;
use formats::{docx, epub, html, mail, odf, pdf, pptx, text, xlsx};
use sandbox::{Task, Work};
use serde::{Deserialize, Serialize};

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The kind of file, by its contents and, among texts, by its name.
    pub kind: DocumentKind,
    /// Its text: lines end with a line feed, pages with [`PAGE_BREAK`], and there are no other control characters than
    /// tabs.
    pub text: String,
}

/// Longer than a reader takes to notice that its own time is over.
const TIME: Duration = Duration::from_secs(40);

static READ: Task<String, Result<Document>> =
    Task::new("document", TIME, |name, bytes| (extract_all(bytes, &name), Vec::new()));

/// A person waits for a page. The process is ended before its thread would be left to itself.
const PAGE_TIME: Duration = Duration::from_secs(20);

static DRAW: Task<PageRequest, Result<PageImage>> = Task::new("page", PAGE_TIME, |wanted, bytes| {
    let mut drawn = draw(bytes, wanted);
    let png = drawn
        .as_mut()
        .map_or_else(|_| Vec::new(), |page| std::mem::take(&mut page.png));
    (drawn, png)
});

/// The work of this room on files of strangers.
pub static TASKS: [&dyn Work; 2] = [&READ, &DRAW];

/// Reads a file, in the process that files of strangers are read in if this program has one. `name` is what it is
/// called; contents decide before it.
///
/// # Errors
/// Says what is wrong with the file and what to do about it.
pub fn read(bytes: Vec<u8>, name: &str) -> Result<Document> {
    let kind = kind_of(&bytes, name)?;
    let (document, _) = READ
        .run(name.to_owned(), bytes)
        .map_err(|error| Error::broken(kind, error.to_string()))?;
    document
}

/// Draws a page of a PDF, in the process that files of strangers are read in if this program has one. No other kind of
/// file has pages of its own.
///
/// # Errors
/// Says what is wrong with the file and what to do about it.
pub fn page_image(bytes: Vec<u8>, wanted: PageRequest) -> Result<PageImage> {
    let (drawn, png) = DRAW
        .run(wanted, bytes)
        .map_err(|error| Error::broken(DocumentKind::Pdf, error.to_string()))?;
    drawn.map(|page| PageImage { png, ..page })
}

fn draw(bytes: Vec<u8>, wanted: PageRequest) -> Result<PageImage> {
    check_size(&bytes)?;
    match kind_of(&bytes, "")? {
        kind @ DocumentKind::Pdf => budget::run(kind, move |budget| pdf::draw(&bytes, &wanted, budget)),
        kind => Err(Error::NotDrawn(kind.name().into())),
    }
}

fn check_size(bytes: &[u8]) -> Result<()> {
    match bytes.len() > MAX_BYTES {
        false => Ok(()),
        true => Err(Error::TooLarge(format!(
            "its file has {} MB, and at most {} are read",
            bytes.len() / 1_000_000,
            MAX_BYTES / 1_000_000
        ))),
    }
}

/// Reads it here, on a thread of its own that a file which takes too long is left to.
fn extract_all(bytes: Vec<u8>, name: &str) -> Result<Document> {
    check_size(&bytes)?;
    let kind = kind_of(&bytes, name)?;
    let (kind, text) = budget::run(kind, move |budget| extract(kind, &bytes, budget))?;
    let text = text::tidy(&text);
    if text.len() > MAX_TEXT {
        return Err(Error::too_much_text());
    }
    let blank = |letter: char| letter.is_whitespace() || letter == PAGE_BREAK;
    match text.chars().all(blank) {
        true => Err(Error::no_text(kind)),
        false => Ok(Document { kind, text }),
    }
}

/// The text, and the kind as the contents of an archive tell it.
fn extract(kind: DocumentKind, bytes: &[u8], budget: &Budget) -> Result<(DocumentKind, String)> {
    let (kind, text) = match kind {
        DocumentKind::Pdf => return Ok((kind, pdf::text(bytes, budget)?)),
        DocumentKind::Text | DocumentKind::Markdown | DocumentKind::Csv => (kind, text::decode(bytes)?),
        DocumentKind::Html => (kind, html::text(&text::decode(bytes)?, budget)?),
        DocumentKind::Mail => (kind, mail::text(bytes, budget)?),
        DocumentKind::Docx
        | DocumentKind::Xlsx
        | DocumentKind::Pptx
        | DocumentKind::Odt
        | DocumentKind::Ods
        | DocumentKind::Odp
        | DocumentKind::Epub => of_archive(Archive::open(bytes, kind, budget)?, budget)?,
    };
    // Only a file with pages has page breaks.
    Ok((kind, text.replace(PAGE_BREAK, "\n")))
}

fn of_archive(mut archive: Archive<'_>, budget: &Budget) -> Result<(DocumentKind, String)> {
    let kind = archive.kind();
    let read = match kind {
        DocumentKind::Epub => epub::text,
        DocumentKind::Pptx => pptx::text,
        DocumentKind::Xlsx => xlsx::text,
        DocumentKind::Odt | DocumentKind::Ods | DocumentKind::Odp => odf::text,
        _ => docx::text,
    };
    Ok((kind, read(&mut archive, budget)?))
}
