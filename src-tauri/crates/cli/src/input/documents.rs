use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use protocol::{Content, Error, ErrorCode, Excerpt, ExcerptUnit, Message, Role};

use super::images::STDIN;
use crate::output::plural;

/// `--file` and `--part`: documents whose text is quoted before the message.
#[derive(Args, Clone)]
pub struct DocumentArgs {
    /// Attach a document, or - for standard input (repeatable)
    #[arg(long = "file", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Use only these pages of the document, or lines without pages
    #[arg(long, value_name = "FIRST-LAST", value_parser = part, requires = "files")]
    part: Option<(u32, u32)>,
}

/// `3-10`, `3-` or `3`.
fn part(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
    let (first, last) = match text.split_once('-') {
        Some((first, "")) => (number(first), Some(u32::MAX)),
        Some((first, last)) => (number(first), number(last)),
        None => (number(text), number(text)),
    };
    match (first, last) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("write it as 3-10, the first and the last page or line".into()),
    }
}

impl DocumentArgs {
    /// True if a document is read from standard input.
    pub fn read_stdin(&self) -> bool {
        self.files.iter().any(|path| path.as_os_str() == STDIN)
    }

    /// Reads the documents and puts their text before the text of the last message; without one they are the
    /// message.
    ///
    /// # Errors
    /// When a file cannot be read, or has no such part.
    pub fn put_into(&self, messages: &mut Vec<Message>) -> Result<()> {
        let mut quoted = String::new();
        for path in &self.files {
            quoted += &self.read(path).with_context(|| path.display().to_string())?;
        }
        if quoted.is_empty() {
            return Ok(());
        }
        match messages.last_mut().filter(|last| last.role == Role::User) {
            Some(last) => {
                let words = std::mem::replace(&mut last.content, vec![Content::text(quoted)]);
                for part in words {
                    Content::push(&mut last.content, part);
                }
            }
            None => messages.push(Message::text(Role::User, quoted)),
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<String> {
        let (bytes, name) = read_document(path)?;
        let document = documents::read(bytes, &name).map_err(Error::from)?;
        let whole = documents::whole(&document.text);
        let excerpt = match self.part {
            None => whole,
            Some((first, _)) if first > whole.of => return Err(no_such_part(whole).into()),
            Some((first, last)) => Excerpt {
                first,
                last: last.min(whole.of),
                ..whole
            },
        };
        Ok(documents::quoted(&name, &document.text, Some(excerpt)))
    }

    /// An error of the response, with advice if a document is too long.
    pub fn explain(&self, error: Error) -> Error {
        match error.code {
            ErrorCode::ContextFull if !self.files.is_empty() => {
                let reason = error.message.trim_end_matches('.');
                let message = format!("{reason}. Use --part to send only some pages or lines of a document");
                Error { message, ..error }
            }
            _ => error,
        }
    }
}

/// The bytes and the name of a document; the path `-` is standard input.
///
/// # Errors
/// When it cannot be read.
pub fn read_document(path: &Path) -> Result<(Vec<u8>, String)> {
    let mut bytes = Vec::new();
    // One byte more than any document may have: a device that never ends is refused like a file that is too long.
    let most = documents::MAX_BYTES as u64 + 1;
    let is_stdin = path.as_os_str() == STDIN;
    let read = match is_stdin {
        true => std::io::stdin().take(most).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.context("cannot be read")?;
    let name = match path.file_name() {
        Some(name) if !is_stdin => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    };
    Ok((bytes, name))
}

fn no_such_part(whole: Excerpt) -> Error {
    let what = match whole.unit {
        ExcerptUnit::Pages => "page",
        ExcerptUnit::Lines => "line",
    };
    let parts = plural(whole.of.into(), what);
    let message = format!("it has only {parts}, and --part begins after the last");
    Error::new(ErrorCode::BadRequest, message)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_are_written_as_people_write_them() {
        assert_eq!(part("3-10"), Ok((3, 10)));
        assert_eq!(part(" 3 - 10 "), Ok((3, 10)));
        assert_eq!(part("3-"), Ok((3, u32::MAX)));
        assert_eq!(part("3"), Ok((3, 3)));
        for wrong in ["", "-", "0", "-3", "5-3", "a-b", "1-2-3", "99999999999"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
