//! How a model writes a call, as far as that is a frame around a name and its arguments; found out by rendering a call
//! on trial.

use protocol::CallBody;

use crate::channels::ChannelFormat;
use crate::template::{trial, Template, ARGUMENT, TOOL};
use crate::tokenizer::Tokenizer;
use crate::tool_calls::object;

/// How a model writes a call. Its markers are tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallForm {
    /// The token that opens a call.
    pub opening: u32,
    /// The token that closes it; `None` if the answer ends with it.
    pub closing: Option<u32>,
    /// The text between them.
    pub body: CallBody,
}

impl CallForm {
    /// The form in which this template writes a call; `None` if it is none of these.
    pub(crate) fn of(template: &Template, format: &ChannelFormat, tokenizer: &Tokenizer) -> Option<Self> {
        // Nine letters and digits are what the strictest templates accept.
        const ID: &str = "a1B2c3D4e";
        let text = trial(&|variables| template.render(variables).ok(), ID, &"Axolotl".into())?;
        // Instructions may show a call too; the one that was made comes last.
        let opens = format
            .call_tokens(true)
            .filter_map(|(opening, id)| Some((text.rfind(opening)?, opening, id)));
        let (at, opening, id) = opens.max()?;
        let rest = &text[at + opening.len()..];
        let close = format
            .call_tokens(false)
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
