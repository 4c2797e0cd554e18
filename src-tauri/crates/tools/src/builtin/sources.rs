//! The rooms that built-in tools read from, as hosts hand them over.

use std::sync::Arc;
use std::time::Duration;

use api::{FileText, HistoryHits, HistoryQuery};
use futures::future::BoxFuture;
use futures::FutureExt;
use net::Net;
use protocol::{Content, Error, ErrorCode, ReadingCost, Result, TellProgress};

/// The person's chats.
pub trait ChatSource: Send + Sync {
    /// Finds words in the stored chats: in no temporary one, and in none in the trash.
    fn search(&self, query: HistoryQuery) -> BoxFuture<'_, Result<HistoryHits>>;

    /// Passages of the person's other chats that answer a query best, as [`Content::Passages`]; `None` if they are not
    /// read as documents, or none was found.
    fn chat_passages(&self, _chat: String, _query: String) -> BoxFuture<'_, Result<Option<Content>>> {
        async { Ok(None) }.boxed()
    }

    /// Keeps a note about the person, which they confirmed.
    fn keep_note(&self, _chat: String, _text: String) -> BoxFuture<'_, Result<()>> {
        async { Err(Error::new(ErrorCode::NotFound, "notes are not used here")) }.boxed()
    }

    /// The files of a chat and of its project, the latest last.
    fn files(&self, chat: String) -> BoxFuture<'_, Result<Vec<AttachedFile>>>;

    /// The text of one of these files.
    fn text(&self, chat: String, attachment: String) -> BoxFuture<'_, Result<FileText>>;

    /// The passages of the documents of a chat that answer a query best, as [`Content::Passages`].
    fn passages(&self, _chat: String, _query: String) -> BoxFuture<'_, Result<Content>> {
        no_documents()
    }

    /// The passages before and after one that the chat was given, by its number.
    fn passages_around(&self, _chat: String, _number: u32) -> BoxFuture<'_, Result<Content>> {
        no_documents()
    }

    /// The cost of [`ChatSource::read_all`] in a chat, told to the person before it runs.
    fn reading_cost(&self, _chat: String) -> BoxFuture<'_, Result<ReadingCost>> {
        no_documents()
    }

    /// Notes of everything that all documents of a chat say about a question, made part by part by the chat's model,
    /// and the passages that they cite. `tell` hears of each part.
    fn read_all(&self, _chat: String, _question: String, _tell: TellProgress) -> BoxFuture<'_, Result<Vec<Content>>> {
        no_documents()
    }
}

fn no_documents<T: Send + 'static>() -> BoxFuture<'static, Result<T>> {
    async { Err(Error::new(ErrorCode::NotFound, "this chat has no documents")) }.boxed()
}

/// A file of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// Its name.
    pub name: String,
    /// The id of its text.
    pub attachment: String,
}

/// Everything that built-in tools read from.
#[derive(Clone)]
pub struct Sources {
    /// The network.
    pub net: Net,
    /// The chats.
    pub chats: Arc<dyn ChatSource>,
    /// How long a page may take in all; a search has half of it.
    pub time: Duration,
}

impl Sources {
    /// With as much time as a slow page takes.
    pub fn new(net: Net, chats: Arc<dyn ChatSource>) -> Self {
        Self {
            net,
            chats,
            time: Duration::from_secs(60),
        }
    }
}

/// For a host without chats: nothing is found in it.
#[derive(Debug, Clone, Copy)]
pub struct NoChats;

impl ChatSource for NoChats {
    fn search(&self, _query: HistoryQuery) -> BoxFuture<'_, Result<HistoryHits>> {
        async { Ok(HistoryHits::default()) }.boxed()
    }

    fn files(&self, _chat: String) -> BoxFuture<'_, Result<Vec<AttachedFile>>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn text(&self, _chat: String, _attachment: String) -> BoxFuture<'_, Result<FileText>> {
        async { Err(Error::new(ErrorCode::NotFound, "there are no files here")) }.boxed()
    }
}
