//! Sheets of cells as text: a line for each row and a tab between cells.

use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

/// The most columns of a sheet, in Excel as in LibreOffice.
const MAX_COLUMNS: usize = 16_384;

/// The rows of all sheets.
pub(crate) struct Rows {
    kind: DocumentKind,
    out: String,
    /// True if empty rows stand before the next line: one empty line, however many they are.
    gap: bool,
    line: String,
    /// The tabs that the line has so far, and the column that the next cell has if it does not say.
    columns: usize,
    next: usize,
}

impl Rows {
    pub fn new(kind: DocumentKind) -> Self {
        Self {
            kind,
            out: String::new(),
            gap: false,
            line: String::new(),
            columns: 0,
            next: 0,
        }
    }

    /// A sheet begins, below its name.
    pub fn sheet(&mut self, name: &str, hidden: bool) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let hidden = if hidden { " (hidden)" } else { "" };
        self.out.push_str(&format!("## {name}{hidden}\n\n"));
        self.gap = false;
        self.begin();
    }

    /// A row begins.
    pub fn begin(&mut self) {
        self.line.clear();
        (self.columns, self.next) = (0, 0);
    }

    /// Empty rows were left out.
    pub fn leave_gap(&mut self) {
        self.gap = true;
    }

    /// Empty cells follow.
    pub fn skip(&mut self, cells: usize) {
        self.next = self.next.saturating_add(cells);
    }

    /// A cell, in its column if it says so; empty columns before it are tabs.
    ///
    /// # Errors
    /// `Broken` if it lies outside of any sheet, `TooLarge` if there is too much text.
    pub fn cell(&mut self, column: Option<usize>, shown: &str) -> Result<()> {
        let column = column.unwrap_or(self.next).max(self.next);
        self.next = column.saturating_add(1);
        if column >= MAX_COLUMNS && !shown.is_empty() {
            return Err(Error::broken(self.kind, "a cell of it lies outside of its sheet"));
        }
        if shown.is_empty() {
            return Ok(());
        }
        self.line.extend(std::iter::repeat_n('\t', column - self.columns));
        self.columns = column;
        self.line.extend(shown.chars().map(|letter| match letter {
            '\n' | '\r' | '\t' => ' ',
            letter => letter,
        }));
        self.check(self.out.len() + self.line.len())
    }

    /// The row is over, which stands so many times.
    ///
    /// # Errors
    /// `TooLarge` if there is too much text.
    pub fn end_row(&mut self, times: usize) -> Result<()> {
        if self.line.is_empty() {
            self.gap = true;
            return Ok(());
        }
        if std::mem::take(&mut self.gap) && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        for _ in 0..times {
            self.out.push_str(&self.line);
            self.out.push('\n');
            self.check(self.out.len())?;
        }
        self.line.clear();
        Ok(())
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.out
    }

    fn check(&self, length: usize) -> Result<()> {
        match length > MAX_TEXT {
            true => Err(Error::too_much_text()),
            false => Ok(()),
        }
    }
}
