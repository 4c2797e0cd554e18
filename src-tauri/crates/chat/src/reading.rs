//! A chat as it is read: whole, or by a window, which sees the end of a long one first.

use protocol::{AnswerState, ChatView, Result, StoredMessage};

use crate::pictures::{add_images, attachments};
use crate::prefetch::request_ahead;
use crate::turn::{prefetch, prefetches};
use crate::Chat;

/// So many messages of a long chat are shown at first: more than a window holds.
const NEWEST: u32 = 100;

/// So many earlier ones are read at once: a window takes them without a pause that is seen.
const EARLIER: u32 = 500;

impl Chat {
    /// A chat with the branch that is looked at.
    pub async fn chat(&self, chat: &str) -> Result<ChatView> {
        Ok(self.0.history.chat(chat).await?)
    }

    /// A chat as a window shows it: of a long one the newest messages, which are soon read.
    pub(crate) async fn shown(&self, chat: &str) -> Result<ChatView> {
        Ok(self.0.history.newest_of_chat(chat, NEWEST).await?)
    }

    /// A chat for somebody who will continue it, of a long one the newest messages; [`Chat::earlier_messages`] reads the others. The loaded
    /// model, if it is the chat's, prefetches it meanwhile.
    pub async fn open_chat(&self, chat: &str) -> Result<ChatView> {
        let view = self.shown(chat).await?;
        self.prefetch(&view);
        Ok(view)
    }

    /// Some of the messages right before this one on its branch, oldest first; none before the first.
    ///
    /// # Errors
    /// `NotFound` for the message.
    pub async fn earlier_messages(&self, message: &str) -> Result<Vec<StoredMessage>> {
        Ok(self.0.history.messages_before(message, EARLIER).await?)
    }

    /// Lets the engine read, when it has nothing else to do, what the next question of a chat will come after.
    fn prefetch(&self, view: &ChatView) {
        // A folder may have files, with which the first question begins.
        let nothing = view.messages.is_empty() && attachments(&view.draft).is_empty() && view.summary.folder.is_none();
        if nothing || view.messages.iter().any(|message| message.state == AnswerState::Streaming) {
            return;
        }
        let (chat, view) = (self.clone(), view.clone());
        tokio::spawn(async move {
            if let Err(error) = chat.read_ahead(view).await {
                tracing::debug!(%error, "a chat could not be read ahead");
            }
        });
    }

    async fn read_ahead(&self, view: ChatView) -> Result<()> {
        let (_, ask) = self.answer_request(&view.summary.id, view.settings).await?;
        let (history, engine) = (&self.0.history, self.0.engine.as_ref());
        let shown = attachments(&view.draft);
        let nothing = view.messages.is_empty() && shown.is_empty() && ask.files.is_empty();
        if nothing || !prefetches(engine, &ask.model) {
            return Ok(());
        }
        let messages = match (view.messages.first(), view.messages.last()) {
            (Some(first), Some(last)) if first.parent.is_some() => history.branch(&last.id).await?,
            _ => view.messages,
        };
        let sees = engine.capabilities(&ask.model).images;
        let mut request = request_ahead(history, &ask, &messages, sees).await;
        if sees {
            // What the next question will show can be looked at while it is typed.
            add_images(history, &mut request, shown.into_iter().collect()).await;
        }
        prefetch(engine, request);
        Ok(())
    }
}
