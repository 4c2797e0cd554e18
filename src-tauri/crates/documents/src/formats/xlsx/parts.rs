//! The parts of a workbook beside its sheets: their names, the texts that cells share, and the formats of numbers.

use std::collections::HashMap;

use super::super::archive::MAX_PARTS;
use super::super::xml::{walk, Mark};
use super::number::Format;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

const KIND: DocumentKind = DocumentKind::Xlsx;

/// The most formats of cells; Excel has 65,490.
const MAX_FORMATS: usize = 70_000;

/// The longest code of a format, in bytes; Excel's have 255 characters.
const LONGEST_CODE: usize = 1_020;

/// The list of sheets.
#[derive(Default)]
pub(super) struct Workbook {
    /// Their names, their names among the relations, and true for those that are hidden.
    pub sheets: Vec<(String, String, bool)>,
    /// True if days are counted from 1904, as old programs of Apple's did.
    pub from_1904: bool,
}

impl Workbook {
    pub fn read(xml: &[u8], budget: &Budget) -> Result<Self> {
        let mut workbook = Self::default();
        walk(xml, KIND, budget, |mark| {
            let Mark::Open(tag) = mark else { return Ok(()) };
            match tag.name() {
                "workbookPr" => {
                    let from_1904 = tag.attribute("date1904");
                    workbook.from_1904 = from_1904.is_some_and(|from| from == "1" || from == "true");
                }
                "sheet" => {
                    let name = tag.attribute("name").unwrap_or_default();
                    let hidden = tag.attribute("state").is_some_and(|state| state != "visible");
                    if let Some(id) = tag.prefixed("id") {
                        workbook.sheets.push((name, id, hidden));
                    }
                }
                _ => {}
            }
            match workbook.sheets.len() > MAX_PARTS {
                true => Err(Error::broken(KIND, "it names more sheets than a workbook has")),
                false => Ok(()),
            }
        })?;
        Ok(workbook)
    }
}

/// The texts that cells name by number.
#[derive(Default)]
pub(super) struct Strings {
    text: String,
    /// The end of each one in all of the text.
    ends: Vec<usize>,
}

impl Strings {
    pub fn read(xml: &[u8], budget: &Budget) -> Result<Self> {
        let mut strings = Self::default();
        let mut reads = false;
        let mut unread = 0_usize;
        walk(xml, KIND, budget, |mark| {
            match mark {
                Mark::Open(_) if unread > 0 => unread += 1,
                Mark::Close(_) if unread > 0 => unread -= 1,
                Mark::Open(tag) => match tag.name() {
                    "t" => reads = true,
                    // Readings of Japanese words.
                    "rPh" => unread = 1,
                    _ => {}
                },
                Mark::Text(text) if reads && unread == 0 => strings.text.push_str(text),
                Mark::Text(_) => {}
                Mark::Close("si") => strings.ends.push(strings.text.len()),
                Mark::Close(name) => reads &= name != "t",
            }
            match strings.text.len() + strings.ends.len() > MAX_TEXT {
                true => Err(Error::too_much_text()),
                false => Ok(()),
            }
        })?;
        Ok(strings)
    }

    /// The text of a number, as a cell spells it.
    pub fn get(&self, number: &str) -> Result<&str> {
        let number: Option<usize> = number.parse().ok();
        let range = number.and_then(|number| {
            let start = match number.checked_sub(1) {
                Some(before) => *self.ends.get(before)?,
                None => 0,
            };
            Some(start..*self.ends.get(number)?)
        });
        range
            .and_then(|range| self.text.get(range))
            .ok_or_else(|| Error::broken(KIND, "a cell of it names a text that it does not have"))
    }
}

/// The formats of numbers that cells name by the number of their style.
#[derive(Default)]
pub(super) struct Formats {
    formats: Vec<Format>,
    general: Format,
}

impl Formats {
    pub fn read(xml: &[u8], budget: &Budget) -> Result<Self> {
        let mut own: HashMap<usize, Format> = HashMap::new();
        let mut formats = Self::default();
        let mut of_cells = false;
        walk(xml, KIND, budget, |mark| {
            match mark {
                Mark::Open(tag) => match tag.name() {
                    "numFmt" => {
                        let code = tag.attribute("formatCode").filter(|code| code.len() <= LONGEST_CODE);
                        if let (Some(id), Some(code)) = (tag.number("numFmtId"), code) {
                            own.insert(id, Format::of(&code));
                        }
                    }
                    "cellXfs" => of_cells = true,
                    "xf" if of_cells => {
                        let id = tag.number("numFmtId").unwrap_or(0);
                        let format = own.get(&id).cloned().unwrap_or_else(|| Format::known(id));
                        formats.formats.push(format);
                    }
                    _ => {}
                },
                Mark::Close("cellXfs") => of_cells = false,
                _ => {}
            }
            match own.len().max(formats.formats.len()) > MAX_FORMATS {
                true => Err(Error::broken(KIND, "it has more formats than a workbook has")),
                false => Ok(()),
            }
        })?;
        Ok(formats)
    }

    /// The format of a style.
    pub fn of(&self, style: usize) -> &Format {
        self.formats.get(style).unwrap_or(&self.general)
    }
}
