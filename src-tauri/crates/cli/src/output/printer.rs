use std::io;

use protocol::{Content, EngineEvent};

use super::terminal;

/// Prints an answer for people: the thought softer and apart, remarks on standard error.
#[derive(Default)]
pub struct Printer {
    /// The kind of the last text, without its words: another kind stands apart from it.
    last: Option<Content>,
}

impl Printer {
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
            if self.last.as_ref().is_some_and(|last| *last != kind) {
                terminal::text("\n\n")?;
            }
            let is_thinking = matches!(kind, Content::Thinking { .. });
            self.last = Some(kind);
            terminal::text(&if is_thinking {
                terminal::soft(text)
            } else {
                text.to_owned()
            })?;
        } else if let Content::ToolCall { call } = content {
            terminal::text(&format!("{}({})\n", call.name, call.arguments))?;
        } else if let Some(text) = content.as_text() {
            terminal::text(&format!("{text}\n"))?;
        }
        Ok(())
    }

    /// Prints a remark beside the answer.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        if self.last.take().is_some() {
            terminal::text("\n")?;
        }
        eprintln!("({text})");
        Ok(())
    }

    /// Ends the answer with a line end.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn end(&mut self) -> io::Result<()> {
        if self.last.take().is_some() {
            terminal::text("\n")?;
        }
        Ok(())
    }
}
