//! A call that is still being written: whether its end lies inside a text, in which a marker is a word.

use super::elements::{self, Elements};
use super::json;
use super::namespaced::{self, Namespaced};
use super::nesting::{Nesting, Notation};
use super::pairs::{self, Pairs};
use super::tag::{fit, skip_blank, Fit};
use super::tags::Tags;

/// So many blanks may stand before the first call of a list.
const LONGEST_BLANK: usize = 64;

/// What Step 3 writes before the element of a call.
pub(super) const STEP3: &str = "function<｜tool_sep｜>";

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

/// What stands before the arguments.
#[derive(Debug, Clone, Copy, Default)]
struct Label {
    /// Whether a blank stands after the first word.
    blank: bool,
    /// Whether something followed that no label has.
    words: bool,
    /// Whether something that is no name followed, such as a tag.
    tagged: bool,
}

/// A call that is still being written, read from the left in linear time.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    form: Form,
    /// How much was read without knowing the form.
    at: usize,
    /// Whether nothing stands around the call.
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
        Self { unwrapped, ..Self::new() }
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
        if matches!(self.form, Form::Unknown) {
            self.begin(body, false);
        }
        if let Form::Label(label) = self.form {
            self.label(label, body);
        }
        match &mut self.form {
            Form::Unknown | Form::Label(_) => {}
            Form::Nested(nesting) => nesting.advance(body),
            Form::Elements(elements) => elements.advance(body),
            Form::Pairs(pairs) => pairs.advance(body),
            Form::Tags(tags) => tags.advance(body),
            Form::Namespaced(namespaced) => namespaced.advance(body),
        }
    }

    /// Whether what follows the body is inside a text of it.
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

    /// Whether everything that was opened is closed, so that it may be a whole call.
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

    /// Where a call that nothing stands around has ended, if it has.
    pub(crate) fn over(&self, body: &str) -> Option<usize> {
        match &self.form {
            Form::Elements(elements) if self.unwrapped && elements.is_over(body) => Some(body.len()),
            Form::Nested(nesting) if self.unwrapped && nesting.is_closed() => json::end_of_list(body, nesting.at()),
            _ => None,
        }
    }

    /// Whether the form cannot escape what ends a text, so that what a text holds may be taken for its end.
    pub(crate) fn is_unescaped(&self) -> bool {
        match &self.form {
            Form::Unknown | Form::Label(_) => false,
            Form::Nested(nesting) => nesting.notation() == Notation::Gemma,
            Form::Elements(_) | Form::Pairs(_) | Form::Tags(_) | Form::Namespaced(_) => true,
        }
    }

    /// Whether the form is Python's, which some templates write without escaping anything.
    pub(crate) fn is_python(&self) -> bool {
        matches!(&self.form, Form::Nested(nesting) if nesting.notation() == Notation::Python)
    }

    /// Whether nothing stands around the call.
    pub(crate) fn is_unwrapped(&self) -> bool {
        self.unwrapped
    }

    /// Whether something is closed in it that was not opened.
    pub(crate) fn has_stray(&self) -> bool {
        matches!(&self.form, Form::Elements(elements) if elements.has_stray())
    }

    /// Whether no call is written like this, whatever follows.
    pub(crate) fn is_hopeless(&self) -> bool {
        matches!(self.form, Form::Label(Label { words: true, .. }))
    }

    /// The form of a whole body.
    pub(super) fn form_of(text: &str, unwrapped: bool) -> Shape {
        let mut call = Self { unwrapped, ..Self::new() };
        call.begin(text, true);
        if let Form::Label(label) = call.form {
            call.label(label, text);
        }
        match call.form {
            Form::Nested(nesting) => Shape::Nested(nesting.notation()),
            Form::Elements(_) => Shape::Elements,
            Form::Pairs(_) => Shape::Pairs,
            Form::Tags(_) => Shape::Tags,
            Form::Namespaced(_) => Shape::Namespaced,
            Form::Unknown | Form::Label(_) => Shape::Name,
        }
    }

    fn begin(&mut self, body: &str, at_end: bool) {
        self.at = skip_blank(body, self.at);
        let head = if self.unwrapped {
            json::head(&body[self.at..], at_end)
        } else {
            Ok(None)
        };
        match head {
            Err(()) => return,
            Ok(Some(head)) => {
                let at = skip_blank(body, self.at + head.len());
                return self.form = Form::Nested(Nesting::once(Notation::Json, at));
            }
            Ok(None) => {}
        }
        match fit(&body[self.at..], &[STEP3], at_end) {
            Fit::Whole(length) => self.at = skip_blank(body, self.at + length),
            Fit::Begun => return,
            Fit::No => {}
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
            Some('<') => match elements::begins(text, at_end) {
                Err(()) => return,
                Ok(true) => Form::Elements(Elements::new(self.at, self.unwrapped)),
                Ok(false) => Form::Label(Label::default()),
            },
            Some(']') => match namespaced::begins(text, at_end) {
                Err(()) => return,
                Ok(true) => Form::Namespaced(Namespaced::new(self.at)),
                Ok(false) => Form::Label(Label::default()),
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

/// In which form a whole body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Nested(Notation),
    Elements,
    Pairs,
    Tags,
    Namespaced,
    /// A name alone, or nothing that is known.
    Name,
}
