//! Text of Excel workbooks: each sheet below its name, a line for each row and a tab between cells.

mod number;
mod parts;

use std::collections::{HashMap, HashSet};

use self::parts::{Formats, Strings, Workbook};
use super::archive::Archive;
use super::package::{main_part, relations, Relation};
use super::rows::Rows;
use super::xml::{walk, Mark, Tag};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;

const KIND: DocumentKind = DocumentKind::Xlsx;

/// The text of a workbook.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(archive: &mut Archive<'_>, budget: &Budget) -> Result<String> {
    let main = main_part(archive, "xl/workbook.xml", budget)?;
    let workbook = Workbook::read(&archive.part(&main)?, budget)?;
    let named = relations(archive, &main, budget)?;
    let by_id: HashMap<&str, &Relation> = named.iter().map(|named| (named.id.as_str(), named)).collect();
    let with_role = |role: &str| named.iter().find(|named| named.role == role);
    let strings = match with_role("sharedStrings") {
        Some(named) => Strings::read(&archive.part(&named.part)?, budget)?,
        None => Strings::default(),
    };
    let formats = match with_role("styles") {
        Some(named) => Formats::read(&archive.part(&named.part)?, budget)?,
        None => Formats::default(),
    };
    let mut sheet = Sheet {
        strings: &strings,
        formats: &formats,
        from_1904: workbook.from_1904,
        rows: Rows::new(KIND),
        row: 0,
        cell: Cell::default(),
        reads: None,
        unread: 0,
    };
    let mut seen = HashSet::new();
    for (name, id, hidden) in &workbook.sheets {
        let missing = || Error::broken(KIND, "it names a sheet that it does not have");
        let Relation { role, part, .. } = by_id.get(id.as_str()).ok_or_else(missing)?;
        // Sheets that are a chart have no cells.
        if role != "worksheet" || !seen.insert(part) {
            continue;
        }
        sheet.rows.sheet(name, *hidden);
        sheet.row = 0;
        let xml = archive.part(part)?;
        walk(&xml, KIND, budget, |mark| sheet.mark(mark))?;
    }
    Ok(sheet.rows.finish())
}

/// The reader of the cells of all sheets.
struct Sheet<'a> {
    strings: &'a Strings,
    formats: &'a Formats,
    from_1904: bool,
    rows: Rows,
    /// The number of the row, from 1; 0 before the first one.
    row: usize,
    cell: Cell,
    /// The element whose letters are read.
    reads: Option<Letters>,
    /// The number of open elements that are skipped.
    unread: usize,
}

/// A cell that is being read.
#[derive(Default)]
struct Cell {
    place: Option<String>,
    kind: String,
    style: usize,
    value: String,
    formula: String,
}

#[derive(Clone, Copy)]
enum Letters {
    Value,
    Formula,
}

impl Sheet<'_> {
    fn mark(&mut self, mark: Mark<'_>) -> Result<()> {
        match mark {
            Mark::Open(_) if self.unread > 0 => self.unread += 1,
            Mark::Close(_) if self.unread > 0 => self.unread -= 1,
            Mark::Open(tag) => self.open(tag),
            Mark::Close("c") => {
                let cell = std::mem::take(&mut self.cell);
                let column = cell.place.as_deref().and_then(column);
                let shown = self.shown(cell)?;
                self.rows.cell(column, &shown)?;
            }
            Mark::Close("row") => self.rows.end_row(1)?,
            Mark::Close("v" | "t" | "f") => self.reads = None,
            Mark::Close(_) => {}
            Mark::Text(text) if self.unread == 0 => match self.reads {
                Some(Letters::Value) => self.cell.value.push_str(text),
                Some(Letters::Formula) => self.cell.formula.push_str(text),
                None => {}
            },
            Mark::Text(_) => {}
        }
        Ok(())
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag.name() {
            "row" => {
                let number = tag.number("r").unwrap_or_else(|| self.row.saturating_add(1));
                if number > self.row.saturating_add(1) {
                    self.rows.leave_gap();
                }
                self.row = number;
                self.rows.begin();
            }
            "c" => {
                self.cell = Cell {
                    place: tag.attribute("r"),
                    kind: tag.attribute("t").unwrap_or_default(),
                    style: tag.number("s").unwrap_or(0),
                    ..Cell::default()
                };
            }
            "v" | "t" => self.reads = Some(Letters::Value),
            "f" => self.reads = Some(Letters::Formula),
            // Readings of Japanese words.
            "rPh" => self.unread = 1,
            _ => {}
        }
    }

    fn shown(&self, cell: Cell) -> Result<String> {
        let value = cell.value;
        Ok(match cell.kind.as_str() {
            "s" => self.strings.get(value.trim())?.to_owned(),
            "b" if value.trim() == "1" => "TRUE".into(),
            "b" if value.trim() == "0" => "FALSE".into(),
            "str" | "inlineStr" | "e" | "d" | "b" => value,
            // Programs that do not calculate write formulas alone.
            _ if value.is_empty() && !cell.formula.is_empty() => format!("={}", cell.formula),
            _ if value.is_empty() => value,
            _ => self.formats.of(cell.style).shown(&value, self.from_1904),
        })
    }
}

/// The column of a place such as `AB12`, from 0.
fn column(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let column = letters.fold(0_usize, |column, letter| {
        let letter = usize::from(letter.to_ascii_uppercase() - b'A') + 1;
        column.saturating_mul(26).saturating_add(letter)
    });
    column.checked_sub(1)
}
