//! The kinds of files.

use serde::{Deserialize, Serialize};

/// The kinds of files that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DocumentKind {
    /// Plain text, source code, logs, and whatever else is text.
    Text,
    /// Markdown.
    Markdown,
    /// Values separated by commas or tabs.
    Csv,
    /// A page of the web.
    Html,
    /// PDF.
    Pdf,
    /// A document of Word, since 2007.
    Docx,
    /// A workbook of Excel, since 2007.
    Xlsx,
    /// A presentation of PowerPoint, since 2007.
    Pptx,
    /// A text of OpenDocument, such as LibreOffice writes.
    Odt,
    /// Its sheets.
    Ods,
    /// Its slides.
    Odp,
    /// A book.
    Epub,
    /// A message, or a page that was saved as one.
    Mail,
}

impl DocumentKind {
    /// Such as `text/csv`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Csv => "text/csv",
            Self::Html => "text/html",
            Self::Pdf => "application/pdf",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            Self::Odt => "application/vnd.oasis.opendocument.text",
            Self::Ods => "application/vnd.oasis.opendocument.spreadsheet",
            Self::Odp => "application/vnd.oasis.opendocument.presentation",
            Self::Epub => "application/epub+zip",
            Self::Mail => "message/rfc822",
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "Markdown",
            Self::Csv => "CSV",
            Self::Html => "HTML",
            Self::Pdf => "PDF",
            Self::Docx => "Word",
            Self::Xlsx => "Excel",
            Self::Pptx => "PowerPoint",
            Self::Odt | Self::Ods | Self::Odp => "OpenDocument",
            Self::Epub => "EPUB",
            Self::Mail => "email",
        }
    }
}

/// The extension of a name in lower case; `None` if there is none.
pub(crate) fn extension(name: &str) -> Option<String> {
    let (stem, extension) = name.rsplit_once('.')?;
    let plain = (1..=12).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (plain && !stem.is_empty()).then(|| extension.to_ascii_lowercase())
}
