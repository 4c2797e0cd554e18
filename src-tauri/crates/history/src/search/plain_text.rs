//! Markdown as plain text.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The words of a Markdown text as somebody reads them: without marks, addresses of links and lines of tables. Code and
/// formulas stand as they are written. Also returns where the byte `place` of the Markdown, or what follows it, stands
/// in that text. An address, or the language of a block of code, that `place` lies in is kept.
pub(crate) fn plain_text(markdown: &str, place: usize) -> (String, usize) {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_MATH;
    let mut plain = PlainText {
        markdown,
        place,
        text: String::with_capacity(markdown.len()),
        found: None,
        lists: Vec::new(),
        links: Vec::new(),
        cell: 0,
    };
    for (event, range) in Parser::new_ext(markdown, options).into_offset_iter() {
        plain.push(event, range);
    }
    let PlainText { text, found, .. } = plain;
    let found = text.floor_char_boundary(found.unwrap_or(text.len()));
    (text, found)
}

/// The bullet of an item of a list without numbers.
const BULLET: &str = "• ";

struct PlainText<'a> {
    markdown: &'a str,
    place: usize,
    text: String,
    /// The position of the place in the plain text, once it was reached.
    found: Option<usize>,
    /// Of each list that is open the number of its next item, if its items have numbers.
    lists: Vec<Option<u64>>,
    /// Addresses of the links and images that are open.
    links: Vec<String>,
    /// Cells of the row that is open.
    cell: usize,
}

impl PlainText<'_> {
    fn push(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Text(words) => self.words(&words, &range),
            Event::Code(words) => {
                let ticks = range.len().saturating_sub(words.len()) / 2;
                self.words(&words, &(range.start + ticks..range.end));
            }
            Event::InlineMath(_) | Event::DisplayMath(_) => self.words(&self.markdown[range.clone()], &range),
            Event::Html(html) => self.words(&without_tags(&html), &range),
            Event::InlineHtml(tag) if tag.starts_with("<br") => self.text.push('\n'),
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            Event::TaskListMarker(done) => {
                let without_bullet = self.text.trim_end_matches(BULLET).len();
                self.text.truncate(without_bullet);
                self.text.push_str(if done { "☑ " } else { "☐ " });
            }
            Event::Start(tag) => self.start(tag, &range),
            Event::End(tag) => self.end(tag, &range),
            Event::InlineHtml(_) | Event::Rule | Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => match self.lists.last_mut() {
                Some(Some(number)) => {
                    self.text.push_str(&format!("{number}. "));
                    *number += 1;
                }
                _ => self.text.push_str(BULLET),
            },
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) => {
                let fence = range.start..range.start + self.markdown[range.clone()].find('\n').unwrap_or(range.len());
                if fence.contains(&self.place) {
                    self.words(&language, &(self.place..fence.end));
                    self.text.push('\n');
                }
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(dest_url.into_string()),
            Tag::TableHead | Tag::TableRow => self.cell = 0,
            Tag::TableCell => {
                if self.cell > 0 {
                    self.text.push_str(" · ");
                }
                self.cell += 1;
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Link | TagEnd::Image => {
                if let Some(address) = self
                    .links
                    .pop()
                    .filter(|_| self.found.is_none() && range.contains(&self.place))
                {
                    self.words(&format!(" ({address})"), &(self.place..range.end));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::TableCell => {}
            _ => self.end_line(),
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Words that stand in this range of the Markdown.
    fn words(&mut self, words: &str, range: &Range<usize>) {
        if self.found.is_none() && self.place < range.end {
            // Entities make the range longer than the words.
            self.found = Some(self.text.len() + self.place.saturating_sub(range.start).min(words.len()));
        }
        self.text.push_str(words);
    }
}

/// The words of a piece of HTML, with a space for each tag.
fn without_tags(html: &str) -> String {
    let mut pieces = html.split('<');
    let mut words = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('>') {
            Some((_, after)) => {
                words.push(' ');
                words.push_str(after);
            }
            None => {
                words.push('<');
                words.push_str(piece);
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn said(markdown: &str) -> String {
        plain_text(markdown, markdown.len()).0.trim_end().to_owned()
    }

    #[test]
    fn marks_are_left_out_and_what_is_no_mark_stays_as_it_was_written() {
        for (markdown, words) in [
            (
                "The **caf\u{e9}** is *open*, ~~not~~ __closed__",
                "The caf\u{e9} is open, not closed",
            ),
            ("# Heading #\n\nTitle\n===\n***\nend", "Heading\nTitle\nend"),
            (
                "`snake_case_name`, snake_case_name, 2 * 3 * 4, a[i][j] and a || b",
                "snake_case_name, snake_case_name, 2 * 3 * 4, a[i][j] and a || b",
            ),
            (
                "[the docs](https://example.org/a_b \"t\"), ![a boat](data:image/png;base64,AA)",
                "the docs, a boat",
            ),
            (
                "[one][1] and [two]\n\n[1]: https://example.org\n[two]: <b>",
                "one and two",
            ),
            (
                "```rust\nlet a = *b * **c; // # x\n```\nand `a | b`",
                "let a = *b * **c; // # x\nand a | b",
            ),
            ("| a | b |\n|---|:-:|\n| 1 | x \\| y |", "a \u{b7} b\n1 \u{b7} x | y"),
            (
                "- one\n- [x] two\n  3. three\n  4. four\n\n> quoted",
                "\u{2022} one\n\u{2611} two\n3. three\n4. four\nquoted",
            ),
            (
                "$x_1 * y_1 * z$ costs $5 &amp; \\*more\\*",
                "$x_1 * y_1 * z$ costs $5 & *more*",
            ),
            ("H<sub>2</sub>O<br>next\n\n<p>so</p>", "H2O\nnext\n so"),
            (
                "\u{8fd9}\u{662f}**\u{91cd}\u{70b9}**\u{5185}\u{5bb9}",
                "\u{8fd9}\u{662f}\u{91cd}\u{70b9}\u{5185}\u{5bb9}",
            ),
            ("not closed: **a, `b, [c](d", "not closed: **a, `b, [c](d"),
            ("", ""),
        ] {
            assert_eq!(said(markdown), words, "{markdown}");
        }
    }

    #[test]
    fn a_place_is_kept_whatever_it_lies_in() {
        for (markdown, before, after) in [
            ("The **caf\u{e9} needle** x", "The caf\u{e9} ", "needle x"),
            (
                "see [it](https://a.org/needle) now",
                "see it",
                " (https://a.org/needle) now",
            ),
            ("see [the needle](https://needle.org) now", "see the ", "needle now"),
            ("a\n\n```needle\ncode\n```", "a\n", "needle\ncode"),
            ("**a** `needle` b", "a ", "needle b"),
        ] {
            let (text, place) = plain_text(markdown, markdown.find("needle").unwrap());
            assert_eq!(
                (&text[..place], text[place..].trim_end()),
                (before, after),
                "{markdown}"
            );
        }
    }

    #[test]
    fn hostile_marks_cost_about_their_length() {
        for marks in [
            "**a ",
            "[",
            "[a](",
            "![",
            "> ",
            "`",
            "` `` ``` ",
            "<a ",
            "- ",
            " - a\n  ",
            "|a",
            "&amp;",
            "_a",
            "[a]: b\n",
            "$a ",
            "<!-- ",
            "*_",
            "\\",
        ] {
            let (text, begun) = (marks.repeat(1_000_000 / marks.len()), Instant::now());
            plain_text(&text, text.len() - 1);
            // The square of the length would take many minutes.
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "{marks}: {:?}",
                begun.elapsed()
            );
        }
    }
}
