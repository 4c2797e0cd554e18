//! The prefix of an answer that is continued, as token ids.

use prompt::Prompt;
use protocol::{AnswerPrefix, Request};

use crate::error::{Error, Result};
use crate::loaded::ModelFiles;

/// The part of an answer that is there when it is continued.
#[derive(Debug, Default)]
pub struct PrefixTokens {
    /// The generated tokens, markers included.
    pub tokens: Vec<u32>,
    /// The model that wrote it, if that is known.
    pub model_revision: Option<String>,
    /// True if its thought was ended for the model.
    pub thinking_ended: bool,
}

impl PrefixTokens {
    /// The answer prefix of a request, after this prompt. Needs no weights.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if the model ended the answer, [`Error::AnswerFull`] if no token fits after it.
    pub fn new(files: &ModelFiles, request: &Request, prompt: &Prompt) -> Result<Option<Self>> {
        let prefix = match &request.answer_prefix {
            None => return Ok(None),
            Some(AnswerPrefix::Tokens {
                tokens,
                model_revision,
                thinking_ended,
            }) => Self {
                tokens: tokens.clone(),
                model_revision: model_revision.clone(),
                thinking_ended: *thinking_ended,
            },
            Some(AnswerPrefix::Text { thinking, text }) => {
                let words = |words: &Option<String>| words.clone().unwrap_or_default();
                Self {
                    tokens: files
                        .chat()?
                        .encode_answer_prefix(prompt, &words(thinking), &words(text))?,
                    ..Self::default()
                }
            }
        };
        if let Some(revision) = &files.source.revision {
            prefix.check_revision(revision)?;
        }
        let stops = &files.chat()?.stops().ids;
        if let Some(stop) = prefix.tokens.last().and_then(|id| stops.get(id)) {
            return Err(Error::BadRequest(format!(
                "the model ended this answer with {}, so it cannot be continued; ask again or send a message",
                stop.text
            )));
        }
        let written = prompt.ids.len() + prefix.tokens.len();
        let context = request.context_of(files.config.context);
        if written >= context as usize {
            return Err(Error::AnswerFull { written, context });
        }
        Ok(Some(prefix))
    }

    /// Refuses another model than the one that wrote it.
    pub fn check_revision(&self, revision: &str) -> Result<()> {
        match &self.model_revision {
            Some(written) if written != revision => {
                let short = |revision: &str| revision.chars().take(8).collect::<String>();
                Err(Error::BadRequest(format!(
                    "this answer was begun by revision {} of its model, and {} is here, which would read it differently; what was \
                     written is kept: ask for another answer instead",
                    short(written),
                    short(revision)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses ids that a model with a vocabulary of this size does not know.
    pub fn check_vocabulary(&self, vocabulary: u32) -> Result<()> {
        match self.tokens.iter().find(|id| **id >= vocabulary) {
            Some(id) => Err(Error::BadRequest(format!(
                "this answer holds the token {id}, and the model knows {vocabulary} tokens, so another model began it; what was \
                 written is kept: ask for another answer instead"
            ))),
            None => Ok(()),
        }
    }
}
