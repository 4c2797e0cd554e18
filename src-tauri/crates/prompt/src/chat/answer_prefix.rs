//! The ids of an answer of which only the words are known, so that it can be continued.

use super::ChatProcessor;
use crate::error::{Error, Result};
use crate::prompt::Prompt;
use crate::tokenizer::Tokenizer;

impl ChatProcessor {
    /// The ids that a model would have generated after `prompt` for this: a thought, which is continued if no text
    /// follows it, and an answer, which is continued. Words that spell control tokens stay words. An error if there is
    /// a thought and the model's format knows none.
    pub fn encode_answer_prefix(&self, prompt: &Prompt, thinking: &str, text: &str) -> Result<Vec<u32>> {
        if thinking.is_empty() && text.is_empty() {
            return Ok(Vec::new());
        }
        let sentinel = Tokenizer::sentinel_for([thinking, text]);
        let opened = self.parser(prompt, true, &[]).is_thinking();
        let mut said = String::new();
        if !thinking.is_empty() {
            said = self.thought_opening().filter(|_| !opened).unwrap_or_default();
            if !opened && said.is_empty() {
                return Err(Error::NoThoughts);
            }
            said.push_str(&self.tokenizer().escape_control_tokens(thinking, sentinel));
        }
        if !text.is_empty() {
            if let Some(terminator) = self.end_of_thinking() {
                let opening = terminator.answer_opening(self.format());
                said.push_str(match terminator.text() {
                    whole if thinking.ends_with('\n') => whole.trim_start(),
                    whole if opened || !thinking.is_empty() => whole,
                    _ if prompt.text.ends_with(opening) => "",
                    _ => opening,
                });
            }
            said.push_str(&self.tokenizer().escape_control_tokens(text, sentinel));
        }
        // Together with the prompt's end, because a tokenizer may treat the beginning of a text otherwise.
        let (_, start) = self.tokenizer().last_control(&prompt.text);
        let end = &prompt.text[start.unwrap_or(0)..];
        let before = self.tokenizer().encode_rendered(end, Some(sentinel))?;
        let whole = self
            .tokenizer()
            .encode_rendered(&format!("{end}{said}"), Some(sentinel))?;
        match whole.strip_prefix(before.as_slice()) {
            Some(ids) => Ok(ids.to_vec()),
            None => self.tokenizer().encode_rendered(&said, Some(sentinel)),
        }
    }

    /// How a thought begins that the prompt did not open.
    fn thought_opening(&self) -> Option<String> {
        let terminator = self.end_of_thinking()?;
        let mut opening = self.format().opened()?;
        if let Some(rest) = opening.strip_prefix("<|start|>assistant") {
            opening = rest.to_owned();
        }
        // If a line of its own ends a thought, one begins it.
        if terminator.text().starts_with('\n') && !opening.ends_with('\n') {
            opening.push('\n');
        }
        Some(opening)
    }
}
