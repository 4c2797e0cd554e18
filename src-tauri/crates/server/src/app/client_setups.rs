//! Setup instructions for clients, to be copied. `docs/server.md` has the same texts.

use api::ClientSetup;
use serde_json::Value;

/// A placeholder key for programs that insist on one.
const ANY_KEY: &str = "local";

/// The context length for programs that need one, if it is unknown, in tokens.
const USUAL_CONTEXT: u32 = 32_768;

/// The setup of each program for the server at this address (without a path) and a model as the server lists it. `key`
/// is the key that clients must send, if any; `context` is the model's context length in tokens, if known.
pub fn client_setups(address: &str, model: &str, key: Option<&str>, context: Option<u32>) -> Vec<ClientSetup> {
    let openai = format!("{address}/v1");
    let any_key = key.unwrap_or(ANY_KEY);
    // JSON strings are also valid in TOML, YAML, Python and JavaScript.
    let quoted = |text: &str| Value::from(text).to_string();
    let (url, base, id, secret) = (quoted(&openai), quoted(address), quoted(model), quoted(any_key));
    let context = context.unwrap_or(USUAL_CONTEXT);
    let bearer = key.map_or(String::new(), |_| format!("\nexperimental_bearer_token = {secret}"));
    let (model_word, key_word) = (shell_word(model), shell_word(any_key));
    let aider_model = shell_word(&format!("openai/{model}"));
    let setup = |name: &str, file: Option<&str>, language: &str, text: String| ClientSetup {
        name: name.into(),
        file: file.map(Into::into),
        language: language.into(),
        text,
    };
    vec![
        setup(
            "Claude Code",
            None,
            "bash",
            format!(
                "ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY={key_word} ANTHROPIC_MODEL={model_word} \\\n  \
                 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 claude"
            ),
        ),
        setup(
            "Codex",
            Some("~/.codex/config.toml"),
            "toml",
            format!(
                "model = {id}\nmodel_provider = \"ponder\"\n\n[model_providers.ponder]\nname = \"Ponder\"\nbase_url = {url}\n\
                 wire_api = \"responses\"{bearer}"
            ),
        ),
        setup(
            "OpenCode",
            Some("opencode.json"),
            "json",
            format!(
                r#"{{
  "$schema": "https://opencode.ai/config.json",
  "provider": {{
    "ponder": {{
      "npm": "@ai-sdk/openai-compatible",
      "name": "Ponder",
      "options": {{ "baseURL": {url}, "apiKey": {secret} }},
      "models": {{ {id}: {{}} }}
    }}
  }}
}}"#
            ),
        ),
        setup(
            "Zed",
            Some("settings.json"),
            "jsonc",
            format!(
                r#"// Start Zed with PONDER_API_KEY={key_word} in its environment, or enter the key on its page of providers.
{{
  "language_models": {{
    "openai_compatible": {{
      "Ponder": {{
        "api_url": {url},
        "available_models": [{{ "name": {id}, "max_tokens": {context} }}]
      }}
    }}
  }}
}}"#
            ),
        ),
        setup(
            "Continue",
            Some("~/.continue/config.yaml"),
            "yaml",
            format!(
                "name: Ponder\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: Ponder\n    provider: openai\n    model: {id}\n    \
                 apiBase: {url}\n    apiKey: {secret}"
            ),
        ),
        setup(
            "aider",
            None,
            "bash",
            format!("OPENAI_API_BASE={openai} OPENAI_API_KEY={key_word} aider --model {aider_model}"),
        ),
        setup(
            "LangChain",
            None,
            "python",
            format!("from langchain_openai import ChatOpenAI\n\nllm = ChatOpenAI(base_url={url}, api_key={secret}, model={id})"),
        ),
        setup(
            "OpenAI SDK for Python",
            None,
            "python",
            format!(
                "from openai import OpenAI\n\nclient = OpenAI(base_url={url}, api_key={secret})\nanswer = client.chat.completions.create(\n    \
                 model={id}, messages=[{{\"role\": \"user\", \"content\": \"What is 2 + 3?\"}}]\n)\nprint(answer.choices[0].message.content)"
            ),
        ),
        setup(
            "OpenAI SDK for JavaScript",
            None,
            "javascript",
            format!(
                "import OpenAI from 'openai';\n\nconst client = new OpenAI({{ baseURL: {url}, apiKey: {secret} }});\n\
                 const answer = await client.chat.completions.create({{\n  model: {id},\n  \
                 messages: [{{ role: 'user', content: 'What is 2 + 3?' }}],\n}});\nconsole.log(answer.choices[0].message.content);"
            ),
        ),
        setup(
            "Anthropic SDK for Python",
            None,
            "python",
            format!(
                "from anthropic import Anthropic\n\nclient = Anthropic(base_url={base}, api_key={secret})\nanswer = client.messages.create(\n    \
                 model={id}, max_tokens=1024, messages=[{{\"role\": \"user\", \"content\": \"What is 2 + 3?\"}}]\n)\n\
                 print(answer.content[-1].text)"
            ),
        ),
        setup(
            "Anthropic SDK for JavaScript",
            None,
            "javascript",
            format!(
                "import Anthropic from '@anthropic-ai/sdk';\n\nconst client = new Anthropic({{ baseURL: {base}, apiKey: {secret} }});\n\
                 const answer = await client.messages.create({{\n  model: {id},\n  max_tokens: 1024,\n  \
                 messages: [{{ role: 'user', content: 'What is 2 + 3?' }}],\n}});\nconsole.log(answer.content.at(-1).text);"
            ),
        ),
        setup(
            "curl",
            None,
            "bash",
            format!(
                "curl {openai}/chat/completions -H 'content-type: application/json'{} -d {}",
                key.map_or(String::new(), |key| format!(" -H {}", shell_word(&format!("authorization: Bearer {key}")))),
                shell_word(&format!(
                    "{{\"model\": {id}, \"messages\": [{{\"role\": \"user\", \"content\": \"What is 2 + 3?\"}}]}}"
                )),
            ),
        ),
    ]
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
        let setups = client_setups("http://127.0.0.1:8231", "MODEL", None, None);
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
