//! ZIP archives, as ChatGPT and Claude send their exports. The conversations are read out of them, whatever else they
//! hold, and in memory alone: no name in an archive becomes the name of a file. Long exports of ChatGPT have several
//! files, `conversations-000.json` and so on.

use std::io::{Cursor, ErrorKind, Read};

use serde_json::Value;
use zip::result::ZipError;
use zip::ZipArchive;

use super::json_text::JsonText;
use crate::{Error, Result};

/// The most bytes that conversations may unfold to. Those of an archive have no images, which are long.
pub(super) const LONGEST_UNFOLDED: u64 = 256 << 20;

/// The most files that an archive may name: a whole export has one for each image.
const MOST_FILES: usize = 100_000;

/// The signature of an entry in an archive's directory.
const ENTRY: &[u8] = b"PK\x01\x02";

const UNUSUAL: &str = "it is a ZIP archive that is packed in an unusual way. Unpack it, and choose conversations.json";

/// True for a ZIP archive, also an empty one.
pub(super) fn is_archive(file: &[u8]) -> bool {
    file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06")
}

/// The conversations of an archive: the JSON of its `conversations.json`, or that of its numbered files as one list.
/// They may unfold to `most` bytes together.
///
/// # Errors
/// [`Error::Import`] with what is wrong with the archive and what to do.
pub(super) fn conversations(file: &[u8], most: u64) -> Result<Value> {
    // The directory is read as a whole, so its length is known before.
    if file.windows(ENTRY.len()).filter(|window| *window == ENTRY).count() > MOST_FILES {
        return refuse("it is a ZIP archive of more than 100,000 files");
    }
    let mut archive = ZipArchive::new(Cursor::new(file)).map_err(broken)?;
    let mut names: Vec<(String, usize)> = Vec::new();
    for (index, name) in archive.file_names_raw().enumerate() {
        let name = String::from_utf8_lossy(name).replace('\\', "/");
        if holds_conversations(&name) {
            names.push((name, index));
        }
    }
    names.sort();
    let folder = |name: &str| name.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let Some((first, _)) = names.first() else {
        return refuse("it is a ZIP archive without conversations.json. Unpack it, and choose the file with the chats");
    };
    if archive.has_duplicate_names() || names.iter().any(|(name, _)| folder(name) != folder(first)) {
        return refuse("it is a ZIP archive that holds files of the same name. Unpack it, and choose the conversations.json that is meant");
    }
    let mut left = most;
    let mut texts = JsonText::default();
    let mut values = Vec::with_capacity(names.len());
    for (name, index) in &names {
        let bytes = unpacked(&mut archive, *index, left)?;
        left -= bytes.len() as u64;
        let value = texts.parse(&bytes, || format!("{} in it is no JSON", last_part(name)))?;
        values.push(value);
    }
    match values.len() {
        1 => Ok(values.remove(0)),
        _ => Ok(values
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(chats) => chats,
                one => vec![one],
            })
            .collect()),
    }
}

/// True if a file of this name holds conversations. macOS stores metadata under the same name in a folder of its own.
fn holds_conversations(name: &str) -> bool {
    let Some(stem) = last_part(name)
        .strip_prefix("conversations")
        .and_then(|rest| rest.strip_suffix(".json"))
    else {
        return false;
    };
    let numbered = stem
        .strip_prefix('-')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    (stem.is_empty() || numbered) && !name.split('/').any(|part| part == "__MACOSX")
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A file of the archive of at most `most` bytes. A declared length above that is refused, and a smaller one is not
/// trusted.
fn unpacked(archive: &mut ZipArchive<Cursor<&[u8]>>, index: usize, most: u64) -> Result<Vec<u8>> {
    let too_long = "the conversations in it unfold to more than 256 MB. Unpack it, and choose conversations.json";
    let file = archive.by_index(index).map_err(broken)?;
    if file.size() > most {
        return refuse(too_long);
    }
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| broken(error.into()))?;
    match bytes.len() as u64 > most {
        true => refuse(too_long),
        false => Ok(bytes),
    }
}

fn refuse<T>(reason: &str) -> Result<T> {
    Err(Error::Import(reason.into()))
}

fn broken(error: ZipError) -> Error {
    let reason = match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) | ZipError::InvalidPassword => {
            "it is a ZIP archive with a password. Unpack it, and choose conversations.json"
        }
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => UNUSUAL,
        // How a file is packed is only looked at when it is read.
        ZipError::Io(error) if error.kind() == ErrorKind::Unsupported => UNUSUAL,
        _ => "it is a ZIP archive that is damaged, or was not fetched to its end. Fetch it again",
    };
    Error::Import(reason.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::ZipWriter;

    use super::*;

    /// Ten thousand spaces in less than a hundred bytes, twice, in a list.
    fn bomb() -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["conversations-1.json", "conversations-2.json"] {
            writer.start_file(name, SimpleFileOptions::default()).unwrap();
            writer
                .write_all(format!("[{}]", " ".repeat(10_000)).as_bytes())
                .unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn said(file: &[u8], most: u64) -> String {
        conversations(file, most).map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn conversations_unfold_to_what_they_may_together_and_no_further() {
        let file = bomb();
        assert!(file.len() < 1000, "{}", file.len());
        assert_eq!(said(&file, 20_004), "[]");
        for most in [20_003, 10_002, 10_001, 0] {
            assert!(said(&file, most).contains("more than 256 MB"), "{most}");
        }
    }

    #[test]
    fn what_an_archive_says_of_a_length_is_not_believed() {
        for claimed in [100_u32, u32::MAX - 1] {
            let mut file = bomb();
            for (header, length) in [(&b"PK\x03\x04"[..], 22), (&b"PK\x01\x02"[..], 24)] {
                let places: Vec<usize> = (0..file.len() - 4)
                    .filter(|at| file[*at..].starts_with(header))
                    .collect();
                assert_eq!(places.len(), 2);
                for at in places {
                    file[at + length..at + length + 4].copy_from_slice(&claimed.to_le_bytes());
                }
            }
            let said = said(&file, 5000);
            assert!(
                said.contains("more than 256 MB") || said.contains("damaged"),
                "{claimed}: {said}"
            );
        }
    }
}
