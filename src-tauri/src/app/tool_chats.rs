//! The chats as tools read them.

use std::sync::Arc;

use api::{FileText, HistoryHits, HistoryQuery};
use chat::Chat;
use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{Content, Result};
use tools::builtin::{AttachedFile, ChatSource};

use crate::app::temporary::TemporaryChat;

/// The stored chats, which are searched, and the temporary one, whose files its own calls read.
pub struct ToolChats {
    /// The stored chats.
    pub stored: Chat,
    /// The temporary one.
    pub temporary: Arc<TemporaryChat>,
}

impl ToolChats {
    async fn holding(&self, chat: &str) -> Chat {
        let temporary = self.temporary.holding(chat).await;
        temporary.unwrap_or_else(|| self.stored.clone())
    }
}

impl ChatSource for ToolChats {
    fn search(&self, query: HistoryQuery) -> BoxFuture<'_, Result<HistoryHits>> {
        async move { self.stored.library().search(&query).await }.boxed()
    }

    fn files(&self, chat: String) -> BoxFuture<'_, Result<Vec<AttachedFile>>> {
        async move {
            let files = self.holding(&chat).await.files().of_chat(&chat).await?;
            let attached = files.into_iter().filter_map(|file| match file {
                Content::File { name, attachment, .. } => Some(AttachedFile { name, attachment }),
                _ => None,
            });
            Ok(attached.collect())
        }
        .boxed()
    }

    fn text(&self, chat: String, attachment: String) -> BoxFuture<'_, Result<FileText>> {
        async move { self.holding(&chat).await.files().file_text(&attachment).await }.boxed()
    }
}
