//! A passage in its file, as it is opened from a citation: the text of the file, and its pages, or the image that it is.

use std::path::{Path, PathBuf};

use api::{PageMark, PassagePage, PassageText};
use documents::PageRequest;
use protocol::{ImageBytes, QuotedPassage, OWN_CHATS};

use super::update::{blocking, text_of};
use super::Knowledge;
use crate::folder::{read, FoundFile, Reading, Source, Stamp};
use crate::reading::{is_image, text_in};
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
        if quoted.collection == OWN_CHATS {
            self.collection(OWN_CHATS).await?;
            let text = self.chats()?.text(quoted.file.clone()).await;
            let text = text.map_err(|error| Error::Unreadable(error.message))?;
            return Ok(in_text(quoted, &text, String::new()));
        }
        let file = self.file_of(quoted).await?;
        let shown = file.place.to_string_lossy().into_owned();
        let described = self.index().await?.described(&quoted.collection, &file.path).await?;
        let text = blocking(move || {
            let Reading { bytes, hash, .. } = file.read()?;
            let text = text_in(bytes, &name(&file.path), &text_of).map_err(|error| error.message)?;
            Ok::<_, String>(match text {
                Some(text) => (text.text, false),
                // The text of another state of the image is none of this one.
                None => match described.filter(|described| described.hash == hash) {
                    Some(described) => (described.text, true),
                    None => (String::new(), true),
                },
            })
        });
        let (text, is_image) = text.await?.map_err(Error::Unreadable)?;
        Ok(PassageText {
            is_image,
            ..in_text(quoted, &text, shown)
        })
    }

    /// A page of the file of a passage as an image, with the lines of the passage if they are on it. The page of the
    /// passage is one of several that may be asked for; an image is its own first page. `width` is in pixels.
    ///
    /// # Errors
    /// As [`Knowledge::open_passage`], and [`Error::Unreadable`] for a file that has no pages or not this one.
    pub async fn page_image(&self, quoted: &QuotedPassage, page: u32, width: u32) -> Result<PassagePage> {
        let file = self.file_of(quoted).await?;
        let passage = quoted.text.clone();
        let drawn = blocking(move || {
            let bytes = file.read()?.bytes;
            match is_image(&bytes) && page == 1 {
                true => drawn_image(&bytes, width).map_err(|error| error.to_string()),
                false => {
                    let wanted = PageRequest { page, width, passage };
                    drawn_page(bytes, wanted).map_err(|error| error.to_string())
                }
            }
        });
        drawn.await?.map_err(Error::Unreadable)
    }

    /// The file of a passage, if its collection still reads it.
    async fn file_of(&self, quoted: &QuotedPassage) -> Result<FileOfPassage> {
        let collection = self.collection(&quoted.collection).await?;
        let files = self.index().await?.files(&collection.id).await?;
        let path = files
            .into_iter()
            .map(|file| file.path)
            .find(|path| path.to_string_lossy() == quoted.file);
        let path = path.ok_or(Error::NotFound("file"))?;
        Ok(FileOfPassage {
            place: place(&collection.source, &path),
            source: collection.source,
            most_bytes: collection.rules.most_bytes,
            path,
        })
    }
}

/// The file of a passage.
struct FileOfPassage {
    source: Source,
    /// Its path in the source.
    path: PathBuf,
    /// Its path on this computer.
    place: PathBuf,
    most_bytes: u64,
}

impl FileOfPassage {
    /// Its content as it is now, or why it cannot be read, in a word.
    fn read(&self) -> std::result::Result<Reading, String> {
        let found = FoundFile {
            path: self.path.clone(),
            stamp: Stamp { size: 0, modified: 0 },
        };
        read(&self.source, &found, self.most_bytes).map_err(|reason| reason.word().to_owned())
    }
}

fn drawn_page(bytes: Vec<u8>, wanted: PageRequest) -> documents::Result<PassagePage> {
    let drawn = documents::page_image(bytes, wanted)?;
    let marks = drawn.marks.into_iter().map(|mark| PageMark {
        left: mark.left,
        top: mark.top,
        width: mark.width,
        height: mark.height,
    });
    Ok(PassagePage {
        pages: drawn.pages,
        width: drawn.width,
        height: drawn.height,
        image: ImageBytes::from(drawn.png).to_data_url("image/png"),
        marks: marks.collect(),
    })
}

/// An image at this width at most, decoded where files of strangers are.
fn drawn_image(bytes: &[u8], width: u32) -> media::Result<PassagePage> {
    let image = media::decode(bytes)?;
    let width = width.clamp(1, image.width.max(1));
    let longer = u64::from(image.width.max(image.height));
    // Rounded up, so that the width is exact after it was rounded down.
    let side = (u64::from(width) * longer).div_ceil(u64::from(image.width.max(1)));
    let side = u32::try_from(side).unwrap_or(u32::MAX);
    let height = u64::from(image.height) * u64::from(side) / longer.max(1);
    Ok(PassagePage {
        pages: 1,
        width,
        height: u32::try_from(height).unwrap_or(u32::MAX).max(1),
        image: ImageBytes::from(media::thumbnail(&image, side)?).to_data_url("image/jpeg"),
        marks: Vec::new(),
    })
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
            is_image: false,
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
        is_image: false,
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
