//! Sheets of OpenDocument, whose cells hold the text that they show.

use super::super::rows::Rows;
use super::super::xml::{walk, Mark, Tag};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

const KIND: DocumentKind = DocumentKind::Ods;

/// The text of all sheets.
pub(super) fn text(xml: &[u8], budget: &Budget) -> Result<String> {
    let mut sheets = Sheets {
        rows: Rows::new(KIND),
        shown: String::new(),
        cells: 1,
        times: 1,
        paragraphs: 0,
        unread: 0,
    };
    walk(xml, KIND, budget, |mark| {
        match mark {
            Mark::Open(_) if sheets.unread > 0 => sheets.unread += 1,
            Mark::Close(_) if sheets.unread > 0 => sheets.unread -= 1,
            Mark::Open(tag) => sheets.open(tag),
            Mark::Close(name) => sheets.close(name)?,
            Mark::Text(text) if sheets.paragraphs > 0 && sheets.unread == 0 => sheets.shown.push_str(text),
            Mark::Text(_) => {}
        }
        match sheets.shown.len() > MAX_TEXT {
            true => Err(Error::too_much_text()),
            false => Ok(()),
        }
    })?;
    Ok(sheets.rows.finish())
}

struct Sheets {
    rows: Rows,
    /// The text of the cell.
    shown: String,
    /// How often the cell stands in its row, and the row in its sheet.
    cells: usize,
    times: usize,
    /// Open paragraphs, whose letters are read.
    paragraphs: usize,
    /// The number of open elements that are skipped.
    unread: usize,
}

impl Sheets {
    fn open(&mut self, tag: Tag<'_>) {
        match tag.name() {
            "table" => self.rows.sheet(&tag.attribute("name").unwrap_or_default(), false),
            "table-row" => {
                self.times = tag.number("number-rows-repeated").unwrap_or(1);
                self.rows.begin();
            }
            "table-cell" | "covered-table-cell" => {
                self.cells = tag.number("number-columns-repeated").unwrap_or(1);
                self.shown.clear();
            }
            "p" => {
                if !self.shown.is_empty() {
                    self.shown.push(' ');
                }
                self.paragraphs += 1;
            }
            "s" | "tab" | "line-break" => self.shown.push(' '),
            // Remarks, changes that were undone, and shapes that float above the cells.
            "annotation" | "tracked-changes" | "shapes" => self.unread = 1,
            _ => {}
        }
    }

    fn close(&mut self, name: &str) -> Result<()> {
        match name {
            "p" => self.paragraphs = self.paragraphs.saturating_sub(1),
            "table-row" => self.rows.end_row(self.times)?,
            "table-cell" | "covered-table-cell" => {
                let shown = std::mem::take(&mut self.shown);
                match shown.trim() {
                    "" => self.rows.skip(self.cells),
                    shown => {
                        for _ in 0..self.cells {
                            self.rows.cell(None, shown)?;
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
