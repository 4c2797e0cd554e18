//! Objects that servers send, read tolerantly: a field that is missing, `null` or of another type is ignored.

use serde_json::Value;

/// One chunk of a streamed answer, or a whole answer that came at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) reasoning: String,
    pub(crate) content: String,
    pub(crate) calls: Vec<CallPiece>,
    pub(crate) finish_reason: Option<String>,
    /// The stop text that ended the answer, which vLLM tells.
    pub(crate) stop_text: Option<String>,
    pub(crate) usage: Option<Counts>,
}

impl Chunk {
    /// How much there is of it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| {
            let words = [call.id.as_deref(), call.name.as_deref(), Some(call.arguments.as_str())];
            size_of::<CallPiece>() + words.into_iter().flatten().map(str::len).sum::<usize>()
        });
        self.reasoning.len() + self.content.len() + calls.sum::<usize>()
    }
}

/// A piece of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallPiece {
    /// Which call of the answer; some servers leave it out.
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) arguments: String,
}

/// Tokens as the server counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) prompt: u32,
    pub(crate) completion: u32,
    pub(crate) cached: Option<u32>,
    pub(crate) reasoning: Option<u32>,
}

/// A JSON object of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Chunk(Chunk),
    /// The server's own words about what went wrong.
    Error(String),
}

impl Reply {
    /// Reads an object; `None` if it is nothing that belongs to an answer.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        if let Some(message) = error_message(value) {
            return Some(Self::Error(message));
        }
        let choices = value.get("choices")?.as_array()?;
        let mut chunk = Chunk {
            usage: value.get("usage").and_then(counts),
            ..Chunk::default()
        };
        // One choice is asked for. The last chunk has none, only the usage.
        if let Some(choice) = choices.first() {
            let said = [choice.get("delta"), choice.get("message")]
                .into_iter()
                .flatten()
                .find(|said| said.is_object());
            if let Some(said) = said {
                chunk.content = text(said.get("content"));
                chunk.reasoning = ["reasoning_content", "reasoning"]
                    .iter()
                    .map(|name| text(said.get(*name)))
                    .find(|text| !text.is_empty())
                    .unwrap_or_default();
                let calls = said.get("tool_calls").and_then(Value::as_array);
                chunk.calls = calls.into_iter().flatten().map(call).collect();
            }
            chunk.finish_reason = word(choice.get("finish_reason"));
            chunk.stop_text = word(choice.get("stop_reason"));
        }
        Some(Self::Chunk(chunk))
    }
}

/// The words of an error object: `{"error":{"message":…}}`, `{"error":"…"}`, or FastAPI's `{"detail":…}`. `None` if it
/// is none.
pub(crate) fn error_message(value: &Value) -> Option<String> {
    let error = value.get("error").filter(|error| !error.is_null());
    // vLLM's older form is flat: {"object":"error","message":…}.
    let flat = (value.get("object").and_then(Value::as_str) == Some("error"))
        .then(|| value.get("message"))
        .flatten();
    let detail = value.get("detail").filter(|_| value.get("choices").is_none());
    let said = error.or(flat).or(detail)?;
    let words = match said {
        Value::String(words) => words.clone(),
        Value::Object(fields) => match fields.get("message") {
            Some(Value::String(words)) => words.clone(),
            _ => said.to_string(),
        },
        other => other.to_string(),
    };
    Some(words)
}

/// Text, or the texts of a list of parts.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| text(part.get("text"))).collect(),
        _ => String::new(),
    }
}

fn word(value: Option<&Value>) -> Option<String> {
    value?.as_str().filter(|word| !word.is_empty()).map(str::to_owned)
}

fn call(value: &Value) -> CallPiece {
    let function = value.get("function").unwrap_or(&Value::Null);
    CallPiece {
        index: value.get("index").and_then(Value::as_u64),
        id: word(value.get("id")),
        name: word(function.get("name")),
        arguments: match function.get("arguments") {
            Some(Value::String(arguments)) => arguments.clone(),
            // Not as OpenAI has it, but clear.
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            _ => String::new(),
        },
    }
}

fn counts(value: &Value) -> Option<Counts> {
    let number = |value: Option<&Value>| value?.as_u64().and_then(|count| u32::try_from(count).ok());
    Some(Counts {
        prompt: number(value.get("prompt_tokens"))?,
        completion: number(value.get("completion_tokens"))?,
        cached: number(value.pointer("/prompt_tokens_details/cached_tokens")),
        reasoning: number(value.pointer("/completion_tokens_details/reasoning_tokens")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chunk(value: Value) -> Chunk {
        match Reply::read(&value) {
            Some(Reply::Chunk(chunk)) => chunk,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_thought_has_either_name() {
        for name in ["reasoning_content", "reasoning"] {
            let read = chunk(
                json!({"choices": [{"index": 0, "delta": {name: "hm", "content": null}, "finish_reason": null}]}),
            );
            assert_eq!(
                (read.reasoning.as_str(), read.content.as_str(), read.finish_reason),
                ("hm", "", None)
            );
        }
    }

    #[test]
    fn a_whole_answer_reads_like_a_chunk() {
        let read = chunk(
            json!({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "Hi", "reasoning": "hm"},
            "finish_reason": "stop", "stop_reason": "END"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": null}}),
        );
        let counts = Counts {
            prompt: 3,
            completion: 2,
            cached: Some(1),
            reasoning: None,
        };
        assert_eq!((read.content.as_str(), read.usage), ("Hi", Some(counts)));
        assert_eq!(
            (read.finish_reason.as_deref(), read.stop_text.as_deref()),
            (Some("stop"), Some("END"))
        );
    }

    #[test]
    fn an_error_is_found_in_every_form() {
        for error in [
            json!({"error": {"message": "no", "code": 500}}),
            json!({"error": "no"}),
            json!({"object": "error", "message": "no", "code": 404}),
            json!({"detail": "no"}),
        ] {
            assert_eq!(Reply::read(&error), Some(Reply::Error("no".into())), "{error}");
        }
        assert_eq!(
            Reply::read(&json!({"error": null, "choices": []})),
            Some(Reply::Chunk(Chunk::default()))
        );
        assert_eq!(Reply::read(&json!({"id": 1})), None);
    }

    #[test]
    fn pieces_of_calls_may_lack_anything() {
        let read = chunk(json!({"choices": [{"delta": {"tool_calls": [
            {"index": 1, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}, {"function": {"arguments": {"y": 1}}}, {}]}}]}));
        assert_eq!(
            read.calls[0],
            CallPiece {
                index: Some(1),
                id: Some("a".into()),
                name: Some("f".into()),
                arguments: "{\"x\"".into()
            }
        );
        assert_eq!(read.calls[1].arguments, "{\"y\":1}");
        assert_eq!(read.calls[2], CallPiece::default());
    }
}
