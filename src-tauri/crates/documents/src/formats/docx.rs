//! Text of Word documents: one part says what stands in the document and others its notes.

use super::archive::{is_word, Archive};
use super::markdown::Writer;
use super::xml::{walk, Mark, Tag};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

const NOTES: [&str; 2] = ["word/footnotes.xml", "word/endnotes.xml"];

/// The text of a document.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(archive: &mut Archive<'_>, budget: &Budget) -> Result<String> {
    let missing = || Error::broken(DocumentKind::Docx, "a part of it is missing");
    let main = archive.find(is_word).ok_or_else(missing)?;
    let mut writer = Writer::default();
    read(&archive.part(&main)?, &mut writer, budget)?;
    for notes in NOTES {
        if archive.has(notes) {
            read(&archive.part(notes)?, &mut writer, budget)?;
        }
    }
    Ok(writer.finish())
}

/// The reader's position in a document.
#[derive(Default)]
struct State {
    /// True within `w:t`, whose letters belong to the text.
    text: bool,
    /// The number of open elements that are skipped.
    unread: usize,
    /// The level of the heading that the paragraph is, from 1.
    heading: Option<usize>,
    /// How deep the item of a list lies that the paragraph is, from 0.
    item: Option<usize>,
    /// True while the paragraph's properties are read; its text follows them.
    properties: bool,
    /// Tables within cells are part of the cell.
    tables: usize,
}

fn read(xml: &[u8], writer: &mut Writer, budget: &Budget) -> Result<()> {
    let mut state = State::default();
    walk(xml, DocumentKind::Docx, budget, |mark| {
        match mark {
            Mark::Open(_) if state.unread > 0 => state.unread += 1,
            Mark::Close(_) if state.unread > 0 => state.unread -= 1,
            Mark::Open(tag) => open(tag, &mut state, writer),
            Mark::Close(name) => close(name, &mut state, writer),
            Mark::Text(text) if state.text && state.unread == 0 => writer.verbatim(text)?,
            Mark::Text(_) => {}
        }
        Ok(())
    })
}

fn open(tag: Tag<'_>, state: &mut State, writer: &mut Writer) {
    match tag.name() {
        "p" => (state.heading, state.item) = (None, None),
        "pPr" => state.properties = true,
        "pStyle" if state.properties => {
            let style = tag.attribute("val").unwrap_or_default();
            let level = style
                .strip_prefix("Heading")
                .or_else(|| style.strip_prefix("berschrift"));
            state.heading = match style.as_str() {
                "Title" => Some(1),
                _ => level.and_then(|level| level.trim().parse().ok()),
            };
        }
        "ilvl" if state.properties => state.item = tag.attribute("val").and_then(|level| level.parse().ok()),
        "numPr" if state.properties => state.item = Some(0),
        "t" => state.text = true,
        "tab" if !state.properties => drop(writer.verbatim("\t")),
        "br" | "cr" => writer.line(),
        "noBreakHyphen" => drop(writer.verbatim("-")),
        "footnoteReference" | "endnoteReference" => {
            if let Some(id) = tag.attribute("id") {
                drop(writer.verbatim(&format!("[^{id}]")));
            }
        }
        "footnote" | "endnote" => match tag.attribute("type") {
            // Separators, which are no notes.
            Some(_) => state.unread = 1,
            None => writer.begin(&format!("[^{}]: ", tag.attribute("id").unwrap_or_default())),
        },
        "tbl" => {
            state.tables += 1;
            if state.tables == 1 {
                writer.block();
            }
        }
        "tr" if state.tables == 1 => writer.row(),
        "tc" if state.tables == 1 => writer.cell(),
        // Deleted text, and fallbacks of newer elements for older programs.
        "del" | "moveFrom" | "Fallback" => state.unread = 1,
        _ => {}
    }
}

fn close(name: &str, state: &mut State, writer: &mut Writer) {
    match name {
        "pPr" => {
            state.properties = false;
            match (state.heading, state.item) {
                (Some(level), _) => writer.begin(&format!("{} ", "#".repeat(level.clamp(1, 6)))),
                (None, Some(depth)) => writer.item(depth),
                (None, None) => {}
            }
        }
        "p" => writer.block(),
        "t" => state.text = false,
        "tr" if state.tables == 1 => writer.end_row(),
        "tbl" => {
            state.tables = state.tables.saturating_sub(1);
            if state.tables == 0 {
                writer.end_row();
                writer.block();
            }
        }
        _ => {}
    }
}
