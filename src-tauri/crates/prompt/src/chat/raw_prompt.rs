//! Prompts that are no conversations: text to be continued, a gap to be filled, ids.

use protocol::RawPrompt;

use super::ChatProcessor;
use crate::channels::{ChannelFormat, ChannelParser};
use crate::error::{Error, Result};
use crate::prompt::Prompt;
use crate::tokenizer::Tokenizer;

/// Control tokens around a gap: before what precedes it, before what follows it, before what fills it.
const FILL_IN: [[&str; 3]; 6] = [
    // Qwen, CodeGemma
    ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    // StarCoder, Granite, SmolLM
    ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"],
    // DeepSeek
    ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
    // Code Llama
    ["▁<PRE>", "▁<SUF>", "▁<MID>"],
    // GLM
    ["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"],
    // Seed-Coder
    ["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"],
];

impl ChatProcessor {
    /// A prompt without the chat template. Tokens that the tokenizer puts before every text, such as a beginning, are
    /// added. Control tokens that the halves around a gap spell stay text.
    ///
    /// # Errors
    /// If a gap is to be filled and the model has no tokens for that, or the text cannot be encoded.
    pub fn raw_prompt(&self, raw: &RawPrompt) -> Result<Prompt> {
        let tokenizer = self.tokenizer();
        let (text, sentinel) = match raw {
            RawPrompt::Tokens(ids) => {
                return Ok(Prompt {
                    text: tokenizer.decode(ids),
                    ids: ids.clone(),
                    images: Vec::new(),
                })
            }
            RawPrompt::Text(text) => (text.clone(), None),
            RawPrompt::FillIn { before, after } => {
                let known = |row: &&[&str; 3]| row.iter().all(|token| tokenizer.id(token).is_some());
                let [prefix, suffix, middle] = FILL_IN.iter().find(known).ok_or(Error::NoFillIn)?;
                // The halves are a person's file, which may spell control tokens, or begin one that the next completes.
                let sentinel = Tokenizer::sentinel_for([before.as_str(), after.as_str()]);
                let half = |text: &str| {
                    let broken = tokenizer.escape_control_tokens(text, sentinel);
                    match tokenizer.has_loose_edge(text) {
                        true => format!("{sentinel}{broken}{sentinel}"),
                        false => broken.into_owned(),
                    }
                };
                let (before, after) = (half(before), half(after));
                (format!("{prefix}{before}{suffix}{after}{middle}"), Some(sentinel))
            }
        };
        let mut ids = tokenizer.encode_with_beginning(&text, sentinel)?;
        // Some clients write the beginning themselves.
        let twice = matches!(ids.as_slice(), [first, second, ..] if first == second && tokenizer.is_control(*first));
        if twice && matches!(raw, RawPrompt::Text(_)) {
            ids.remove(0);
        }
        Ok(Prompt {
            text: sentinel.map_or_else(|| text.clone(), |sentinel| text.replace(sentinel, "")),
            ids,
            images: Vec::new(),
        })
    }

    /// A parser for what follows a raw prompt: all of it is text.
    pub fn raw_parser(&self, prompt: &Prompt, stop_texts: &[String]) -> ChannelParser {
        ChannelParser::new(
            self.tokenizer().clone(),
            ChannelFormat::default(),
            prompt,
            false,
            stop_texts,
        )
    }
}
