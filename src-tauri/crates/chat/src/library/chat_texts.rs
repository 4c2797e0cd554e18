//! The stored chats as documents.

use api::ChatSummary;
use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{ChatText, ChatTexts, Result};
use tokio::sync::watch;

use crate::library::Library;

impl ChatTexts for Library {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ChatText>>> {
        async move {
            let text = |chat: ChatSummary| ChatText {
                id: chat.id,
                revision: chat.revision.unsigned_abs(),
                updated_at: chat.updated_at,
            };
            Ok(self.core.history.chats().await?.into_iter().map(text).collect())
        }
        .boxed()
    }

    fn text(&self, chat: String) -> BoxFuture<'_, Result<String>> {
        async move { Ok(self.core.history.chat_as_document(&chat).await?) }.boxed()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.core.changes.subscribe()
    }
}
