//! Our reading of a case beside that of a peer.

use serde_json::Value;

use super::{alike, same_calls, Call, Case, Reading};

/// A case, what we read and what the peer reads.
pub struct Comparison<'a> {
    pub case: &'a Case,
    pub ours: &'a Reading,
    pub theirs: &'a Reading,
    /// The markers of the format.
    pub markers: &'a [&'static str],
}

/// The text without its whitespace.
pub fn words(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The value with every text trimmed, and with every other value as the text it is written as.
pub fn untyped(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(untyped).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), untyped(value)))
            .collect(),
        Value::String(text) => match serde_json::from_str::<Value>(text.trim()) {
            Ok(inner) => untyped(&inner),
            Err(_) => Value::from(match text.trim() {
                "True" => "true",
                "False" => "false",
                "None" => "null",
                other => other,
            }),
        },
        other => Value::from(other.to_string().trim_end_matches(".0")),
    }
}

pub fn loosely(calls: &[Call]) -> Vec<Call> {
    let loose = |call: &Call| Call {
        name: call.name.clone(),
        arguments: untyped(&call.arguments),
    };
    calls.iter().map(loose).collect()
}

impl Comparison<'_> {
    pub fn same_calls(&self) -> bool {
        same_calls(&self.ours.calls, &self.theirs.calls)
    }

    pub fn alike_calls(&self) -> bool {
        same_calls(&loosely(&self.ours.calls), &loosely(&self.theirs.calls))
    }

    pub fn same_words(&self) -> bool {
        self.same_thought() && words(&self.ours.text) == words(&self.theirs.text)
    }

    pub fn same_thought(&self) -> bool {
        words(&self.ours.thinking) == words(&self.theirs.thinking)
    }

    pub fn broken(&self) -> bool {
        self.noticed("broken_tool_call")
    }

    pub fn noticed(&self, code: &str) -> bool {
        self.ours.notices.iter().any(|notice| notice == code)
    }

    pub fn format(&self, name: &str) -> bool {
        self.case.format.as_deref() == Some(name)
    }

    /// The rest of ours after theirs, if theirs is its beginning.
    pub fn text_beyond(&self) -> Option<String> {
        words(&self.ours.text)
            .strip_prefix(&words(&self.theirs.text))
            .map(str::to_owned)
    }

    /// True if all of the source is shown, except markers around the calls.
    pub fn source_is_shown(&self) -> bool {
        self.unmarked(&self.ours.text) == self.unmarked(&self.case.source)
    }

    /// True if thought and answer together are all of the source, except markers and the words of headers.
    pub fn source_is_told(&self) -> bool {
        let told = self.spoken(&format!("{}{}", self.ours.thinking, self.ours.text));
        let written = self.spoken(&self.case.source);
        let calls = !self.ours.calls.is_empty();
        told == written || calls && !told.is_empty() && in_order(&told, &written)
    }

    /// The text without whitespace, markers, and the words of Muse's and Gemma's headers.
    pub fn spoken(&self, text: &str) -> String {
        let headers: &[&str] = match self.case.format.as_deref() {
            Some("muse") => &["assistant", "to=self", "to=user", "to=developer", "to=commentary"],
            Some("gemma4") => &["thought"],
            _ => &[],
        };
        headers
            .iter()
            .fold(self.unmarked(text), |text, word| text.replace(word, ""))
    }

    /// True if these words stand in the source, markers aside.
    pub fn source_holds(&self, text: &str) -> bool {
        in_order(&self.unmarked(text), &self.unmarked(&self.case.source))
    }

    /// True if our text is the call of which their reasoning parser shows the header.
    pub fn shows_call_instead(&self) -> bool {
        let name = self
            .theirs
            .text
            .rsplit_once("to=")
            .map(|(_, rest)| rest.split('<').next().unwrap_or(rest));
        self.case.kind == "reasoning" && name.is_some_and(|name| self.ours.text.contains(name))
    }

    /// True if the names and the arguments of our calls are the source's own.
    pub fn calls_are_written(&self) -> bool {
        let written = |call: &Call| {
            let keys = call.arguments.as_object().into_iter().flatten();
            let keys = keys.map(|(key, _)| key.as_str());
            std::iter::once(call.name.as_str())
                .chain(keys)
                .all(|word| self.case.source.contains(word))
        };
        self.ours.calls.iter().all(written)
    }

    pub fn source_ends_whole(&self) -> bool {
        let source = self.case.source.trim_end();
        self.markers.iter().any(|marker| source.ends_with(marker))
    }

    /// True if a channel without a label opens after words.
    pub fn source_opens_late(&self) -> bool {
        let late = self.case.source.split_once("<|channel>");
        late.is_some_and(|(words, rest)| !words.trim().is_empty() && !rest.starts_with("thought"))
    }

    /// True if something in the source closes a thought.
    pub fn source_closes(&self) -> bool {
        let closings = [
            "</think>",
            "</mm:think>",
            "</seed:think>",
            "<channel|>",
            "<|eom|>",
            "<|end|>",
        ];
        closings.iter().any(|closing| self.case.source.contains(closing))
    }

    /// The text without whitespace and markers.
    pub fn unmarked(&self, text: &str) -> String {
        let mut text = words(text);
        for marker in self.markers {
            text = text.replace(&words(marker), "");
        }
        text
    }

    pub fn is_marker(&self, text: &str) -> bool {
        self.markers.iter().any(|marker| words(marker) == text)
    }

    pub fn holds_marker(&self, text: &str) -> bool {
        self.markers.iter().any(|marker| text.contains(&words(marker)))
    }
}

/// True if these calls are a prefix of the others.
pub fn alike_beginning(first: &[Call], all: &[Call]) -> bool {
    let (first, all) = (loosely(first), loosely(all));
    first
        .iter()
        .zip(&all)
        .all(|(a, b)| a.name == b.name && alike(&a.arguments, &b.arguments))
}

/// True if the characters of a text stand in another one in the same order.
pub fn in_order(text: &str, all: &str) -> bool {
    let mut rest = all.chars();
    text.chars().all(|c| rest.any(|other| other == c))
}
