//! Passages: a text cut along its own structure, so that each piece can be found, shown and cited by itself.
//!
//! Paragraphs, lists, tables and code of one section are put together as long as they fit. A passage never crosses a
//! heading or the end of a page. Whatever does not fit alone is cut at lines and sentences, and only the pieces of a cut
//! paragraph repeat a little of the one before.

mod blocks;
mod cut;
mod form;
mod size;

use std::ops::Range;

use documents::PAGE_BREAK;

pub use form::Form;
pub use size::Size;

use blocks::{Block, BlockKind};

/// The sign between the headings of a path.
pub const PATH_SIGN: &str = " › ";

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its place in the text, in bytes.
    pub bytes: Range<usize>,
    /// The headings that it stands under, the outermost first.
    pub headings: Vec<String>,
    /// Its page, from 1; none if the text has no pages.
    pub page: Option<u32>,
    /// Its first and last line in the text, from 1.
    pub lines: (u32, u32),
}

impl Passage {
    /// Such as `Chapter 2 › Install`; empty without headings.
    pub fn heading_path(&self) -> String {
        self.headings.join(PATH_SIGN)
    }
}

/// The passages of a text in order: together they are all of it but white space. None is larger than `size.most`, unless
/// one character alone is.
pub fn split(text: &str, form: Form, size: Size<'_>) -> Vec<Passage> {
    let size = Size {
        most: size.most.max(1),
        overlap: size.overlap.min(size.most / 2),
        ..size
    };
    let has_pages = text.contains(PAGE_BREAK);
    let mut packer = Packer {
        text,
        size,
        cutter: cut::Cutter::new(text, size),
        page: None,
        path: Vec::new(),
        open: Vec::new(),
        open_size: 0,
        passages: Vec::new(),
        line: (0, 1),
    };
    let mut at = 0;
    for (page, number) in text.split(PAGE_BREAK).zip(1_u32..) {
        packer.page = has_pages.then_some(number);
        for block in blocks::blocks(page, form) {
            packer.take(block.moved(at));
        }
        packer.flush();
        at += page.len() + PAGE_BREAK.len_utf8();
    }
    packer.passages
}

/// A block that waits for its passage.
struct Open {
    bytes: Range<usize>,
    kind: BlockKind,
}

/// Puts blocks together.
struct Packer<'a> {
    text: &'a str,
    size: Size<'a>,
    cutter: cut::Cutter<'a>,
    page: Option<u32>,
    /// The open headings with their levels.
    path: Vec<(u8, String)>,
    open: Vec<Open>,
    /// The sum of their sizes.
    open_size: usize,
    passages: Vec<Passage>,
    /// A place in bytes and its line.
    line: (usize, u32),
}

impl Packer<'_> {
    fn take(&mut self, block: Block) {
        if let Some((level, title)) = block.title {
            // Headings without a text of their own stand before that of the next one.
            if !self.has_headings_alone() {
                self.flush();
            }
            self.path.retain(|(outer, _)| *outer < level);
            self.path.push((level, title));
        }
        let size = self.size_of(&block.bytes);
        let start = self.open.first().map_or(block.bytes.start, |first| first.bytes.start);
        let is_long = block.bytes.end - start > self.most_bytes();
        // Headings go with the beginning of what they stand over, even if that is to be cut.
        let may_flush = block.kind == BlockKind::Heading || !self.has_headings_alone();
        if (self.open_size + size > self.size.most || is_long) && may_flush {
            self.flush();
        }
        self.open_size += size;
        self.open.push(Open {
            bytes: block.bytes,
            kind: block.kind,
        });
        if size > self.size.most {
            self.flush();
        }
    }

    fn has_headings_alone(&self) -> bool {
        self.open.last().is_none_or(|last| last.kind == BlockKind::Heading)
    }

    /// A text of so many bytes counts as too large. Tokens of more bytes are rare, and such a text may as well be cut.
    fn most_bytes(&self) -> usize {
        self.size.most.saturating_mul(64)
    }

    /// The size of a block; of one that cannot fit no more than a beginning is counted.
    fn size_of(&self, bytes: &Range<usize>) -> usize {
        match bytes.len() > self.most_bytes() {
            true => self.size.most + 1,
            false => (self.size.count)(&self.text[bytes.clone()]),
        }
    }

    /// Makes passages of the open blocks.
    fn flush(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        self.open_size = 0;
        while let Some(first) = open.first() {
            let start = first.bytes.start;
            // The sum of the sizes mostly says it; two blocks together may be larger than their sum.
            let end_of = |open: &[Open]| open.last().map_or(start, |last| last.bytes.end);
            let mut fitting = open.len();
            while fitting > 1 && self.size_of(&(start..end_of(&open[..fitting]))) > self.size.most {
                fitting -= 1;
            }
            // Headings go with the beginning of what they stand over.
            let headings = open.iter().take_while(|open| open.kind == BlockKind::Heading).count();
            if fitting <= headings && headings < open.len() {
                fitting = headings + 1;
            }
            let bytes = start..end_of(&open[..fitting]);
            let is_paragraph = open[fitting - 1].kind == BlockKind::Paragraph;
            open.drain(..fitting);
            if self.size_of(&bytes) <= self.size.most {
                self.add(bytes);
            } else {
                for piece in self.cutter.cut(bytes, is_paragraph) {
                    self.add(piece);
                }
            }
        }
    }

    fn add(&mut self, bytes: Range<usize>) {
        let breaks = |bytes: Range<usize>| {
            let breaks = self.text.as_bytes()[bytes].iter().filter(|byte| **byte == b'\n');
            u32::try_from(breaks.count()).unwrap_or(u32::MAX)
        };
        let first = self.line.1.saturating_add(breaks(self.line.0..bytes.start));
        let last = first.saturating_add(breaks(bytes.clone()));
        self.line = (bytes.start, first);
        self.passages.push(Passage {
            bytes,
            headings: self.path.iter().map(|(_, title)| title.clone()).collect(),
            page: self.page,
            lines: (first, last),
        });
    }
}

#[cfg(test)]
mod tests;
