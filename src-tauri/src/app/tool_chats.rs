//! The chats as tools read them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::{FileText, HistoryHits, HistoryQuery};
use chat::{Chat, ChatDocuments};
use futures::future::BoxFuture;
use futures::FutureExt;
use knowledge::Knowledge;
use protocol::{
    Content, Error, ErrorCode, ModelSource, PassageRequest, PassageSource, QuotedPassage, ReadingCost, ReadingRequest,
    Result, TellProgress, OWN_CHATS,
};
use tools::builtin::{AttachedFile, ChatSource};

use crate::app::temporary::TemporaryChat;

/// The stored chats, which are searched, and the temporary one, whose files its own calls read.
pub struct ToolChats {
    /// The stored chats.
    pub stored: Chat,
    /// The temporary one.
    pub temporary: Arc<TemporaryChat>,
    /// The documents of both.
    pub knowledge: Knowledge,
    /// The largest number of a passage that the calls of a chat were given: those of one turn run before any is stored.
    pub numbers: Mutex<HashMap<String, u32>>,
}

impl ToolChats {
    async fn holding(&self, chat: &str) -> Chat {
        let temporary = self.temporary.holding(chat).await;
        temporary.unwrap_or_else(|| self.stored.clone())
    }
}

impl ToolChats {
    /// A request for passages of a chat's documents, and its model.
    async fn request(&self, chat: &str, question: String) -> Result<(PassageRequest, ModelSource)> {
        self.request_of(self.holding(chat).await.chats().documents(chat).await?, chat, question)
    }

    fn request_of(
        &self,
        documents: ChatDocuments,
        chat: &str,
        question: String,
    ) -> Result<(PassageRequest, ModelSource)> {
        if documents.collections.is_empty() {
            return Err(Error::new(ErrorCode::NotFound, "this chat has no documents"));
        }
        let last = documents.given.iter().map(|passage| passage.number).max();
        let request = PassageRequest {
            first_number: last.unwrap_or(0).max(self.last_number(chat)) + 1,
            collections: documents.collections,
            chat: Some(chat.to_owned()),
            question,
            most_tokens: documents.most_tokens,
            given: documents.given,
        };
        Ok((request, documents.model))
    }

    fn last_number(&self, chat: &str) -> u32 {
        let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.get(chat).copied().unwrap_or(0)
    }

    fn note_numbers(&self, chat: &str, passages: &[QuotedPassage]) {
        let Some(last) = passages.iter().map(|passage| passage.number).max() else {
            return;
        };
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = numbers.entry(chat.to_owned()).or_default();
        *known = last.max(*known);
    }

    fn noted(&self, chat: &str, found: Content) -> Content {
        if let Content::Passages { passages, .. } = &found {
            self.note_numbers(chat, passages);
        }
        found
    }
}

impl ChatSource for ToolChats {
    fn search(&self, query: HistoryQuery) -> BoxFuture<'_, Result<HistoryHits>> {
        async move { self.stored.library().search(&query).await }.boxed()
    }

    fn chat_passages(&self, chat: String, query: String) -> BoxFuture<'_, Result<Option<Content>>> {
        async move {
            let collections = self.knowledge.collections().await?;
            if collections.iter().all(|collection| collection.id != OWN_CHATS) {
                return Ok(None);
            }
            let documents = self.holding(&chat).await.chats().documents(&chat).await?;
            let documents = ChatDocuments {
                collections: vec![OWN_CHATS.to_owned()],
                ..documents
            };
            let (request, _) = self.request_of(documents, &chat, query)?;
            let found = self.noted(&chat, self.knowledge.find(&request).await?);
            let is_empty = matches!(&found, Content::Passages { passages, .. } if passages.is_empty());
            Ok((!is_empty).then_some(found))
        }
        .boxed()
    }

    fn keep_note(&self, chat: String, text: String) -> BoxFuture<'_, Result<()>> {
        async move { self.stored.notes().add_suggested(&chat, &text).await.map(drop) }.boxed()
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

    fn passages(&self, chat: String, query: String) -> BoxFuture<'_, Result<Content>> {
        async move {
            let (request, _) = self.request(&chat, query).await?;
            Ok(self.noted(&chat, self.knowledge.find(&request).await?))
        }
        .boxed()
    }

    fn passages_around(&self, chat: String, number: u32) -> BoxFuture<'_, Result<Content>> {
        async move {
            let (request, _) = self.request(&chat, String::new()).await?;
            let of = request.given.iter().find(|passage| passage.number == number);
            let of = of.ok_or_else(|| Error::new(ErrorCode::NotFound, format!("this chat has no passage {number}")))?;
            Ok(self.noted(&chat, self.knowledge.around(of, &request).await?))
        }
        .boxed()
    }

    fn reading_cost(&self, chat: String) -> BoxFuture<'_, Result<ReadingCost>> {
        async move { self.holding(&chat).await.chats().reading_cost(&chat).await }.boxed()
    }

    fn read_all(&self, chat: String, question: String, tell: TellProgress) -> BoxFuture<'_, Result<Vec<Content>>> {
        async move {
            let (request, model) = self.request(&chat, question).await?;
            let reading = ReadingRequest {
                collections: request.collections,
                question: request.question,
                model,
                most_tokens: request.most_tokens,
                first_number: request.first_number,
            };
            let read = self.knowledge.read_all(reading, tell).await?;
            self.note_numbers(&chat, &read.passages);
            let notes = match read.notes.is_empty() {
                true => "All documents were read, and none says anything about this question.".to_owned(),
                false => format!(
                    "Notes from all documents, which were read in {} parts:\n{}",
                    read.parts, read.notes
                ),
            };
            Ok(vec![
                Content::text(notes),
                Content::Passages {
                    passages: read.passages,
                    coverage: read.coverage,
                },
            ])
        }
        .boxed()
    }
}
