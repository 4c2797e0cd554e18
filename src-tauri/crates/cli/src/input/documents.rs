use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use protocol::{Content, Error, ErrorCode, Excerpt, ExcerptUnit, Message, Role};

/// `--file` and `--part`: documents whose text is quoted before the question.
#[derive(Args, Clone)]
pub struct DocumentArgs {
    /// A document whose text goes before the question: text, code, Markdown, CSV, HTML, PDF or DOCX; may be given
    /// several times
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only these pages of the document, or lines if it has no pages
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
        _ => Err("write it as 3-10, from the first to the last page or line".into()),
    }
}

impl DocumentArgs {
    /// Reads the documents and puts their text before the words of the last question; without one they are the
    /// question.
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
                words
                    .into_iter()
                    .for_each(|part| Content::push(&mut last.content, part));
            }
            None => messages.push(Message::text(Role::User, quoted)),
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<String> {
        let mut bytes = Vec::new();
        // One byte more than any document may have: a device that never ends is refused like a file that is too long.
        File::open(path)
            .and_then(|file| file.take(documents::MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
            .context("it cannot be read")?;
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
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

    /// An error of the answer, with advice if a document is too long.
    pub fn explain(&self, error: Error) -> Error {
        match error.code {
            ErrorCode::ContextFull if !self.files.is_empty() => Error {
                message: format!(
                    "{}; --part takes some pages or lines of a document",
                    error.message.trim_end_matches('.')
                ),
                ..error
            },
            _ => error,
        }
    }
}

fn no_such_part(whole: Excerpt) -> Error {
    let what = match whole.unit {
        ExcerptUnit::Pages => "pages",
        ExcerptUnit::Lines => "lines",
    };
    Error::new(
        ErrorCode::BadRequest,
        format!("it has {} {what}; choose a part of those", whole.of),
    )
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
