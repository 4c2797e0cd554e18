//! A call that is not whole: the token limit cut it, or the model wrote it wrongly. Clients are shown it without its markers,
//! but for one that a stop text cut in two.

use protocol::{Argument, Notice};
use serde_json::Value;

use crate::reply_event::ReplyEvent;

/// What there is of a call that the token limit cut, as OpenAI's and Anthropic's own servers tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutCall {
    pub(crate) name: String,
    /// The beginning of a JSON object, never all of it.
    pub(crate) arguments: String,
}

/// Takes the markers off such a call; one that nothing closed is set aside until it is known why the answer ended.
#[derive(Debug, Default)]
pub(crate) struct BrokenCall {
    /// The tools that may be called.
    tools: Vec<String>,
    /// The markers of the call in the text that comes; the closing one if it was written.
    markers: Option<(String, Option<String>)>,
    /// The call that nothing closed, without its marker.
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

    /// The text that comes holds one. One without markers is text like any other.
    pub(crate) fn announce(&mut self, notice: &Notice) {
        let marker = |name: &str| match notice.arguments.get(name) {
            Some(Argument::Text(marker)) => Some(marker.clone()),
            _ => None,
        };
        if let Some(opening) = marker("opening").filter(|opening| !opening.is_empty()) {
            self.markers = Some((opening, marker("closing")));
        }
    }

    /// What is told of this text: without the markers of the call that was announced in it, and without that call if nothing closed it.
    pub(crate) fn set_aside(&mut self, text: &str) -> String {
        // The text before the call may come on its own.
        let found = self.markers.as_ref().and_then(|(opening, _)| text.rfind(opening));
        let (Some(at), Some((opening, closing))) = (found, self.markers.take_if(|_| found.is_some())) else {
            return text.to_owned();
        };
        let (before, call) = (&text[..at], &text[at + opening.len()..]);
        let Some(closing) = closing else {
            self.text = Some(call.to_owned());
            return before.to_owned();
        };
        let (call, after) = call.rsplit_once(&closing).unwrap_or((call, ""));
        [before, call.trim(), after].concat()
    }

    /// The call that was set aside, without its marker: something follows it, so the end of the answer did not cut it.
    pub(crate) fn flush(&mut self) -> Option<ReplyEvent> {
        self.tell(false)
    }

    /// What is told of it at the end: as far as it came if it was `cut`, else the text without its markers.
    pub(crate) fn tell(&mut self, cut: bool) -> Option<ReplyEvent> {
        let call = self.text.take()?;
        if cut {
            // What it would have become, nobody knows if not even its name is there.
            return cut_call(&call, &self.tools).map(ReplyEvent::CutCall);
        }
        let text = call.trim();
        (!text.is_empty()).then(|| ReplyEvent::Text {
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
    fn told(text: &str, closing: Option<&str>, cut: bool) -> (String, Option<ReplyEvent>) {
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
            Some(ReplyEvent::CutCall(CutCall {
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
        assert_eq!(told(text, Some("</tool_call>"), false), ("{name: add}".to_owned(), None));
        // The limit cut the answer, not this call.
        assert_eq!(
            told(&format!("I add. {text} Done."), Some("</tool_call>"), true),
            ("I add. {name: add} Done.".to_owned(), None)
        );
        assert_eq!(told("a <tool_call>", None, false), ("a ".to_owned(), None));
    }

    #[test]
    fn a_call_without_markers_changes_nothing_and_one_in_later_text_is_found() {
        let broken = |opening: &str| Notice::new(NoticeCode::BrokenToolCall, "broken").with("opening", opening);
        let mut call = BrokenCall::new(&[]);
        call.announce(&broken("<tool_call>"));
        call.announce(&broken(""));
        assert_eq!(call.set_aside("\n\n"), "\n\n");
        assert_eq!(call.set_aside("a<tool_call>{b"), "a");
        assert_eq!((call.flush(), call.flush()), (Some(ReplyEvent::text("{b")), None));
    }
}
