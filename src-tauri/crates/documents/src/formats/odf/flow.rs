//! Texts and slides of OpenDocument: paragraphs, headings, lists, tables and notes.

use super::super::markdown::Writer;
use super::super::xml::{walk, Mark, Tag};
use crate::budget::Budget;
use crate::error::Result;
use crate::kind::DocumentKind;

/// The most spaces that stand for one mark of spaces.
const MOST_SPACES: usize = 100;

/// The text of a document, and its notes after it.
pub(super) fn text(xml: &[u8], kind: DocumentKind, budget: &Budget) -> Result<String> {
    let mut flow = Flow::default();
    walk(xml, kind, budget, |mark| {
        match mark {
            Mark::Open(_) if flow.unread > 0 => flow.unread += 1,
            Mark::Close(_) if flow.unread > 0 => flow.unread -= 1,
            Mark::Open(tag) => flow.open(tag)?,
            Mark::Close(name) => flow.close(name),
            Mark::Text(text) if flow.paragraphs > 0 && flow.unread == 0 => flow.words(text)?,
            Mark::Text(_) => {}
        }
        Ok(())
    })?;
    let (text, notes) = (flow.text.finish(), flow.notes.finish());
    Ok(match notes.is_empty() {
        true => text,
        false => format!("{text}\n\n{notes}"),
    })
}

#[derive(Default)]
struct Flow {
    text: Writer,
    notes: Writer,
    /// True within a note.
    in_note: bool,
    note: usize,
    slide: usize,
    /// True within the notes of a slide, and within the shape that is its title.
    in_slide_notes: bool,
    in_title: bool,
    /// Open paragraphs, whose letters are read.
    paragraphs: usize,
    lists: usize,
    tables: usize,
    /// The marks that stand before the next letters.
    pending: Pending,
    /// The number of open elements that are skipped.
    unread: usize,
}

/// Marks of a block without letters stand nowhere, so they wait for the first.
#[derive(Default)]
enum Pending {
    #[default]
    Nothing,
    Heading(usize),
    Item(usize),
    Note(usize),
    SlideNotes,
}

impl Flow {
    fn writer(&mut self) -> &mut Writer {
        match self.in_note {
            true => &mut self.notes,
            false => &mut self.text,
        }
    }

    fn words(&mut self, text: &str) -> Result<()> {
        if !text.trim().is_empty() {
            self.begin();
        }
        self.writer().words(text)
    }

    fn begin(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let writer = self.writer();
        match pending {
            Pending::Nothing => {}
            Pending::Heading(level) => writer.begin(&format!("{} ", "#".repeat(level.clamp(1, 6)))),
            Pending::Item(depth) => writer.item(depth),
            Pending::Note(number) => writer.begin(&format!("[^{number}]: ")),
            Pending::SlideNotes => writer.begin("Notes: "),
        }
    }

    fn open(&mut self, tag: Tag<'_>) -> Result<()> {
        match tag.name() {
            "p" => {
                self.paragraphs += 1;
                if self.in_title {
                    self.pending = Pending::Heading(3);
                }
            }
            "h" => {
                self.paragraphs += 1;
                self.pending = Pending::Heading(tag.number("outline-level").unwrap_or(1));
            }
            "s" if self.paragraphs > 0 => {
                self.begin();
                let spaces = tag.number("c").unwrap_or(1).min(MOST_SPACES);
                self.writer().verbatim(&" ".repeat(spaces))?;
            }
            "tab" if self.paragraphs > 0 => {
                self.begin();
                self.writer().verbatim("\t")?;
            }
            "line-break" => self.writer().line(),
            "list" => self.lists += 1,
            "list-item" | "list-header" if !self.in_slide_notes && !self.in_title => {
                self.pending = Pending::Item(self.lists.saturating_sub(1));
            }
            "note" => {
                self.note += 1;
                self.begin();
                let mark = format!("[^{}]", self.note);
                self.writer().verbatim(&mark)?;
                self.in_note = true;
                self.pending = Pending::Note(self.note);
            }
            "table" => {
                self.tables += 1;
                if self.tables == 1 {
                    self.writer().block();
                }
            }
            "table-row" if self.tables == 1 => self.writer().row(),
            "table-cell" | "covered-table-cell" if self.tables == 1 => self.writer().cell(),
            "page" => {
                self.slide += 1;
                self.text.begin("## ");
                self.text.words(&format!("Slide {}", self.slide))?;
                self.text.block();
            }
            "notes" => {
                self.in_slide_notes = true;
                self.pending = Pending::SlideNotes;
            }
            "frame" => self.in_title = tag.attribute("class").is_some_and(|class| class == "title"),
            // Remarks, deleted text, the marks of notes, forms, readings of words, and pictures with their names.
            "annotation" | "tracked-changes" | "note-citation" | "forms" | "ruby-text" | "binary-data" => {
                self.unread = 1
            }
            "title" | "desc" if tag.is_of("svg") => self.unread = 1,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" | "h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                if name == "h" {
                    self.pending = Pending::Nothing;
                }
                self.writer().block();
            }
            "list-item" | "list-header" => self.pending = Pending::Nothing,
            "list" => self.lists = self.lists.saturating_sub(1),
            "note" => {
                self.in_note = false;
                self.pending = Pending::Nothing;
            }
            "table-row" if self.tables == 1 => self.writer().end_row(),
            "table" => {
                self.tables = self.tables.saturating_sub(1);
                if self.tables == 0 {
                    self.writer().end_row();
                    self.writer().block();
                }
            }
            "page" => self.pending = Pending::Nothing,
            "notes" => {
                self.in_slide_notes = false;
                self.pending = Pending::Nothing;
            }
            "frame" if self.in_title => (self.in_title, self.pending) = (false, Pending::Nothing),
            _ => {}
        }
    }
}
