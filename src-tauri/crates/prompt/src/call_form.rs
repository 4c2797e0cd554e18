//! How a model writes a call, as far as that is a frame around a name and its arguments; found out by rendering a call on trial.

use crate::channels::ChannelFormat;
use crate::tool_calls::object;
use crate::tool_conventions::{trial, ARGUMENT, TOOL};
use crate::{Template, Tokenizer};

/// How a model writes a call. Its markers are tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallForm {
    /// The token that opens a call.
    pub opening: u32,
    /// The token that closes it; `None` if the answer ends with it.
    pub closing: Option<u32>,
    /// What stands between them.
    pub body: CallBody,
}

/// What stands between the markers of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallBody {
    /// The name of the tool and its arguments as JSON, in a frame of text.
    Json {
        /// What stands before the name.
        before: String,
        /// What stands between the name and the arguments.
        between: String,
        /// What stands after the arguments.
        after: String,
    },
    /// Gemma 4: `call:NAME{key:value,…}`, keys in the order of the alphabet, texts between two of this token.
    Gemma {
        /// The quotation mark.
        quote: u32,
    },
}

impl CallForm {
    /// The form in which this template writes a call; `None` if it is none of these.
    pub(crate) fn of(template: &Template, format: &ChannelFormat, tokenizer: &Tokenizer) -> Option<Self> {
        // Nine letters and digits are what the strictest templates accept.
        const ID: &str = "a1B2c3D4e";
        let text = trial(template, ID, &"Axolotl".into())?;
        // Instructions may show a call too; the one that was made comes last.
        let opens = format
            .call_openings()
            .filter_map(|(opening, id)| Some((text.rfind(opening)?, opening, id)));
        let (at, opening, id) = opens.max()?;
        let rest = &text[at + opening.len()..];
        let close = format
            .call_closings()
            .filter_map(|(closing, id)| Some((rest.find(closing)?, id)))
            .min();
        let (end, closing) = match close {
            Some((end, id)) => (end, Some(id)),
            None => (tokenizer.first_control(rest)?, None),
        };
        let body = Self::body(&rest[..end], ID, tokenizer)?;
        Some(Self {
            opening: id,
            closing,
            body,
        })
    }

    fn body(text: &str, id: &str, tokenizer: &Tokenizer) -> Option<CallBody> {
        let (before, rest) = text.split_once(TOOL)?;
        if let Some(quote) = tokenizer.id("<|\"|>").filter(|_| before == "call:") {
            let gemma = format!("{{{}:<|\"|>{}<|\"|>}}", ARGUMENT.0, ARGUMENT.1);
            return (rest == gemma).then_some(CallBody::Gemma { quote });
        }
        let at = rest.find('{')?;
        let (arguments, length) = object(&rest[at..])?;
        let (between, after) = (&rest[..at], &rest[at + length..]);
        let plain = |frame: &str| tokenizer.first_control(frame).is_none() && !frame.contains(id);
        let same = arguments.as_object()?.len() == 1 && arguments[ARGUMENT.0] == ARGUMENT.1;
        (same && [before, between, after].into_iter().all(plain)).then(|| CallBody::Json {
            before: before.to_owned(),
            between: between.to_owned(),
            after: after.to_owned(),
        })
    }
}
