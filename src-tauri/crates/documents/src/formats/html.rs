//! Text of a page of the web. Only its tokens are read and no tree is built, so that nothing can be nested too deeply;
//! nothing that it names is fetched.

use std::cell::RefCell;

use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use super::markdown::Writer;
use crate::budget::Budget;
use crate::error::{Error, Result};

/// How much is read between two looks at the time, in bytes: a tag's attributes are compared with each other, which
/// costs their square.
const CHUNK: usize = 4096;

/// The text of a page.
///
/// # Errors
/// `TooLarge` if it has too much of it, `Broken` if that takes too long.
pub(crate) fn text(page: &str, budget: &Budget) -> Result<String> {
    read(page, Reader::default(), budget)
}

/// The text of a page of a book: XHTML, whose title is not shown.
///
/// # Errors
/// Those of [`text`].
pub(crate) fn chapter(page: &str, budget: &Budget) -> Result<String> {
    let reader = Reader {
        chapter: true,
        ..Reader::default()
    };
    read(page, reader, budget)
}

fn read(page: &str, reader: Reader, budget: &Budget) -> Result<String> {
    let tokenizer = Tokenizer::new(Page(RefCell::new(reader)), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = page;
    while !rest.is_empty() {
        budget.check()?;
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
        input.push_back(StrTendril::from_slice(chunk));
        let _ = tokenizer.feed(&input);
        if let Some(error) = tokenizer.sink.0.borrow_mut().failed.take() {
            return Err(error);
        }
        rest = after;
    }
    tokenizer.end();
    let reader = tokenizer.sink.0.into_inner();
    match reader.failed {
        Some(error) => Err(error),
        None => Ok(reader.writer.finish()),
    }
}

struct Page(RefCell<Reader>);

#[derive(Default)]
struct Reader {
    writer: Writer,
    /// The open element whose text is skipped, if there is one.
    unread: Option<String>,
    /// Lists within lists.
    lists: usize,
    /// True within `pre`, where spaces and line ends are literal.
    preformatted: bool,
    /// True for XHTML, where any element may end as it begins.
    chapter: bool,
    failed: Option<Error>,
}

impl TokenSink for Page {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut reader = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => return reader.tag(&tag),
            Token::CharacterTokens(text) if reader.unread.is_none() => {
                let written = match reader.preformatted {
                    true => reader.writer.verbatim(&text),
                    false => reader.writer.words(&text),
                };
                reader.failed = reader.failed.take().or(written.err());
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Reader {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let opens = tag.kind == TagKind::StartTag;
        if !opens && self.unread.as_deref() == Some(name) {
            self.unread = None;
            return TokenSinkResult::Continue;
        }
        if opens && self.chapter && tag.self_closing {
            if self.unread.is_none() {
                self.mark(name, true, tag);
                if name != "br" {
                    self.mark(name, false, tag);
                }
            }
            return TokenSinkResult::Continue;
        }
        if opens {
            let raw = match name {
                "script" => Some(RawKind::ScriptData),
                "style" | "iframe" | "noembed" | "noframes" | "xmp" => Some(RawKind::Rawtext),
                "textarea" | "title" => Some(RawKind::Rcdata),
                _ => None,
            };
            let unread = matches!(
                name,
                "script" | "style" | "iframe" | "noembed" | "noframes" | "template" | "textarea"
            ) || (self.chapter && name == "title");
            if unread && self.unread.is_none() && !(tag.self_closing && raw.is_none()) {
                self.unread = Some(name.to_owned());
            }
            if let Some(kind) = raw {
                return TokenSinkResult::RawData(kind);
            }
        }
        if self.unread.is_none() {
            self.mark(name, opens, tag);
        }
        TokenSinkResult::Continue
    }

    fn mark(&mut self, name: &str, opens: bool, tag: &Tag) {
        let writer = &mut self.writer;
        match (name, opens) {
            ("h1", true) => writer.begin("# "),
            ("h2", true) => writer.begin("## "),
            ("h3", true) => writer.begin("### "),
            ("h4" | "h5" | "h6", true) => writer.begin("#### "),
            ("blockquote", true) => writer.begin("> "),
            ("br", _) if self.preformatted => drop(writer.verbatim("\n")),
            ("br", _) => writer.line(),
            ("hr", _) => writer.block(),
            ("ul" | "ol" | "menu", true) => {
                if self.lists == 0 {
                    writer.block();
                }
                self.lists += 1;
            }
            ("ul" | "ol" | "menu", false) => {
                self.lists = self.lists.saturating_sub(1);
                if self.lists == 0 {
                    writer.block();
                }
            }
            ("li", true) => writer.item(self.lists.saturating_sub(1)),
            ("dt" | "dd" | "option" | "summary", _) => writer.line(),
            ("tr", true) => writer.row(),
            ("td" | "th", true) => writer.cell(),
            ("tr", false) => writer.end_row(),
            ("table", true) => writer.block(),
            ("table" | "thead" | "tbody" | "tfoot", false) => {
                writer.end_row();
                if name == "table" {
                    writer.block();
                }
            }
            ("pre", opens) => {
                writer.block();
                self.preformatted = opens;
            }
            ("img", true) => {
                let alt = tag.attrs.iter().find(|attribute| &*attribute.name.local == "alt");
                if let Some(alt) = alt.map(|alt| alt.value.trim()).filter(|alt| !alt.is_empty()) {
                    let written = writer.words(&format!("[image: {alt}]"));
                    self.failed = self.failed.take().or(written.err());
                }
            }
            ("p" | "div" | "section" | "article" | "header" | "footer" | "main" | "aside" | "nav" | "figure" | "figcaption" | "form"
            | "fieldset" | "address" | "details" | "dl" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "title" | "body", _)
                // The marks of an item stay with the paragraph in it.
                if !(self.lists > 0 && opens) => writer.block(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::DocumentKind;

    fn read(page: &'static str) -> String {
        crate::budget::run(DocumentKind::Html, move |budget| text(page, budget)).expect("a page")
    }

    #[test]
    fn what_a_page_says_is_markdown() {
        let page =
            "<!doctype html><title>Tea</title><style>p{}</style><body><h1>Tea &amp;\n milk</h1><p>One <b>two</b>\n three<br>four</p>\
            <ul><li>a<li><p>b</p><ul><li>c</ul></ul><table><tr><th>x<th>y<tr><td>1<td><p>2</p></table>\
            <pre>  a\n b</pre>\
            <script>alert('<p>no</p>')</script><img alt='A cup' src='https://example.org/cup.png'><template><p>never</template>end";
        assert_eq!(
            read(page),
            "Tea\n\n# Tea & milk\n\nOne two three\nfour\n\n- a\n- b\n  - c\n\n| x | y |\n| 1 | 2 |\n\n  a\n b\n\n[image: A cup]end"
        );
    }

    #[test]
    fn marks_that_never_close_and_scripts_within_scripts_end_with_the_page() {
        assert_eq!(read("a<script><!--<script></script>b"), "a");
        assert_eq!(read("a<div title='"), "a");
        assert_eq!(read("</p></table></ul></pre>a</li>"), "a");
    }
}
