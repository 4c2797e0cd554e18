//! Prompts of a server: texts for a person to send, read so that an odd one hides no other.

use protocol::cut_result;
use serde_json::Value;

use crate::outcome::ResultPart;

/// Prompts of a server at most, and arguments of a prompt.
const MOST: usize = 200;

/// Bytes of a name at most; a prompt with a longer one is left out.
const LONGEST_NAME: usize = 256;

/// Bytes of a title and a description at most; what is longer is cut.
const LONGEST_TEXT: usize = 2 << 10;

/// Bytes of the text of a prompt at most.
const LONGEST_PROMPT: usize = 64 << 10;

/// A prompt as a server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Its name for the server.
    pub name: String,
    /// Its name for people; empty if it has none.
    pub title: String,
    /// The server's words about it.
    pub description: String,
    /// The arguments that a person fills in.
    pub arguments: Vec<Argument>,
}

/// The arguments that a person fills in.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// The server's words about it.
    pub description: String,
    /// There is no prompt without it.
    pub required: bool,
}

/// The prompts of pages of answers to `prompts/list`.
pub fn prompts_of(pages: &[Value]) -> Vec<Prompt> {
    let listed = pages
        .iter()
        .filter_map(|page| page.get("prompts")?.as_array())
        .flatten();
    listed.filter_map(read).take(MOST).collect()
}

fn read(prompt: &Value) -> Option<Prompt> {
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let arguments = arguments.into_iter().flatten().filter_map(|argument| {
        Some(Argument {
            name: name(argument)?,
            description: text(argument, "description"),
            required: argument.get("required").and_then(Value::as_bool).unwrap_or(false),
        })
    });
    Some(Prompt {
        name: name(prompt)?,
        title: text(prompt, "title"),
        description: text(prompt, "description"),
        arguments: arguments.take(MOST).collect(),
    })
}

fn name(of: &Value) -> Option<String> {
    let name = of.get("name")?.as_str()?;
    (!name.is_empty() && name.len() <= LONGEST_NAME).then(|| name.to_owned())
}

fn text(of: &Value, field: &str) -> String {
    let text = of.get(field).and_then(Value::as_str).unwrap_or_default();
    text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
}

/// The text in the answer to `prompts/get`: that of its messages, with a line for everything that is no text.
pub fn text_of(answer: &Value) -> Option<String> {
    let messages = answer.get("messages")?.as_array()?;
    let contents = messages.iter().filter_map(|message| message.get("content"));
    // One content, or a list of them.
    let parts = contents.flat_map(|content| match content {
        Value::Array(parts) => parts.iter().collect(),
        one => vec![one],
    });
    let texts: Vec<String> = parts.filter_map(|part| ResultPart::read(part).for_model()).collect();
    (!texts.is_empty()).then(|| cut_result(texts.join("\n\n"), LONGEST_PROMPT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_odd_prompt_hides_no_other() {
        let page = json!({ "prompts": [
            { "name": "review", "title": "Review", "arguments": [{ "name": "code", "required": true }, { "name": 7 }, 3] },
            { "title": "nameless" }, "text", { "name": "" }, { "name": "x".repeat(LONGEST_NAME + 1) },
            { "name": "plain", "arguments": "none", "description": 7 },
        ] });
        let prompts = prompts_of(&[page, json!({}), json!(7)]);
        let [review, plain] = &prompts[..] else {
            panic!("{prompts:?}")
        };
        assert_eq!((review.arguments.len(), review.arguments[0].required), (1, true));
        assert_eq!((plain.arguments.len(), plain.description.as_str()), (0, ""));
        let many: Vec<Value> = (0..MOST + 5)
            .map(|place| json!({ "name": place.to_string() }))
            .collect();
        assert_eq!(prompts_of(&[json!({ "prompts": many })]).len(), MOST);
    }

    #[test]
    fn a_prompt_is_the_text_of_its_messages() {
        let answer = json!({ "messages": [
            { "role": "user", "content": { "type": "text", "text": "Look at this." } },
            { "role": "assistant", "content": [{ "type": "text", "text": "I look." }, { "type": "image", "data": "AAAA", "mimeType": "image/png" }] },
            { "role": "user", "content": { "type": "resource", "resource": { "uri": "a", "text": "the file" } } },
            { "role": "user" }, 7,
        ] });
        let text = text_of(&answer).unwrap();
        assert_eq!(text, "Look at this.\n\nI look.\n\n[image/png]\n\nthe file");
        let long = json!({ "messages": [{ "content": { "type": "text", "text": "x".repeat(1 << 20) } }] });
        assert!(text_of(&long).unwrap().len() <= LONGEST_PROMPT);
        for none in [
            json!({}),
            json!({ "messages": [] }),
            json!({ "messages": [{ "content": 7 }] }),
        ] {
            assert_eq!(text_of(&none), None, "{none}");
        }
    }
}
