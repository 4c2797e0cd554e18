//! A call that is still being written: whether its end lies inside a text, in which a marker is a word.

mod elements;
mod gemma4;
mod json;
mod labelled;
mod namespaced;
mod pairs;
mod python;
mod tags;

use super::call::{BareCall, CallContext, ParsedCalls};
use super::nesting::{Nesting, Notation};
use super::tag::{fit, skip_blank, Fit};
use super::tools::Tools;
use elements::Elements;
pub(crate) use json::object;
use namespaced::Namespaced;
use pairs::Pairs;
use tags::Tags;

/// The most blanks before the first call of a list.
const LONGEST_BLANK: usize = 64;

/// In which form a call is written, and how far it has been read.
#[derive(Debug, Clone)]
enum Form {
    /// The first characters will tell.
    Unknown,
    /// A name, after which the form shows.
    Label(Label),
    Nested(Nesting),
    Elements(Elements),
    Pairs(Pairs),
    Tags(Tags),
    Namespaced(Namespaced),
}

/// The text before the arguments.
#[derive(Debug, Clone, Copy, Default)]
struct Label {
    /// True after a blank that follows the first word.
    blank: bool,
    /// True if words followed that no label has.
    words: bool,
    /// True after something that is no name, such as a tag.
    tagged: bool,
}

/// A call that is still being written, read from the left in linear time.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    form: Form,
    /// How much was read without knowing the form.
    at: usize,
    /// True if the call has no markers.
    unwrapped: bool,
}

impl OpenCall {
    /// Between markers, or after one.
    pub(crate) fn new() -> Self {
        Self {
            form: Form::Unknown,
            at: 0,
            unwrapped: false,
        }
    }

    /// Without markers around it.
    pub(crate) fn unwrapped() -> Self {
        let unwrapped = true;
        Self {
            unwrapped,
            ..Self::new()
        }
    }

    /// The arguments alone, as JSON.
    pub(crate) fn arguments() -> Self {
        Self {
            form: Form::Nested(Nesting::new(Notation::Json, 0)),
            ..Self::new()
        }
    }

    /// Reads on in the body, which has grown.
    pub(crate) fn advance(&mut self, body: &str) {
        self.tell(body, false);
        match &mut self.form {
            Form::Unknown | Form::Label(_) => {}
            Form::Nested(nesting) => nesting.advance(body),
            Form::Elements(elements) => elements.advance(body),
            Form::Pairs(pairs) => pairs.advance(body),
            Form::Tags(tags) => tags.advance(body),
            Form::Namespaced(namespaced) => namespaced.advance(body),
        }
    }

    /// True if text that follows would be inside a string of the call.
    pub(crate) fn quoted(&self, body: &str) -> bool {
        match &self.form {
            Form::Unknown | Form::Label(_) => false,
            Form::Nested(nesting) => nesting.quoted(body),
            Form::Elements(elements) => elements.quoted(body),
            Form::Pairs(pairs) => pairs.quoted(),
            Form::Tags(tags) => tags.quoted(),
            Form::Namespaced(namespaced) => namespaced.quoted(),
        }
    }

