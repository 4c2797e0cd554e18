//! A passage in its file, as it is opened from a citation.

use std::path::{Path, PathBuf};

use api::PassageText;
use protocol::{QuotedPassage, OWN_CHATS};

use super::update::{blocking, text_of};
use super::Knowledge;
use crate::folder::{read, FoundFile, Source, Stamp};
use crate::{Error, Result};

/// Bytes of a text that are shown before and after a passage at most.
const AROUND: usize = 200_000;

impl Knowledge {
    /// The file of a passage with the passage in it, as the file is now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if its collection or its file is gone, or is not read any more; [`Error::Unreadable`] with the
    /// reason if the file cannot be read.
    pub async fn open_passage(&self, quoted: &QuotedPassage) -> Result<PassageText> {
        let collection = self.collection(&quoted.collection).await?;
        let files = self.index().await?.files(&collection.id).await?;
        let path = files
            .into_iter()
            .map(|file| file.path)
            .find(|path| path.to_string_lossy() == quoted.file);
        let path = path.ok_or(Error::NotFound("file"))?;
        let shown = place(&collection.source, &path).to_string_lossy().into_owned();
        if collection.id == OWN_CHATS {
            let text = self.chats()?.text(quoted.file.clone()).await;
            let text = text.map_err(|error| Error::Unreadable(error.message))?;
            return Ok(in_text(quoted, &text, String::new()));
        }
        let (source, most, name) = (collection.source, collection.rules.most_bytes, name(&path));
        let text = blocking(move || {
            let found = FoundFile {
                path,
                stamp: Stamp { size: 0, modified: 0 },
            };
            let reading = read(&source, &found, most).map_err(|reason| reason.word().to_owned())?;
            text_of(reading.bytes, &name)
                .map(|text| text.text)
                .map_err(|error| error.message)
        });
        let text = text.await?.map_err(Error::Unreadable)?;
        Ok(in_text(quoted, &text, shown))
    }
}

/// The passage in the text of its file: where it was, or else the nearest place that says the same.
fn in_text(quoted: &QuotedPassage, text: &str, path: String) -> PassageText {
    let line = line_start(text, quoted.first_line);
    let all = text.match_indices(&quoted.text).map(|(at, _)| at);
    let place = all.min_by_key(|at| at.abs_diff(line));
    let Some(start) = place else {
        return PassageText {
            path,
            before: String::new(),
            passage: quoted.text.clone(),
            after: String::new(),
            page: quoted.page,
            first_line: quoted.first_line,
            is_changed: true,
        };
    };
    let end = start + quoted.text.len();
    let first = text.ceil_char_boundary(start.saturating_sub(AROUND));
    let last = text.floor_char_boundary(text.len().min(end + AROUND));
    let line = text[..start].bytes().filter(|byte| *byte == b'\n').count() + 1;
    PassageText {
        path,
        before: text[first..start].to_owned(),
        passage: quoted.text.clone(),
        after: text[end..last].to_owned(),
        page: quoted.page,
        first_line: u32::try_from(line).unwrap_or(u32::MAX),
        is_changed: false,
    }
}

/// The place of a line, from 1, in bytes.
fn line_start(text: &str, line: u32) -> usize {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    match line {
        0 | 1 => 0,
        line => ends.into_iter().nth(line as usize - 2).unwrap_or(text.len()),
    }
}

fn place(source: &Source, path: &Path) -> PathBuf {
    match source {
        Source::Folder(folder) => folder.join(path),
        Source::Files(_) => path.to_owned(),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str, first_line: u32) -> QuotedPassage {
        QuotedPassage {
            number: 1,
            collection: "c".into(),
            file: "a.txt".into(),
            file_hash: String::new(),
            headings: String::new(),
            page: None,
            first_line,
            last_line: first_line,
            text: text.into(),
        }
    }

    #[test]
    fn of_several_places_the_one_near_its_line_is_shown() {
        let text = "same\nother\nsame\nend";
        let shown = in_text(&quoted("same", 3), text, "a.txt".into());
        assert_eq!(
            (shown.before.as_str(), shown.after.as_str(), shown.first_line),
            ("same\nother\n", "\nend", 3)
        );
        let moved = in_text(&quoted("same", 9), text, "a.txt".into());
        assert_eq!((moved.first_line, moved.is_changed), (3, false));
    }

    #[test]
    fn a_passage_that_the_file_has_no_more_is_shown_alone() {
        let shown = in_text(&quoted("gone", 1), "new text", "a.txt".into());
        assert!(shown.is_changed && shown.before.is_empty() && shown.passage == "gone");
    }
}
