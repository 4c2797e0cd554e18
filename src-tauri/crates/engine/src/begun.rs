//! An answer that was begun before: the ids it goes on from.

use prompt::Prompt;
use protocol::{Begun, Request};

use crate::error::{Error, Result};
use crate::load::Opened;

/// What an answer goes on from.
#[derive(Debug, Default)]
pub struct Beginning {
    /// What has been written, markers included.
    pub tokens: Vec<u32>,
    /// The model that wrote it, where that is known.
    pub model_revision: Option<String>,
    /// Whether its thought was ended for the model.
    pub thinking_ended: bool,
}

impl Beginning {
    /// What a request's answer goes on from behind this prompt; refused where nothing can follow it. Needs no weights.
    pub fn of(opened: &Opened, request: &Request, prompt: &Prompt) -> Result<Option<Self>> {
        let beginning = match &request.continue_from {
            None => return Ok(None),
            Some(Begun::Tokens {
                tokens,
                model_revision,
                thinking_ended,
            }) => Self {
                tokens: tokens.clone(),
                model_revision: model_revision.clone(),
                thinking_ended: *thinking_ended,
            },
            Some(Begun::Words { thinking, text }) => {
                let words = |words: &Option<String>| words.clone().unwrap_or_default();
                Self {
                    tokens: opened.dialect.begun(prompt, &words(thinking), &words(text))?,
                    ..Self::default()
                }
            }
        };
        if let Some(revision) = &opened.source.revision {
            beginning.check_revision(revision)?;
        }
        let stops = &opened.dialect.stops().ids;
        if let Some(stop) = beginning.tokens.last().and_then(|id| stops.get(id)) {
            return Err(Error::BadRequest(format!(
                "this answer ends with {}, by which the model ended it, so there is nothing to go on with; ask again or send a message",
                stop.text
            )));
        }
        let written = prompt.ids.len() + beginning.tokens.len();
        if written >= opened.config.context as usize {
            return Err(Error::AnswerFull {
                written,
                context: opened.config.context,
            });
        }
        Ok(Some(beginning))
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

    /// Refuses ids that a model of so many tokens does not know.
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
