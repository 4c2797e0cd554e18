//! Text of PowerPoint presentations: the slides in the order in which they are shown, each with its notes.

use std::collections::{HashMap, HashSet};

use super::archive::{Archive, MAX_PARTS};
use super::markdown::Writer;
use super::package::{main_part, relations};
use super::xml::{walk, Mark, Tag};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

const KIND: DocumentKind = DocumentKind::Pptx;

/// The text of a presentation.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(archive: &mut Archive<'_>, budget: &Budget) -> Result<String> {
    let main = main_part(archive, "ppt/presentation.xml", budget)?;
    let named = relations(archive, &main, budget)?;
    let named: HashMap<_, _> = named.into_iter().map(|named| (named.id, named.part)).collect();
    let mut text = String::new();
    for (at, id) in order(&archive.part(&main)?, budget)?.iter().enumerate() {
        let missing = || Error::broken(KIND, "it names a slide that it does not have");
        let slide = read(archive, named.get(id).ok_or_else(missing)?, at + 1, budget)?;
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&slide);
        if text.len() > MAX_TEXT {
            return Err(Error::too_much_text());
        }
    }
    Ok(text)
}

/// The names of the slides within the presentation, in order; one that is named again stands where it was first.
fn order(xml: &[u8], budget: &Budget) -> Result<Vec<String>> {
    let mut order = Vec::new();
    let mut named = HashSet::new();
    walk(xml, KIND, budget, |mark| {
        if let Mark::Open(tag) = mark {
            if tag.name() == "sldId" {
                let id = tag.prefixed("id").filter(|id| named.insert(id.clone()));
                order.extend(id);
            }
        }
        match order.len() > MAX_PARTS {
            true => Err(Error::broken(KIND, "it names more slides than a presentation has")),
            false => Ok(()),
        }
    })?;
    Ok(order)
}

/// A slide with its heading and notes.
fn read(archive: &mut Archive<'_>, part: &str, number: usize, budget: &Budget) -> Result<String> {
    let mut slide = Shapes::new(false);
    slide.read(&archive.part(part)?, budget)?;
    let notes = relations(archive, part, budget)?.into_iter();
    let notes: Vec<_> = notes.filter(|named| named.role == "notesSlide").take(1).collect();
    let mut said = Shapes::new(true);
    for notes in notes {
        said.read(&archive.part(&notes.part)?, budget)?;
    }
    let hidden = if slide.hidden { " (hidden)" } else { "" };
    let mut text = format!("## Slide {number}{hidden}");
    for (before, written) in [("\n\n", slide.writer.finish()), ("\n\nNotes: ", said.writer.finish())] {
        if !written.trim().is_empty() {
            text.push_str(before);
            text.push_str(written.trim());
        }
    }
    Ok(text)
}

/// The reader of the shapes of a slide or of its notes.
struct Shapes {
    writer: Writer,
    /// True for notes, of which only the body is read: the rest repeats the slide.
    notes: bool,
    hidden: bool,
    /// The number of open elements that are skipped.
    unread: usize,
    /// The role of the shape, such as `title`; `None` for boxes of text.
    role: Option<String>,
    /// How deep the item of a list lies that the paragraph is.
    item: Option<usize>,
    /// True until the paragraph's first letters.
    fresh: bool,
    /// True within `a:t`, whose letters belong to the text.
    text: bool,
    tables: usize,
}

impl Shapes {
    fn new(notes: bool) -> Self {
        Self {
            writer: Writer::default(),
            notes,
            hidden: false,
            unread: 0,
            role: None,
            item: None,
            fresh: false,
            text: false,
            tables: 0,
        }
    }

    fn read(&mut self, xml: &[u8], budget: &Budget) -> Result<()> {
        walk(xml, KIND, budget, |mark| {
            match mark {
                Mark::Open(_) if self.unread > 0 => self.unread += 1,
                Mark::Close(_) if self.unread > 0 => self.unread -= 1,
                Mark::Open(tag) => self.open(tag),
                Mark::Close(name) => self.close(name),
                Mark::Text(text) if self.text && self.unread == 0 && self.is_read() => {
                    self.begin();
                    self.writer.verbatim(text)?;
                }
                Mark::Text(_) => {}
            }
            Ok(())
        })
    }

    /// False for what stands on every slide, and for the picture of the slide in its notes.
    fn is_read(&self) -> bool {
        match self.role.as_deref() {
            Some("sldNum" | "dt" | "ftr" | "hdr" | "sldImg") => false,
            role => !self.notes || role == Some("body"),
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag.name() {
            "sld" => self.hidden = tag.attribute("show").is_some_and(|show| show == "0" || show == "false"),
            "sp" | "graphicFrame" | "cxnSp" => self.role = None,
            "ph" => self.role = Some(tag.attribute("type").unwrap_or_else(|| "body".into())),
            "p" => {
                let is_body = matches!(self.role.as_deref(), Some("body" | "obj"));
                self.item = (is_body && !self.notes).then_some(0);
                self.fresh = true;
            }
            "pPr" => {
                let level = tag.attribute("lvl").and_then(|level| level.parse().ok());
                self.item = self.item.map(|item| level.unwrap_or(item));
            }
            "buNone" => self.item = None,
            "buChar" | "buAutoNum" if !self.notes => self.item = self.item.or(Some(0)),
            "t" => self.text = true,
            "br" => self.writer.line(),
            "tbl" => {
                self.tables += 1;
                self.writer.block();
            }
            "tr" if self.tables == 1 => self.writer.row(),
            "tc" if self.tables == 1 => self.writer.cell(),
            // Fallbacks of newer elements for older programs.
            "Fallback" => self.unread = 1,
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "t" => self.text = false,
            "p" => self.writer.block(),
            "tr" if self.tables == 1 => self.writer.end_row(),
            "tbl" => {
                self.tables = self.tables.saturating_sub(1);
                self.writer.end_row();
                self.writer.block();
            }
            _ => {}
        }
    }

    /// The marks of a paragraph stand before its first letters, and those of one without letters nowhere.
    fn begin(&mut self) {
        if !std::mem::take(&mut self.fresh) || self.tables > 0 {
            return;
        }
        match (self.role.as_deref(), self.item) {
            (Some("title" | "ctrTitle"), _) => self.writer.begin("### "),
            (_, Some(depth)) => self.writer.item(depth),
            _ => {}
        }
    }
}
