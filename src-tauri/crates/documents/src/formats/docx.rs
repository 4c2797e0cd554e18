//! Text of Word documents: an archive of XML, of which one file says what stands in the document and another its notes.

use std::io::{Cursor, Read};

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;
use zip::result::ZipError;
use zip::ZipArchive;

use super::markdown::Writer;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

/// The largest unpacked file of the archive, in bytes. A thousand pages have about ten million.
const MAX_PART: u64 = 100_000_000;

/// The most files that the archive may name.
const MAX_FILES: usize = 10_000;

/// How many marks are read between two looks at the time.
const STEPS: usize = 10_000;

const NOTES: [&str; 2] = ["word/footnotes.xml", "word/endnotes.xml"];

/// The text of a document.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(bytes: &[u8], budget: &Budget) -> Result<String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken_archive)?;
    if archive.len() > MAX_FILES {
        let reason = "it holds more files than a document has";
        return Err(Error::broken(DocumentKind::Docx, reason));
    }
    let Some(main) = main_part(&archive) else {
        return Err(other_archive(&archive));
    };
    let mut writer = Writer::default();
    read(&part(&mut archive, &main)?, &mut writer, budget)?;
    for notes in NOTES {
        if archive.index_for_name(notes).is_some() {
            read(&part(&mut archive, notes)?, &mut writer, budget)?;
        }
    }
    Ok(writer.finish())
}

/// The name of the file with the document's text. Word calls it so; others number it.
fn main_part(archive: &ZipArchive<Cursor<&[u8]>>) -> Option<String> {
    let is_main = |name: &str| {
        let rest = name.strip_prefix("word/document");
        let number = rest.and_then(|rest| rest.strip_suffix(".xml"));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut names = archive.file_names().flatten();
    names.find(|name| is_main(name)).map(|name| name.into_owned())
}

/// The error for an archive that is no Word document, which names the kind that it is.
fn other_archive(archive: &ZipArchive<Cursor<&[u8]>>) -> Error {
    let holds = |start: &str| archive.file_names().flatten().any(|name| name.starts_with(start));
    let (what, advice) = match () {
        () if holds("xl/") => ("an Excel workbook", "save its sheet as CSV"),
        () if holds("ppt/") => ("a PowerPoint presentation", "save it as PDF"),
        () if holds("META-INF/container.xml") => ("an EPUB book", "save it as PDF or text"),
        () if holds("content.xml") => ("an OpenDocument file", "save it as DOCX or PDF"),
        () => ("an archive", "unpack it first"),
    };
    Error::UnknownKind {
        what: what.into(),
        advice: advice.into(),
    }
}

/// A file of the archive. The length in its header is not trusted.
fn part(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>> {
    let file = archive.by_name(name).map_err(broken_archive)?;
    if file.encrypted() {
        return Err(Error::Protected(DocumentKind::Docx.name().into()));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_PART + 1).read_to_end(&mut bytes);
    read.map_err(|_| Error::broken(DocumentKind::Docx, "its archive is damaged"))?;
    match bytes.len() as u64 > MAX_PART {
        true => Err(Error::TooLarge("it unfolds to more than 100 MB".into())),
        false => Ok(bytes),
    }
}

fn broken_archive(error: ZipError) -> Error {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Error::Protected(DocumentKind::Docx.name().into()),
        ZipError::UnsupportedArchive(_) => Error::broken(DocumentKind::Docx, "its archive is packed in an unusual way"),
        _ => Error::broken(DocumentKind::Docx, "its archive is damaged"),
    }
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
    let mut reader = Reader::from_reader(xml);
    let mut state = State::default();
    for step in 0_usize.. {
        if step.is_multiple_of(STEPS) {
            budget.check()?;
        }
        let event = reader.read_event();
        let event = event.map_err(|_| Error::broken(DocumentKind::Docx, "its XML is damaged"))?;
        match event {
            Event::Eof => break,
            // No document of Word has one; it is where entities are made that unfold without end.
            Event::DocType(_) => return Err(Error::broken(DocumentKind::Docx, "it declares a type of its own")),
            Event::Start(_) | Event::End(_) if state.unread > 0 => match event {
                Event::Start(_) => state.unread += 1,
                _ => state.unread -= 1,
            },
            _ if state.unread > 0 => {}
            Event::Start(start) => open(&start, &mut state, writer),
            Event::Empty(start) => {
                open(&start, &mut state, writer);
                state.unread = 0;
                close(start.local_name().as_ref(), &mut state, writer);
            }
            Event::End(end) => close(end.local_name().as_ref(), &mut state, writer),
            Event::Text(text) if state.text => writer.verbatim(&text)?,
            Event::CData(text) if state.text => writer.verbatim(&text)?,
            Event::GeneralRef(reference) if state.text => {
                let mut own = [0; 4];
                let known = match reference.resolve_char_ref() {
                    Ok(Some(letter)) => Some(&*letter.encode_utf8(&mut own)),
                    _ => resolve_predefined_entity(reference.as_ref()),
                };
                let unknown = || Error::broken(DocumentKind::Docx, "it names letters that it does not have");
                writer.verbatim(known.ok_or_else(unknown)?)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn open(start: &BytesStart<'_>, state: &mut State, writer: &mut Writer) {
    match start.local_name().as_ref() {
        "p" => (state.heading, state.item) = (None, None),
        "pPr" => state.properties = true,
        "pStyle" if state.properties => {
            let style = value(start).unwrap_or_default();
            let level = style
                .strip_prefix("Heading")
                .or_else(|| style.strip_prefix("berschrift"));
            state.heading = match style.as_str() {
                "Title" => Some(1),
                _ => level.and_then(|level| level.trim().parse().ok()),
            };
        }
        "ilvl" if state.properties => state.item = value(start).and_then(|level| level.parse().ok()),
        "numPr" if state.properties => state.item = Some(0),
        "t" => state.text = true,
        "tab" if !state.properties => drop(writer.verbatim("\t")),
        "br" | "cr" => writer.line(),
        "noBreakHyphen" => drop(writer.verbatim("-")),
        "footnoteReference" | "endnoteReference" => {
            if let Some(id) = attribute(start, "id") {
                drop(writer.verbatim(&format!("[^{id}]")));
            }
        }
        "footnote" | "endnote" => match attribute(start, "type") {
            // Separators, which are no notes.
            Some(_) => state.unread = 1,
            None => writer.begin(&format!("[^{}]: ", attribute(start, "id").unwrap_or_default())),
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

fn value(start: &BytesStart<'_>) -> Option<String> {
    attribute(start, "val")
}

fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = start.attributes();
    let mut attributes = attributes.with_checks(false).flatten();
    let found = attributes.find(|attribute| attribute.key.local_name().as_ref() == name)?;
    Some(found.value.chars().take(80).collect())
}
