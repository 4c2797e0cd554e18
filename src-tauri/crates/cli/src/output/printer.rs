use std::io;

use protocol::{Content, EngineEvent};

use super::terminal::Stream;

/// Prints an answer for people: the thought softer and apart, remarks on standard error.
#[derive(Default)]
pub struct Printer {
    answer: Stream,
    thoughts: Stream,
    /// The kind of the last text, without its words: another kind stands apart from it.
    last: Option<Content>,
}

impl Printer {
    /// A printer of the answer and its thoughts on these streams.
    pub fn new(answer: Stream, thoughts: Stream) -> Self {
        Self {
            answer,
            thoughts,
            last: None,
        }
    }

    /// Prints one event.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn print(&mut self, event: &EngineEvent) -> io::Result<()> {
        match event {
            EngineEvent::Delta { content, .. } => self.part(content)?,
            EngineEvent::Notice(notice) => self.remark(&notice.message)?,
            EngineEvent::Done(_) => self.end()?,
            EngineEvent::Continued { parts, notices, .. } => {
                parts.iter().try_for_each(|content| self.part(content))?;
                notices.iter().try_for_each(|notice| self.remark(&notice.message))?;
            }
            EngineEvent::Progress { .. }
            | EngineEvent::Waiting { .. }
            | EngineEvent::Started { .. }
            | EngineEvent::Logprobs(_)
            | EngineEvent::ThinkingEnded
            | EngineEvent::Failed(_) => {}
        }
        Ok(())
    }

    /// Prints a piece of an answer.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn part(&mut self, content: &Content) -> io::Result<()> {
        if let Some(text) = content.growing_text() {
            let kind = content.with_text("");
            // The empty line goes to the stream before it, so that an answer alone begins with a word.
            if let Some(last) = self.last.as_ref().filter(|last| **last != kind) {
                self.stream(last).write("\n\n")?;
            }
            let stream = self.stream(&kind);
            if matches!(kind, Content::Thinking { .. }) {
                stream.write(&stream.soft(text))?;
            } else {
                stream.write(text)?;
            }
            self.last = Some(kind);
        } else if let Content::ToolCall { call } = content {
            self.answer.write(&format!("{}({})\n", call.name, call.arguments))?;
        } else if let Some(text) = content.as_text() {
            self.answer.write(&format!("{text}\n"))?;
        }
        Ok(())
    }

    /// Prints a remark beside the answer.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.end()?;
        eprintln!("({text})");
        Ok(())
    }

    /// Ends the answer with a line end.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn end(&mut self) -> io::Result<()> {
        match self.last.take() {
            Some(last) => self.stream(&last).write("\n"),
            None => Ok(()),
        }
    }

    fn stream(&self, kind: &Content) -> &Stream {
        if matches!(kind, Content::Thinking { .. }) {
            &self.thoughts
        } else {
            &self.answer
        }
    }
}
