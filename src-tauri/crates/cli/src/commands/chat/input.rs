use std::io::{IsTerminal, Lines, StdinLock};

use anyhow::{bail, Context, Result};
use rustyline::error::ReadlineError;
use rustyline::DefaultEditor;

/// The text of `/help`.
pub(super) const COMMANDS: &str = "\
/model MODEL  switch to another model
/file FILE    attach a document to your next message
/image FILE   attach an image to your next message
/retry        regenerate the last response
/continue     continue a response that was stopped or cut off
/help         show this list
/quit         quit, like Ctrl+D (Ctrl+C stops a response or clears the line)
";

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Message(String),
    Help,
    /// Responds with the model of this name from now on.
    Model(String),
    /// Sends this document with the next message.
    File(String),
    /// Sends this image with the next message.
    Image(String),
    /// Responds to the last message again.
    Retry,
    /// Continues the last response.
    Continue,
}

/// Messages from a person at a terminal, or one per line from a pipe.
pub(super) enum Input {
    Person(Box<DefaultEditor>),
    Pipe(Lines<StdinLock<'static>>),
}

impl Input {
    pub(super) fn new() -> Result<Self> {
        if std::io::stdin().is_terminal() {
            let editor = DefaultEditor::new().context("the terminal cannot be read")?;
            Ok(Self::Person(Box::new(editor)))
        } else {
            Ok(Self::Pipe(std::io::stdin().lines()))
        }
    }

    pub(super) fn is_person(&self) -> bool {
        matches!(self, Self::Person(_))
    }

    /// The next message or command; `None` at the end.
    ///
    /// # Errors
    /// When the input cannot be read, or a pipe holds an unknown command.
    pub(super) fn next_line(&mut self) -> Result<Option<Line>> {
        loop {
            let line = match self {
                Self::Person(editor) => match editor.readline("> ") {
                    Ok(line) => {
                        let added = editor.add_history_entry(&line);
                        added.context("the line could not be remembered")?;
                        line
                    }
                    // The line is cleared; Ctrl+D and /quit end.
                    Err(ReadlineError::Interrupted) => continue,
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(error).context("the terminal cannot be read"),
                },
                Self::Pipe(lines) => match lines.next().transpose().context("standard input is not text")? {
                    Some(line) => line,
                    None => return Ok(None),
                },
            };
            match line.trim() {
                "" => {}
                "/quit" | "/exit" => return Ok(None),
                line => match parse(line) {
                    Err(error) if self.is_person() => eprintln!("ponder: {error}"),
                    line => return line.map(Some),
                },
            }
        }
    }
}

/// A command is a slash and a word; a path or `//` at the beginning makes a line a message.
fn parse(line: &str) -> Result<Line> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let Some(name) = word
        .strip_prefix('/')
        .filter(|name| name.chars().all(|c| c.is_ascii_alphabetic()))
    else {
        return Ok(Line::Message(line.to_owned()));
    };
    let rest = rest.trim().to_owned();
    let with = |line: fn(String) -> Line, what: &str| {
        anyhow::ensure!(!rest.is_empty(), "/{name} needs {what}");
        Ok(line(rest.clone()))
    };
    match name {
        "help" => Ok(Line::Help),
        "model" => with(Line::Model, "a model. Run 'ponder models' for a list"),
        "file" => with(Line::File, "a file path"),
        "image" => with(Line::Image, "a file path"),
        "retry" => Ok(Line::Retry),
        "continue" => Ok(Line::Continue),
        _ => bail!("unknown command /{name}. Type /help for a list"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_a_word_is_a_command_and_nothing_else_is() {
        let message = |text: &str| Line::Message(text.to_owned());
        for (line, expected) in [
            ("/help", Line::Help),
            ("/retry", Line::Retry),
            ("/model  org/name ", Line::Model("org/name".into())),
            ("/file my report.pdf", Line::File("my report.pdf".into())),
            ("/etc/hosts is what?", message("/etc/hosts is what?")),
            ("// is a comment", message("// is a comment")),
            ("1/2", message("1/2")),
        ] {
            assert_eq!(parse(line).expect("it is understood"), expected);
        }
        for line in ["/image", "/model ", "/hepl", "/"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
