//! What the engine is given to read before a chat's first question: the files of its folder, which that question begins with.

use history::History;
use protocol::{ChatSettings, Content, Error as Failure, Request, Result, Role, StoredMessage};

use crate::pictures;
use crate::turn::{prefetch, prefetches, AnswerRequest};
use crate::Chat;

impl Chat {
    /// Lets the engine read the files of a folder, when it has nothing else to do, because a chat with these settings is about to begin there.
    /// A folder without files changes nothing.
    ///
    /// # Errors
    /// `NotFound` for the folder; `ModelNotFound` and `ModelBroken` from the model folder.
    pub async fn prefetch_folder(&self, folder: &str, settings: ChatSettings) -> Result<()> {
        let folder = self.0.history.folders().await?.into_iter().find(|known| known.id == folder);
        let folder = folder.ok_or_else(|| Failure::from(history::Error::NotFound("folder")))?;
        let (_, ask) = self.answer_request_in(Some(folder), settings).await?;
        let engine = self.0.engine.as_ref();
        if !ask.files.is_empty() && prefetches(engine, &ask.model) {
            prefetch(engine, request_ahead(&self.0.history, &ask, &[], false).await);
        }
        Ok(())
    }
}

/// The request by which what the next question comes after is read ahead. If that will be the first question, the folder's files stand there as
/// its beginning; the engine, which does not know the rest, puts an empty line after them.
pub(crate) async fn request_ahead(history: &History, ask: &AnswerRequest, branch: &[StoredMessage], sees: bool) -> Request {
    let request = pictures::request(history, ask, branch, &[], sees).await;
    if ask.files.is_empty() || request.messages.iter().any(|message| message.role == Role::User) {
        return request;
    }
    let first = AnswerRequest {
        files: Vec::new(),
        ..ask.clone()
    };
    let mut request = pictures::request(history, &first, branch, &ask.files, sees).await;
    let said = request.messages.last_mut().and_then(|question| question.content.last_mut());
    if let Some(Content::Text { text }) = said {
        // Its own empty line at the end would make two.
        text.truncate(text.trim_end_matches('\n').len());
    }
    request
}
