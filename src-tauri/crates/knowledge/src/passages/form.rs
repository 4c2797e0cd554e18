//! The structures of texts.

use documents::DocumentKind;

/// The structure of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Markdown: headings, lists, tables, fences.
    Markdown,
    /// Paragraphs between empty lines.
    Prose,
    /// Source code: what begins without indentation after an empty line stands together.
    Code,
}

/// Endings of texts that are written for people.
const PROSE: [&str; 10] = ["txt", "text", "log", "csv", "tsv", "rst", "adoc", "org", "tex", "srt"];

impl Form {
    /// The form of the text that was read of a file with this name.
    pub fn of(kind: DocumentKind, name: &str) -> Self {
        match kind {
            // Their readers write Markdown.
            DocumentKind::Markdown | DocumentKind::Html | DocumentKind::Docx => Self::Markdown,
            DocumentKind::Text => match name.rsplit_once('.') {
                Some((_, ending)) if !PROSE.contains(&ending.to_lowercase().as_str()) => Self::Code,
                _ => Self::Prose,
            },
            _ => Self::Prose,
        }
    }
}
