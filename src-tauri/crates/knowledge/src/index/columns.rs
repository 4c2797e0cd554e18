//! Values as columns: paths, which need not be text, and JSON.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::folder::Source;

/// The bytes of a path.
pub(super) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// The path of bytes.
#[cfg(unix)]
pub(super) fn path_of(bytes: Vec<u8>) -> PathBuf {
    let path: OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    path.into()
}

#[cfg(not(unix))]
pub(super) fn path_of(bytes: Vec<u8>) -> PathBuf {
    OsString::from(String::from_utf8_lossy(&bytes).into_owned()).into()
}

/// Bytes in hexadecimal, as they are in JSON.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The kind and the paths of a source.
pub(super) fn source_columns(source: &Source) -> (&'static str, Vec<u8>) {
    let (kind, paths) = match source {
        Source::Folder(folder) => ("folder", std::slice::from_ref(folder)),
        Source::Files(files) => ("files", files.as_slice()),
    };
    let ended = paths.iter().flat_map(|path| bytes_of(path).iter().copied().chain([0]));
    (kind, ended.collect())
}

/// The source of a kind and its paths.
pub(super) fn source_of(kind: &str, paths: &[u8]) -> Source {
    let mut paths = paths.split_inclusive(|byte| *byte == 0).map(|path| {
        let end = path.strip_suffix(&[0]).unwrap_or(path);
        path_of(end.to_vec())
    });
    match kind {
        "folder" => Source::Folder(paths.next().unwrap_or_default()),
        _ => Source::Files(paths.collect()),
    }
}

/// A value as JSON.
pub(super) fn to_json(value: &impl Serialize) -> String {
    // Numbers, texts and lists of them always have one.
    serde_json::to_string(value).unwrap_or_default()
}

/// A value from JSON; its default if it cannot be read, because the rest of a row is worth more.
pub(super) fn from_json<T: DeserializeOwned + Default>(json: &str) -> T {
    serde_json::from_str(json)
        .inspect_err(|error| tracing::warn!(%error, "a value of the index cannot be read"))
        .unwrap_or_default()
}

/// Unix milliseconds.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A number that SQLite takes.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
