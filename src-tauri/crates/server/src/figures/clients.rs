//! The programs that send requests to this server, with counts and never with text.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::InboundClient;
use jiff::Timestamp;

use crate::figures::tokens::Tokens;

/// The maximum number of remembered programs; the one seen longest ago is dropped.
const MOST_CLIENTS: usize = 64;

/// The maximum length of a name, in bytes.
const LONGEST_NAME: usize = 48;

/// Product names that users know, by the names that programs send.
const KNOWN: [(&str, &str); 11] = [
    ("claude-cli", "Claude Code"),
    ("codex_exec", "Codex"),
    ("codex_cli_rs", "Codex"),
    ("codex-tui", "Codex"),
    ("opencode", "OpenCode"),
    ("ai", "AI SDK"),
    ("OpenAI/Python", "OpenAI SDK for Python"),
    ("OpenAI/JS", "OpenAI SDK for JavaScript"),
    ("Anthropic/Python", "Anthropic SDK for Python"),
    ("ollama-python", "Ollama SDK for Python"),
    ("ollama-js", "Ollama SDK for JavaScript"),
];

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<HashMap<String, InboundClient>>);

impl Clients {
    /// Records a request by the program of this User-Agent; returns its listed name.
    pub(crate) fn asked(&self, user_agent: Option<&str>) -> String {
        let name = name(user_agent.unwrap_or_default());
        let mut list = self.lock();
        if !list.contains_key(&name) && list.len() >= MOST_CLIENTS {
            let oldest = list.values().min_by_key(|client| client.last_seen_at);
            let oldest = oldest.map(|client| client.name.clone());
            oldest.map(|oldest| list.remove(&oldest));
        }
        let client = list.entry(name.clone()).or_insert_with(|| InboundClient {
            name: name.clone(),
            requests: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            last_seen_at: 0,
        });
        client.requests += 1;
        client.last_seen_at = Timestamp::now().as_millisecond();
        name
    }

    /// Records the tokens of an answer.
    pub(crate) fn answered(&self, name: &str, tokens: Tokens) {
        if let Some(client) = self.lock().get_mut(name) {
            client.prompt_tokens += u64::from(tokens.prompt);
            client.completion_tokens += u64::from(tokens.completion);
        }
    }

    /// The programs, the most recent one first.
    pub(crate) fn list(&self) -> Vec<InboundClient> {
        let mut list: Vec<InboundClient> = self.lock().values().cloned().collect();
        list.sort_by(|a, b| b.last_seen_at.cmp(&a.last_seen_at).then_with(|| a.name.cmp(&b.name)));
        list
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, InboundClient>> {
        // Counts are right after each step, so a poisoned list is too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first product of a User-Agent, without its version.
fn name(user_agent: &str) -> String {
    let product = user_agent.split_whitespace().next().unwrap_or_default();
    let product = product.chars().filter(char::is_ascii_graphic).take(LONGEST_NAME);
    let product: String = product.collect();
    let name = match product.rsplit_once('/') {
        Some((name, version)) if version.starts_with(|first: char| first.is_ascii_digit()) => name.to_owned(),
        // The SDKs of OpenAI and Anthropic write their version after a space.
        _ => product,
    };
    let known = KNOWN.iter().find(|(called, _)| *called == name);
    match known {
        Some((_, name)) => (*name).to_owned(),
        None if name.is_empty() => "unknown".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_called_as_people_know_them() {
        for (user_agent, expected) in [
            ("claude-cli/2.1.197 (external, sdk-cli)", "Claude Code"),
            (
                "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.169.0)",
                "Codex",
            ),
            (
                "ai/6.0.326 ai-sdk/provider-utils/4.0.62 runtime/node.js/v20.20.2",
                "AI SDK",
            ),
            ("OpenAI/Python 3.54.0", "OpenAI SDK for Python"),
            ("pydantic-ai/2.68.0", "pydantic-ai"),
            (
                "ollama-python/0.6.3 (x86_64 linux) Python/3.11.2",
                "Ollama SDK for Python",
            ),
            (
                "ai-sdk/openai-compatible/2.0.87 ai-sdk/provider-utils",
                "ai-sdk/openai-compatible",
            ),
            ("", "unknown"),
            ("\u{1b}[31m/1", "[31m"),
        ] {
            assert_eq!(name(user_agent), expected);
        }
        assert_eq!(name(&"x".repeat(1000)).len(), LONGEST_NAME);
    }

    #[test]
    fn counts_add_up_and_the_list_stays_short() {
        let clients = Clients::default();
        let name = clients.asked(Some("curl/8.1"));
        clients.asked(Some("curl/8.2"));
        let tokens = Tokens {
            prompt: 3,
            completion: 2,
            ..Tokens::default()
        };
        clients.answered(&name, tokens);
        let list = clients.list();
        assert_eq!(
            (list[0].requests, list[0].prompt_tokens, list[0].completion_tokens),
            (2, 3, 2)
        );
        for number in 0..200 {
            clients.asked(Some(&format!("program{number}")));
        }
        assert_eq!(clients.list().len(), MOST_CLIENTS);
    }
}
