//! The markup of HTML and Word as Markdown, which models read best.

use crate::error::{Error, Result};
use crate::limits::MAX_TEXT;

/// Text with headings, lists and tables, as it comes.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: String,
    /// Line feeds that stand before the next word.
    feeds: usize,
    /// True if a space precedes the next word.
    space: bool,
    /// The Markdown prefix of the next block.
    prefix: String,
    /// True if the next block, or the last one, is a list item.
    next_is_item: bool,
    in_list: bool,
    /// Cells that the row has so far.
    cells: Option<usize>,
}

impl Writer {
    /// Words, of whose spaces in a row one is left.
    pub fn words(&mut self, text: &str) -> Result<()> {
        for (at, word) in text.split(char::is_whitespace).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.before();
                self.out.push_str(word);
            }
        }
        self.check()
    }

    /// Words as they stand, with their spaces.
    pub fn verbatim(&mut self, text: &str) -> Result<()> {
        if !text.is_empty() {
            self.before();
            self.out.push_str(text);
        }
        self.check()
    }

    /// The end of a line within a block.
    pub fn line(&mut self) {
        match self.cells {
            // A row of a table is one line.
            Some(_) => self.space = true,
            None => self.feeds = self.feeds.max(1),
        }
    }

    /// The end of a block: an empty line follows.
    pub fn block(&mut self) {
        match self.cells {
            Some(_) => self.space = true,
            None => {
                self.feeds = 2;
                self.prefix.clear();
                self.next_is_item = false;
            }
        }
    }

    /// The next block begins with this.
    pub fn begin(&mut self, prefix: &str) {
        self.block();
        if self.cells.is_none() {
            self.prefix = prefix.to_owned();
        }
    }

    /// An item of a list begins, at this depth.
    pub fn item(&mut self, depth: usize) {
        self.begin(&format!("{}- ", "  ".repeat(depth.min(8))));
        if self.cells.is_none() {
            self.next_is_item = true;
            self.feeds = if self.in_list { 1 } else { 2 };
        }
    }

    /// A row of a table begins.
    pub fn row(&mut self) {
        self.end_row();
        self.line();
        self.cells = Some(0);
    }

    /// A cell of the row begins.
    pub fn cell(&mut self) {
        let Some(cells) = &mut self.cells else { return };
        *cells += 1;
        let first = *cells == 1;
        self.space = false;
        if first {
            self.before();
            self.out.push_str("| ");
        } else {
            self.out.push_str(" | ");
        }
    }

    /// The row of a table is over.
    pub fn end_row(&mut self) {
        if self.cells.take().is_some_and(|cells| cells > 0) {
            self.out.push_str(" |");
            self.feeds = 1;
        }
        self.space = false;
    }

    /// All of it.
    pub fn finish(mut self) -> String {
        self.end_row();
        self.out
    }

    fn before(&mut self) {
        if !self.out.is_empty() && self.feeds > 0 {
            self.out.push_str(&"\n".repeat(self.feeds));
        } else if self.space && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        if self.next_is_item || self.feeds > 1 {
            self.in_list = std::mem::take(&mut self.next_is_item);
        }
        (self.feeds, self.space) = (0, false);
        self.out.push_str(&std::mem::take(&mut self.prefix));
    }

    fn check(&self) -> Result<()> {
        match self.out.len() <= MAX_TEXT {
            true => Ok(()),
            false => Err(Error::too_much_text()),
        }
    }
}
