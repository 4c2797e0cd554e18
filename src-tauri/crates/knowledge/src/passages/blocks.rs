//! The blocks of a text: what stands together by its form.

use std::ops::Range;

use documents::PAGE_BREAK;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::form::Form;

/// The longest heading in a path, in bytes.
const LONGEST_TITLE: usize = 200;

/// The kind of a block, by which it is cut if it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Heading,
    Paragraph,
    /// Code, tables, lists: whatever has lines of its own.
    Lines,
}

/// A block: from the beginning of its first line to the end of its last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub bytes: Range<usize>,
    pub kind: BlockKind,
    /// The level and the words of a heading.
    pub title: Option<(u8, String)>,
}

impl Block {
    /// The block of a text that begins this much earlier.
    pub fn moved(self, by: usize) -> Self {
        Self {
            bytes: self.bytes.start + by..self.bytes.end + by,
            ..self
        }
    }
}

/// The blocks of a page in order. Between them is nothing but white space.
pub(super) fn blocks(page: &str, form: Form) -> Vec<Block> {
    match form {
        Form::Markdown => markdown(page),
        Form::Prose => of_lines(page, 0..page.len(), BlockKind::Paragraph),
        Form::Code => of_lines(page, 0..page.len(), BlockKind::Lines),
    }
}

fn markdown(page: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    let mut title: Option<(u8, String)> = None;
    let mut kind = BlockKind::Lines;
    for (event, bytes) in Parser::new_ext(page, options).into_offset_iter() {
        let is_whole = match event {
            Event::Start(tag) => {
                depth += 1;
                if depth == 1 {
                    kind = match &tag {
                        Tag::Heading { .. } => BlockKind::Heading,
                        Tag::Paragraph => BlockKind::Paragraph,
                        _ => BlockKind::Lines,
                    };
                    title = match tag {
                        Tag::Heading { level, .. } => Some((level as u8, String::new())),
                        _ => None,
                    };
                }
                false
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            Event::Text(words) | Event::Code(words) => {
                push_title(title.as_mut(), &words);
                depth == 0
            }
            Event::SoftBreak | Event::HardBreak => {
                push_title(title.as_mut(), " ");
                false
            }
            // Such as a line across the page.
            _ => depth == 0,
        };
        if is_whole {
            push(
                &mut blocks,
                page,
                Block {
                    bytes,
                    kind,
                    title: title.take(),
                },
            );
            kind = BlockKind::Lines;
        }
    }
    let end = blocks.last().map_or(0, |block| block.bytes.end);
    blocks.extend(of_lines(page, end..page.len(), BlockKind::Paragraph));
    blocks
}

fn push_title(title: Option<&mut (u8, String)>, words: &str) {
    if let Some((_, title)) = title {
        let room = LONGEST_TITLE.saturating_sub(title.len());
        title.push_str(&words[..words.floor_char_boundary(room)]);
    }
}

/// Adds a block, and before it what the parser has no event for, such as the addresses of links.
fn push(blocks: &mut Vec<Block>, page: &str, block: Block) {
    let end = blocks.last().map_or(0, |block| block.bytes.end);
    let start = block.bytes.start.max(end);
    if start >= block.bytes.end {
        return;
    }
    blocks.extend(of_lines(page, end..start, BlockKind::Paragraph));
    let end = blocks.last().map_or(end, |block| block.bytes.end);
    if let Some(bytes) = trimmed(page, end..block.bytes.end) {
        blocks.push(Block { bytes, ..block });
    }
}

/// Blocks between empty lines. Lines of code that are indented, or close something, belong to what is before them.
fn of_lines(page: &str, part: Range<usize>, kind: BlockKind) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut at = part.start;
    let mut after_gap = true;
    for line in page[part].split_inclusive('\n') {
        let bytes = at..at + line.len();
        at = bytes.end;
        let Some(bytes) = trimmed(page, bytes) else {
            after_gap = true;
            continue;
        };
        let goes_on = kind == BlockKind::Lines && line.starts_with([' ', '\t', '}', ')', ']']);
        match blocks.last_mut() {
            Some(last) if !after_gap || goes_on => last.bytes.end = bytes.end,
            _ => blocks.push(Block {
                bytes,
                kind,
                title: None,
            }),
        }
        after_gap = false;
    }
    blocks
}

/// A part without empty lines before it and white space after it; `None` if nothing is left. The indentation of its
/// first line stays if all of that is in it.
pub(super) fn trimmed(text: &str, part: Range<usize>) -> Option<Range<usize>> {
    let whole = &text[part.clone()];
    let letters = whole.len() - whole.trim_start().len();
    let end = part.start + whole.trim_end().len();
    let begins_line = text[..part.start]
        .chars()
        .next_back()
        .is_none_or(|before| before == '\n' || before == PAGE_BREAK);
    let line = match whole[..letters].rfind('\n') {
        Some(at) => at + 1,
        None if begins_line => 0,
        None => letters,
    };
    let start = part.start + line;
    (start < end).then_some(start..end)
}
