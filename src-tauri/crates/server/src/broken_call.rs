//! A call that is not whole: the token limit cut it, or the model wrote it wrongly. Its markers are shown to nobody.

use protocol::{Argument, Notice};
use serde_json::Value;

use crate::said::Said;

/// What there is of a call that the token limit cut, as OpenAI's and Anthropic's own servers tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutCall {
    pub(crate) name: String,
    /// The beginning of a JSON object, never all of it.
    pub(crate) arguments: String,
}

/// Sets such a call aside until it is known why the answer ended.
#[derive(Debug, Default)]
pub(crate) struct BrokenCall {
    /// The tools that may be called.
    tools: Vec<String>,
    /// The markers of the call in the text that comes next.
    markers: Option<(String, String)>,
    /// The call without them.
    text: Option<String>,
}

impl BrokenCall {
    /// None so far, of these tools.
    pub(crate) fn new(tools: &[Value]) -> Self {
        let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
        Self {
            tools: tools.iter().filter_map(name).collect(),
            ..Self::default()
        }
    }

    /// The text that comes next holds one.
    pub(crate) fn announce(&mut self, notice: &Notice) {
        let marker = |name: &str| match notice.arguments.get(name) {
            Some(Argument::Text(marker)) => marker.clone(),
            _ => String::new(),
        };
        self.markers = Some((marker("opening"), marker("closing"))).filter(|(opening, _)| !opening.is_empty());
    }

    /// This text without the call that was announced in it.
    pub(crate) fn set_aside(&mut self, text: &str) -> String {
        let Some((opening, closing)) = self.markers.take() else {
            return text.to_owned();
        };
        let Some(at) = text.rfind(&opening) else { return text.to_owned() };
        let call = &text[at + opening.len()..];
        self.text = Some(call.strip_suffix(&closing).unwrap_or(call).to_owned());
        text[..at].to_owned()
    }

    /// What is told of it at the end: as far as it came if it was `cut`, else the text without its markers.
    pub(crate) fn tell(&mut self, cut: bool) -> Option<Said> {
        let call = self.text.take()?;
        if cut {
            // What it would have become, nobody knows if not even its name is there.
            return cut_call(&call, &self.tools).map(Said::CutCall);
        }
        let text = call.trim();
        (!text.is_empty()).then(|| Said::Text {
            text: text.to_owned(),
            logprobs: Vec::new(),
        })
    }
}

/// The name of the tool that a call begins with, and of its arguments what is JSON already.
fn cut_call(call: &str, tools: &[String]) -> Option<CutCall> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-' || letter == '.';
    let find = |name: &str| {
        let whole = |at: &usize| !call[..*at].ends_with(is_word) && call[at + name.len()..].starts_with(|next| !is_word(next));
        call.match_indices(name).map(|(at, _)| at).find(whole)
    };
    let named = tools.iter().filter(|name| !name.is_empty());
    let (at, name) = named.filter_map(|name| Some((find(name)?, name))).min()?;
    let rest = &call[at + name.len()..];
    let arguments = ["\"arguments\"", "\"parameters\""].into_iter().find_map(|key| {
        let (_, rest) = rest.split_once(key)?;
        let object = rest.trim_start().strip_prefix(':')?.trim_start();
        // One that is whole already may be followed by what closes the call, and is not told as if it were cut within.
        let is_open = serde_json::Deserializer::from_str(object).into_iter::<Value>().next()?.is_err();
        (object.starts_with('{') && is_open).then(|| object.to_owned())
    });
    Some(CutCall {
        name: name.clone(),
        arguments: arguments.unwrap_or_else(|| "{".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use protocol::NoticeCode;
    use serde_json::json;

    use super::*;

    /// What a client is told of this text, which holds a call that is not whole.
    fn told(text: &str, closing: Option<&str>, cut: bool) -> (String, Option<Said>) {
        let notice = Notice::new(NoticeCode::BrokenToolCall, "broken").with("opening", "<tool_call>");
        let notice = closing.into_iter().fold(notice, |notice, closing| notice.with("closing", closing));
        let mut call = BrokenCall::new(&[json!({"function": {"name": "add"}}), json!({"function": {"name": "add_all"}})]);
        assert_eq!((call.set_aside(text), call.tell(cut)), (text.to_owned(), None));
        call.announce(&notice);
        (call.set_aside(text), call.tell(cut))
    }

    #[test]
    fn a_call_that_is_cut_is_told_as_far_as_it_came() {
        let call = |name: &str, arguments: &str| {
            Some(Said::CutCall(CutCall {
                name: name.into(),
                arguments: arguments.into(),
            }))
        };
        for (text, before, said) in [
            (
                "I add.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b",
                "I add.\n",
                call("add", "{\"a\": 2, \"b"),
            ),
            ("<tool_call>{\"name\": \"add_all\", \"arg", "", call("add_all", "{")),
            // All but the end of the call: it is not to be run all the same.
            ("<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2}", "", call("add", "{")),
            ("<tool_call>call:add{a:2,b:", "", call("add", "{")),
            ("<tool_call>{\"name\": \"ad", "", None),
            ("<tool_call>", "", None),
        ] {
            assert_eq!(told(text, None, true), (before.to_owned(), said), "{text}");
        }
    }

    #[test]
    fn a_call_that_the_model_wrote_wrongly_is_text_without_its_markers() {
        let text = "<tool_call>{name: add}</tool_call>";
        assert_eq!(
            told(text, Some("</tool_call>"), false),
            (String::new(), Some(Said::text("{name: add}")))
        );
        assert_eq!(told("a <tool_call>", None, false), ("a ".to_owned(), None));
    }
}
