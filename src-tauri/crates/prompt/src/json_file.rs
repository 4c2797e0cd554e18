//! The text and JSON files of a model's folder.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use checkpoint::parse_json;
use serde_json::Value;

use crate::error::{Error, Result};

/// The largest template; what is longer is not compiled either.
const LARGEST_TEXT: u64 = 2 << 20;
/// The largest file of settings, as large as any that is fetched.
const LARGEST_JSON: u64 = 16 << 20;

/// Reads a text file; `None` if it is missing.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    found(path, read(path, LARGEST_TEXT).and_then(text))
}

/// Reads a text file that must be there.
pub(crate) fn read_text_there(path: &Path) -> Result<String> {
    read(path, LARGEST_TEXT)
        .and_then(text)
        .map_err(|source| unreadable(path, source))
}

/// The bytes of a file, which another program may have written, unless they are more than this.
pub(crate) fn read(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Its size is not asked for, because it may grow meanwhile, or be no plain file.
    File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > largest {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it is larger than {} MB", largest >> 20),
        )),
        false => Ok(bytes),
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

/// The contents of a file; `None` if it is missing.
fn found<T>(path: &Path, read: io::Result<T>) -> Result<Option<T>> {
    match read {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unreadable(path, source)),
    }
}

/// Reads a JSON file; `null` if it is missing.
pub(crate) fn read_json(path: &Path) -> Result<Value> {
    match found(path, read(path, LARGEST_JSON))? {
        Some(bytes) => parse(path, &bytes),
        None => Ok(Value::Null),
    }
}

/// Reads a JSON file that must be there.
pub(crate) fn read_json_there(path: &Path) -> Result<Value> {
    let bytes = read(path, LARGEST_JSON).map_err(|source| unreadable(path, source))?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value> {
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => parse_json(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    parsed.map_err(|source| Error::Json {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_too_large_are_not_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: u64| {
            let path = dir.path().join(name);
            std::fs::write(&path, vec![b' '; usize::try_from(bytes).unwrap()]).unwrap();
            path
        };
        assert!(read_text(&file("fits", LARGEST_TEXT)).is_ok());
        let too_large = file("large", LARGEST_TEXT + 1);
        assert!(matches!(read_text(&too_large), Err(Error::File { .. })));
        assert!(matches!(read_text_there(&too_large), Err(Error::File { .. })));
        assert!(matches!(
            read_json(&file("json", LARGEST_JSON + 1)),
            Err(Error::File { .. })
        ));
        assert!(matches!(read_text(&dir.path().join("none")), Ok(None)));
    }
}
