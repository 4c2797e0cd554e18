use std::path::Path;

use anyhow::{bail, Context, Result};
use protocol::AnswerPrefix;
use serde::Deserialize;
use serde_json::Value;

use super::text_file::read_text;

/// The forms of a response, for people.
const FORMS: &str = r#"Use the output of 'ponder ask --json', or {"text": "…"}"#;

/// A response in any of its forms.
#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    tokens: Option<Vec<u32>>,
    thinking_ended: bool,
    model_revision: Option<String>,
    #[serde(alias = "reasoning", alias = "reasoning_content")]
    thinking: Option<String>,
    #[serde(alias = "content")]
    text: Option<String>,
    tool_calls: Vec<Value>,
}

/// Reads `--continue FILE`: `{"tokens": […]}`, `{"thinking": …, "text": …}`, an assistant's message in the OpenAI form,
/// or the lines that `ponder ask --json` printed.
///
/// # Errors
/// When the file cannot be read or is none of these.
pub fn read_answer_prefix(path: &Path) -> Result<AnswerPrefix> {
    let text = read_text(path, "response")?;
    parse(&text).with_context(|| format!("{} cannot be continued", path.display()))
}

fn parse(text: &str) -> Result<AnswerPrefix> {
    // The place of a fault helps with JSON alone.
    if !text.trim_start().starts_with('{') {
        bail!("it is not a response. {FORMS}");
    }
    let values: Vec<Value> = serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect::<serde_json::Result<_>>()
        .context("its JSON has a fault")?;
    let file = match values.as_slice() {
        [one] if one.is_object() && one.get("type").is_none() => serde_json::from_value(one.clone())?,
        lines if !lines.is_empty() && lines.iter().all(|line| line["type"].is_string()) => printed(lines)?,
        _ => bail!("it is not one response. {FORMS}"),
    };
    if let Some(tokens) = file.tokens {
        return Ok(AnswerPrefix::Tokens {
            tokens,
            model_revision: file.model_revision,
            thinking_ended: file.thinking_ended,
        });
    }
    if !file.tool_calls.is_empty() {
        bail!("it calls a tool, and such a response needs its tokens to be continued");
    }
    if file.thinking.is_none() && file.text.is_none() {
        bail!("it has neither tokens nor text. {FORMS}");
    }
    Ok(AnswerPrefix::Text {
        thinking: file.thinking,
        text: file.text,
    })
}

/// The lines of a response: its tokens if it came to an end, else its text.
fn printed(lines: &[Value]) -> Result<File> {
    let of = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    if of("tool_result").next().is_some() {
        bail!("it rests on results of tools, which are no part of it");
    }
    let words = |kind| -> Option<String> {
        let text: String = of(kind).filter_map(|line| line["text"].as_str()).collect();
        (!text.is_empty()).then_some(text)
    };
    Ok(File {
        tokens: match of("done").next_back() {
            Some(done) => Some(Vec::deserialize(&done["tokens"]).context("its last line has no tokens")?),
            None => None,
        },
        model_revision: of("done")
            .next_back()
            .and_then(|done| Some(done["model_revision"].as_str()?.to_owned())),
        thinking_ended: of("done").any(|done| done["thinking_ended"] == true),
        thinking: words("thinking"),
        text: words("text"),
        tool_calls: of("tool_call").cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_read_in_each_of_its_forms() {
        let words = |thinking: Option<&str>, text: Option<&str>| AnswerPrefix::Text {
            thinking: thinking.map(str::to_owned),
            text: text.map(str::to_owned),
        };
        let tokens = |tokens: &[u32], revision: Option<&str>, thinking_ended| AnswerPrefix::Tokens {
            tokens: tokens.to_vec(),
            model_revision: revision.map(str::to_owned),
            thinking_ended,
        };
        for (text, expected) in [
            (r#"{"tokens": [1, 2]}"#, tokens(&[1, 2], None, false)),
            (
                r#"{"tokens": [], "thinking_ended": true, "model_revision": "abc", "text": "x"}"#,
                tokens(&[], Some("abc"), true),
            ),
            (r#"{"thinking": "T", "text": null}"#, words(Some("T"), None)),
            (
                r#"{"role": "assistant", "content": "A", "reasoning": "T"}"#,
                words(Some("T"), Some("A")),
            ),
            (r#"{"role": "assistant", "content": "A"}"#, words(None, Some("A"))),
            (
                "{\"type\":\"progress\"}\n{\"type\":\"thinking\",\"text\":\"T\"}\n{\"type\":\"text\",\"text\":\"A\"}\n{\"type\":\"text\",\"text\":\"B\"}\n",
                words(Some("T"), Some("AB")),
            ),
            (
                "{\"type\":\"text\",\"text\":\"A\"}\n{\"type\":\"done\",\"tokens\":[3],\"model_revision\":\"r\",\"thinking_ended\":true}",
                tokens(&[3], Some("r"), true),
            ),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for (text, reason) in [
            ("", "not a response"),
            ("The first words of a response", "'ponder ask --json'"),
            ("{", "has a fault"),
            ("[]", "not a response"),
            ("{} {}", "not one response"),
            ("{}", "neither tokens nor text"),
            (r#"{"tokens": [-1]}"#, "invalid value"),
            (
                r#"{"content": null, "tool_calls": [{"function": {"name": "f"}}]}"#,
                "calls a tool",
            ),
            ("{\"type\":\"done\"}", "no tokens"),
            (
                "{\"type\":\"tool_result\"}\n{\"type\":\"done\",\"tokens\":[3]}",
                "results of tools",
            ),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
