//! The chats as tools of the command line read them: opened for a search and closed again.

use api::{FileText, HistoryHits, HistoryQuery};
use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{Error, ErrorCode, Result};
use tools::builtin::{AttachedFile, ChatSource};

use crate::app::App;

/// The stored chats. A run of the command line is in none of them, so that it has no files.
pub struct StoredChats;

impl ChatSource for StoredChats {
    fn search(&self, query: HistoryQuery) -> BoxFuture<'_, Result<HistoryHits>> {
        async move {
            let app = App::open()
                .await
                .map_err(|error| Error::new(ErrorCode::Storage, crate::output::sentence(&error)))?;
            let found = app.chat.library().search(&query).await;
            app.chat.shut_down().await;
            found
        }
        .boxed()
    }

    fn files(&self, _chat: String) -> BoxFuture<'_, Result<Vec<AttachedFile>>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn text(&self, _chat: String, attachment: String) -> BoxFuture<'_, Result<FileText>> {
        async move {
            Err(Error::new(
                ErrorCode::NotFound,
                format!("there is no file {attachment} here"),
            ))
        }
        .boxed()
    }
}