    /// True if everything that was opened is closed, so that the call may be complete.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.form {
            Form::Unknown | Form::Label(_) => false,
            Form::Nested(nesting) => nesting.is_closed(),
            Form::Elements(elements) => elements.is_closed(),
            Form::Pairs(pairs) => pairs.is_closed(),
            Form::Tags(tags) => tags.is_closed(),
            Form::Namespaced(namespaced) => namespaced.is_closed(),
        }
    }

    /// The place in the body from which on nothing is decided: the text that is open, or else all that was not read.
    pub(crate) fn settled(&self) -> usize {
        match &self.form {
            Form::Unknown | Form::Label(_) => 0,
            Form::Nested(nesting) => nesting.settled(),
            Form::Elements(elements) => elements.settled(),
            Form::Pairs(pairs) => pairs.settled(),
            Form::Tags(tags) => tags.settled(),
            Form::Namespaced(namespaced) => namespaced.settled(),
        }
    }

    /// True if nothing in the form ends a call, so that its closing marker does.
    pub(crate) fn needs_closing(&self) -> bool {
        matches!(self.form, Form::Pairs(_) | Form::Tags(_))
    }

    /// True if a marker that closes the call would close it, unless the last argument goes on after what looks like
    /// its end.
    pub(crate) fn may_lack_closing(&self) -> bool {
        matches!(&self.form, Form::Elements(elements) if elements.may_lack_closing())
    }

    /// True if the brackets of its arguments are closed and nothing in them reaches beyond, although they may not be valid.
    pub(crate) fn is_sound(&self, body: &str) -> bool {
        match &self.form {
            Form::Nested(nesting) => nesting.is_sound(),
            Form::Elements(elements) => elements.is_sound(),
            Form::Tags(tags) => tags.is_sound(body),
            Form::Unknown | Form::Label(_) | Form::Pairs(_) | Form::Namespaced(_) => false,
        }
    }

    /// The end of a call without markers, if it has ended.
    pub(crate) fn over(&self, body: &str) -> Option<usize> {
        match &self.form {
            Form::Elements(elements) if self.unwrapped && elements.is_over(body) => Some(body.len()),
            Form::Nested(nesting) if self.unwrapped && nesting.is_closed() => json::end_of_list(body, nesting.at()),
            _ => None,
        }
    }

    /// True if the form cannot escape the end of a string, so that the content of a string may look like its end.
    pub(crate) fn is_unescaped(&self) -> bool {
        match &self.form {
            Form::Unknown | Form::Label(_) => false,
            Form::Nested(nesting) => nesting.notation() == Notation::Gemma,
            Form::Elements(_) | Form::Pairs(_) | Form::Tags(_) | Form::Namespaced(_) => true,
        }
    }

    /// True if the form is Python's, which some templates write without escaping anything.
    pub(crate) fn is_python(&self) -> bool {
        matches!(&self.form, Form::Nested(nesting) if nesting.notation() == Notation::Python)
    }

    /// True if the call has no markers.
    pub(crate) fn is_unwrapped(&self) -> bool {
        self.unwrapped
    }

    /// True if something was closed in it that was not opened.
    pub(crate) fn has_stray(&self) -> bool {
        matches!(&self.form, Form::Elements(elements) if elements.has_stray())
    }

    /// True if no call begins like this, whatever follows.
    pub(crate) fn is_hopeless(&self) -> bool {
        matches!(self.form, Form::Label(Label { words: true, .. }))
    }

    /// Looks for the form, if it is not known.
    fn tell(&mut self, body: &str, at_end: bool) {
        if matches!(self.form, Form::Unknown) {
            self.begin(body, at_end);
        }
        if let Form::Label(label) = self.form {
            self.label(label, body);
        }
    }

    fn begin(&mut self, body: &str, at_end: bool) {
        self.at = skip_blank(body, self.at);
        match json::head(&body[self.at..], at_end) {
            _ if !self.unwrapped => {}
            Err(()) => return,
            Ok(Some(head)) => {
                let at = skip_blank(body, self.at + head.len());
                return self.form = Form::Nested(Nesting::once(Notation::Json, at));
            }
            Ok(None) => {}
        }
        let text = &body[self.at..];
        let nested = |notation| Form::Nested(Nesting::new(notation, self.at));
        let word = |word: &str| fit(text, &[word], at_end);
        self.form = match text.chars().next() {
            None => return,
            Some('{') => nested(Notation::Json),
            Some('[') => match text[skip_blank(text, 1)..].chars().next() {
                _ if skip_blank(text, 1) > LONGEST_BLANK => nested(Notation::Json),
                None if !at_end => return,
                Some(c) if c.is_alphabetic() || c == '_' => nested(Notation::Python),
                _ => nested(Notation::Json),
            },
            // The word is forgotten now and then.
            Some(':') => nested(Notation::Gemma),
            Some('<' | ']') => match (elements::begins(text, at_end), namespaced::begins(text, at_end)) {
                (Err(()), _) | (_, Err(())) => return,
                (Ok(true), _) => Form::Elements(Elements::new(self.at, self.unwrapped)),
                (_, Ok(true)) => Form::Namespaced(Namespaced::new(self.at)),
                (Ok(false), Ok(false)) => Form::Label(Label::default()),
            },
            _ => match (word("call:"), word("tool=")) {
                (Fit::Whole(_), _) => nested(Notation::Gemma),
                (_, Fit::Whole(_)) => Form::Tags(Tags::new(self.at)),
                (Fit::Begun, _) | (_, Fit::Begun) => return,
                _ => Form::Label(Label::default()),
            },
        };
    }

    fn label(&mut self, mut label: Label, body: &str) {
        while let Some(c) = body[self.at..].chars().next() {
            let rest = &body[self.at..];
            match c {
                '{' => return self.form = Form::Nested(Nesting::new(Notation::LabelledJson, self.at)),
                '(' if !label.tagged => return self.form = Form::Nested(Nesting::new(Notation::Python, self.at)),
                '<' => match pairs::follow(rest, false) {
                    Err(()) => break,
                    Ok(true) => return self.form = Form::Pairs(Pairs::new(body, self.at)),
                    Ok(false) => label.tagged = true,
                },
                '[' => label.tagged = true,
                c if c.is_whitespace() => label.blank = true,
                _ => label.words |= label.blank && !label.tagged,
            }
            self.at += c.len_utf8();
        }
        self.form = Form::Label(label);
    }
}

