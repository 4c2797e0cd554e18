//! A broken tool call: the token limit cut it, the model wrote it wrongly, or nobody offered its tool. Clients receive it without its markers,
//! except for a marker that a stop text cut in two.

use protocol::{Argument, Notice};
use serde_json::Value;

use crate::answer::reply_event::{CutCall, ReplyEvent};

/// Removes the markers of a broken call; an unclosed one is held back until the reason of the end is known.
#[derive(Debug, Default)]
pub(crate) struct BrokenCall {
    /// The tools that may be called.
    tools: Vec<String>,
    /// The markers of the call in the next text, the closing one if it was written.
    markers: Option<(String, Option<String>)>,
    /// The unclosed call, without its marker.
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

    /// Announces a broken call in the next text. One without markers is ordinary text.
    pub(crate) fn announce(&mut self, notice: &Notice) {
        let marker = |name: &str| match notice.arguments.get(name) {
            Some(Argument::Text(marker)) => Some(marker.clone()),
            _ => None,
        };
        if let Some(opening) = marker("opening").filter(|opening| !opening.is_empty()) {
            self.markers = Some((opening, marker("closing")));
        }
    }

    /// The text for the client: without the markers of the announced call, and without the call itself if it is
    /// unclosed.
    pub(crate) fn set_aside(&mut self, text: &str) -> String {
        // The text before the call may arrive separately.
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

    /// Releases the held back call as text: more output follows, so the end of the answer did not cut it.
    pub(crate) fn flush(&mut self) -> Option<ReplyEvent> {
        self.tell(false)
    }

    /// Releases the held back call at the end: as a cut call if the end `cut` it, else as text.
    pub(crate) fn tell(&mut self, cut: bool) -> Option<ReplyEvent> {
        let call = self.text.take()?;
        if cut {
            // Without a name the call is dropped.
            return cut_call(&call, &self.tools).map(ReplyEvent::CutCall);
        }
        let text = call.trim();
        (!text.is_empty()).then(|| ReplyEvent::Text {
            text: text.to_owned(),
            logprobs: Vec::new(),
        })
    }
}

/// The name at the start of a call, and the part of its arguments that is valid JSON so far.
fn cut_call(call: &str, tools: &[String]) -> Option<CutCall> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-' || letter == '.';
    let find = |name: &str| {
        let whole =
            |at: &usize| !call[..*at].ends_with(is_word) && call[at + name.len()..].starts_with(|next| !is_word(next));
        call.match_indices(name).map(|(at, _)| at).find(whole)
    };
    let named = tools.iter().filter(|name| !name.is_empty());
    let (at, name) = named.filter_map(|name| Some((find(name)?, name))).min()?;
    let rest = &call[at + name.len()..];
    let arguments = ["\"arguments\"", "\"parameters\""].into_iter().find_map(|key| {
        let (_, rest) = rest.split_once(key)?;
        let object = rest.trim_start().strip_prefix(':')?.trim_start();
        // A complete object may be followed by the closing marker; it is not reported as cut.
        let is_open = serde_json::Deserializer::from_str(object)
            .into_iter::<Value>()
            .next()?
            .is_err();
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

    /// The output for a text with a broken call.
    fn told(text: &str, closing: Option<&str>, cut: bool) -> (String, Option<ReplyEvent>) {
        let notice = Notice::new(NoticeCode::BrokenToolCall, "broken").with("opening", "<tool_call>");
        let notice = closing
            .into_iter()
            .fold(notice, |notice, closing| notice.with("closing", closing));
        let mut call = BrokenCall::new(&[
            json!({"function": {"name": "add"}}),
            json!({"function": {"name": "add_all"}}),
        ]);
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
            (
                "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 2}",
                "",
                call("add", "{"),
            ),
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
            ("{name: add}".to_owned(), None)
        );
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
