//! Setup instructions for clients, to be copied. `docs/server.md` has the same texts.

use api::ClientSetup;
use serde_json::Value;

/// The texts in the form of `docs/server.md`. A word in angle brackets stands for its value.
const TEXTS: &str = include_str!("client_setups.txt");

/// A placeholder key for programs that insist on one.
const ANY_KEY: &str = "local";

/// The context length for programs that need one, if it is unknown, in tokens.
const USUAL_CONTEXT: u32 = 32_768;

/// The setup of each program for the server at this address (without a path) and a model as the server lists it. `key`
/// is the key that clients must send, if any; `context` is the model's context length in tokens, if known.
pub fn client_setups(address: &str, model: &str, key: Option<&str>, context: Option<u32>) -> Vec<ClientSetup> {
    let any_key = key.unwrap_or(ANY_KEY);
    // JSON strings are also valid in TOML, YAML, Python and JavaScript.
    let quoted = |text: &str| Value::from(text).to_string();
    let message = r#"[{"role": "user", "content": "What is 2 + 3?"}]"#;
    let value = |name: &str| match name {
        "address" => address.to_owned(),
        "anthropic" | "ollama" => quoted(address),
        "openai" => quoted(&format!("{address}/v1")),
        "model" => quoted(model),
        "model word" => shell_word(model),
        "aider model" => shell_word(&format!("openai/{model}")),
        "key" => quoted(any_key),
        "key word" => shell_word(any_key),
        "context" => context.unwrap_or(USUAL_CONTEXT).to_string(),
        "question" => shell_word(&format!(r#"{{"model": {}, "messages": {message}}}"#, quoted(model))),
        "bearer" => key.map_or_else(String::new, |key| {
            format!("\nexperimental_bearer_token = {}", quoted(key))
        }),
        "bearer header" => quoted(&format!("Bearer {any_key}")),
        "authorization" => key.map_or_else(String::new, |key| {
            format!(" -H {}", shell_word(&format!("authorization: Bearer {key}")))
        }),
        other => format!("<{other}>"),
    };
    TEXTS
        .split_terminator("\n```\n")
        .filter_map(|block| setup(block, &value))
        .collect()
}

/// The setup in a block of the texts: a line with its name and its file, then its text after a line with the language.
fn setup(block: &str, value: &dyn Fn(&str) -> String) -> Option<ClientSetup> {
    let (title, code) = block.trim_start().strip_prefix("**")?.split_once("\n\n```")?;
    let (name, place) = title.split_once("**")?;
    let (language, text) = code.split_once('\n')?;
    let mut parts = text.split('<');
    let mut filled = parts.next()?.to_owned();
    for (word, rest) in parts.filter_map(|part| part.split_once('>')) {
        filled = filled + &value(word) + rest;
    }
    Some(ClientSetup {
        name: name.to_owned(),
        file: place.split('`').nth(1).map(str::to_owned),
        language: language.to_owned(),
        text: filled,
    })
}

/// A text as one shell word.
fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_documentation_has_every_text_as_it_is() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/server.md");
        let docs = fs::read_to_string(docs).unwrap();
        let setups = client_setups("http://127.0.0.1:8231", "MODEL", Some("KEY"), None);
        for ClientSetup {
            name,
            file,
            language,
            text,
        } in setups
        {
            let place = file.map_or(String::new(), |file| format!(", in `{file}`"));
            let block = format!("**{name}**{place}\n\n```{language}\n{text}\n```\n");
            assert!(
                docs.contains(&block),
                "docs/server.md lacks this, or has it otherwise:\n\n{block}"
            );
        }
    }

    #[test]
    fn names_and_keys_stay_one_word_whatever_they_are() {
        let (model, key) = ("/models/it's \"mine\"; rm -rf $HOME", "ponder-1");
        let setups = client_setups("http://127.0.0.1:1", model, Some(key), Some(4096));
        let text = |name: &str| setups.iter().find(|setup| setup.name == name).unwrap().text.clone();
        let word = r#"'/models/it'\''s "mine"; rm -rf $HOME'"#;
        assert!(
            text("Claude Code").contains(&format!("ANTHROPIC_MODEL={word} \\\n")),
            "{}",
            text("Claude Code")
        );
        assert!(text("Codex").contains(r#"model = "/models/it's \"mine\"; rm -rf $HOME""#));
        assert!(text("Codex").ends_with("experimental_bearer_token = \"ponder-1\""));
        assert!(text("curl").contains("-H 'authorization: Bearer ponder-1'"));
        let parsed =
            |name: &str| serde_json::from_str::<Value>(text(name).trim_start_matches(|letter| letter != '{')).unwrap();
        assert_eq!(
            parsed("OpenCode")["provider"]["ponder"]["models"][model],
            Value::Object(Default::default())
        );
        let zed = parsed("Zed");
        let listed = &zed["language_models"]["openai_compatible"]["Ponder"]["available_models"][0];
        assert_eq!(
            (&listed["name"], &listed["max_tokens"]),
            (&Value::from(model), &Value::from(4096))
        );
        assert!(setups.iter().all(|setup| setup.text.contains(key)));
    }
}