/// The calls in what stands between the markers; `None` if it is not one complete call after the other.
pub(crate) fn read(body: &str, tools: &Tools, around: CallContext) -> Option<ParsedCalls> {
    let CallContext { closed, unwrapped, .. } = around;
    let text = body.trim_start();
    let skipped = body.len() - text.len();
    let mut call = OpenCall {
        unwrapped,
        ..OpenCall::new()
    };
    call.tell(text, true);
    let reading = match call.form {
        Form::Nested(nesting) => match nesting.notation() {
            Notation::Gemma => gemma4::read(text),
            Notation::Json => json::read(text, tools),
            Notation::Python => python::calls(text, closed),
            Notation::LabelledJson => labelled::read(text),
        },
        Form::Elements(_) => elements::read(text, tools, around),
        Form::Namespaced(_) => namespaced::read(text, tools),
        Form::Pairs(_) => pairs::read(text, tools, closed),
        Form::Tags(_) => tags::read(text, tools, closed),
        Form::Unknown | Form::Label(_) => pairs::name_alone(text, tools).filter(|_| closed),
    }?;
    let mut reading = reading;
    reading.end += skipped;
    reading.ends.iter_mut().for_each(|end| *end += skipped);
    (!closed || reading.broken || body[reading.end..].trim().is_empty()).then_some(reading)
}

/// The closing tags of strings in forms that cannot escape them.
const CLOSINGS: &[&str] = &[
    "</parameter>",
    "</param>",
    "</function>",
    "</invoke>",
    "</arg_key>",
    "</arg_value>",
    "</｜DSML｜parameter>",
    "</｜DSML｜invoke>",
    "</｜DSML｜function>",
    "</｜DSML｜ parameter>",
    "</｜DSML｜ invoke>",
    "</atem:parameter>",
    "</atem:invoke>",
    "</atem:function>",
    "</longcat_arg_key>",
    "</longcat_arg_value>",
    "</ifm|arg_key>",
    "</ifm|arg_type>",
    "</ifm|arg_value>",
    "</arg_key:opensource>",
    "</arg_value:opensource>",
    "<|\"|>",
    "<escape>",
    "<|close|>argument",
    "<|close|>json",
    "]<]minimax[>[</",
];

/// True if a call written like this may hold a string: something was opened after its first tag, or a quote was not
/// closed.
pub(crate) fn may_hold_text(body: &str) -> bool {
    let body = body.trim_start();
    let inner = body.strip_prefix('<').unwrap_or(body).replace("</", "");
    let open = |mark| inner.matches(mark).count() % 2 == 1;
    inner.contains(['{', '[', '(', '<']) || open('"') || open('\'')
}

/// True if the text next to calls closes something that none of them opened. `closings` are the format's own, of which
/// one may stand right after a call, or several if they may be `repeated`.
pub(crate) fn is_torn<'t>(beside: &'t str, closings: &[&str], repeated: bool) -> bool {
    let after_closing = |text: &'t str| {
        let text = text.trim_start();
        closings.iter().find_map(|closing| text.strip_prefix(closing))
    };
    let mut rest = beside;
    while let Some(after) = after_closing(rest) {
        rest = after;
        if !repeated {
            break;
        }
    }
    closings.iter().chain(CLOSINGS).any(|closing| rest.contains(closing))
}

/// The one call of a tool that is named elsewhere.
pub(crate) fn read_arguments(name: &str, body: &str) -> Option<ParsedCalls> {
    let (arguments, end) = json::object(body)?;
    let whole = body[end..].trim().is_empty() && !name.is_empty();
    whole.then(|| ParsedCalls::one((name.to_owned(), arguments), end))
}

/// A call without a marker names its tool within this many bytes.
const LONGEST_BEGINNING: usize = 256;

/// Looks at the beginning of an answer: `{"name": "f"`, with a type before it or not, in a list or not, or `[f(`.
pub(crate) fn bare(text: &str, tools: &Tools) -> BareCall {
    let beginning = &text[..text.floor_char_boundary(LONGEST_BEGINNING)];
    let found = match beginning.trim_start() {
        "" => BareCall::Maybe,
        text if text.starts_with('{') => json::bare(text, tools),
        text if text.starts_with('[') => match text[1..].trim_start() {
            "" => BareCall::Maybe,
            inner if inner.starts_with('{') => json::bare(inner, tools),
            _ => python::bare(text, tools),
        },
        _ => BareCall::No,
    };
    if found == BareCall::Maybe && beginning.len() < text.len() {
        return BareCall::No;
    }
    found
}
