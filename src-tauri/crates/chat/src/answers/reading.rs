//! A question for which all documents are read first: notes on every part, made in the background, go with it.

use api::{Position, Turn};
use protocol::{Content, Error as Failure, ErrorCode, ReadDocuments, Result, TellProgress};
use tokio::sync::watch;

use crate::answers::{question, Answers};
use crate::error::Error;
use crate::files::texts::text_file;
use crate::request::build::RequestTemplate;
use crate::request::fit::check_vision;
use crate::request::passages::words;
use crate::request::reading::{documents, reading_request};

impl Answers {
    /// Reads all documents of a chat for a question, then asks it with the notes as a file of this name and the
    /// passages that they cite. `tell` hears of each part. Nothing is stored if this fails.
    ///
    /// # Errors
    /// As [`Answers::send`]; `NotFound` if the chat has no documents, `Busy` while they are read for another question,
    /// `Stopped` after [`Answers::stop_reading`], and errors of the model that reads.
    pub async fn send_after_reading(
        &self,
        chat: &str,
        content: &[Content],
        position: &Position,
        notes_name: &str,
        tell: TellProgress,
    ) -> Result<Turn> {
        question::check(content)?;
        let question = words(content);
        if question.trim().is_empty() {
            return Err(Error::EmptyQuestion.into());
        }
        let (view, head) = self.core.history.chat_head(chat).await?;
        if self.running().iter().any(|running| running.chat == chat) {
            return Err(history::Error::Busy.into());
        }
        let template = RequestTemplate::of_chat(&self.core, chat, view.settings).await?;
        let source = documents(&self.core, &template)?;
        check_vision(&self.core, &template, content).await?;
        let branch = self.branch_at(head.as_deref(), position).await?;
        let request = reading_request(&self.core, &template, &branch, question).await;
        let mut reading = self.begin_reading(chat)?;
        let mut closing = self.core.closing.subscribe();
        let read = tokio::select! {
            read = source.read_all(request, tell) => read?,
            () = reading.stopped() => return Err(stopped()),
            _ = closing.wait_for(|closing| *closing) => return Err(stopped()),
        };
        drop(reading);
        let content = self.with_notes(content, notes_name, read).await?;
        self.ask(chat, &content, position).await
    }

    /// Ends the reading of a chat's documents soon. Changes nothing if none are being read.
    pub fn stop_reading(&self, chat: &str) {
        if let Some(stop) = self.core.readings().get(chat) {
            stop.send_replace(true);
        }
    }

    /// The question with passages and notes before it.
    async fn with_notes(&self, content: &[Content], name: &str, read: ReadDocuments) -> Result<Vec<Content>> {
        let notes = match read.notes.is_empty() {
            true => "All documents were read, and none says anything about this question.".to_owned(),
            false => read.notes,
        };
        let notes = text_file(&self.core.history, notes, name).await?;
        let passages = Content::Passages {
            passages: read.passages,
            coverage: read.coverage,
        };
        Ok([passages, notes].into_iter().chain(content.iter().cloned()).collect())
    }

    fn begin_reading(&self, chat: &str) -> Result<Reading<'_>> {
        let mut readings = self.core.readings();
        if readings.contains_key(chat) {
            return Err(history::Error::Busy.into());
        }
        let (stop, stopped) = watch::channel(false);
        readings.insert(chat.to_owned(), stop);
        Ok(Reading {
            answers: self,
            chat: chat.to_owned(),
            stopped,
        })
    }
}

fn stopped() -> Failure {
    Failure::new(
        ErrorCode::Stopped,
        "reading the documents was stopped; the question was not asked",
    )
}

/// Documents that are being read for a question; dropping it takes it off the list.
struct Reading<'a> {
    answers: &'a Answers,
    chat: String,
    stopped: watch::Receiver<bool>,
}

impl Reading<'_> {
    /// Waits until somebody stops it.
    async fn stopped(&mut self) {
        // The sender is on the list until this is dropped.
        let _ = self.stopped.wait_for(|stop| *stop).await;
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.answers.core.readings().remove(&self.chat);
    }
}
