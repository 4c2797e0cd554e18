//! GGUF files, of version 2 or 3 and in one or more parts: metadata and the bytes of tensors.

mod header;
mod kind;
#[cfg(test)]
pub(crate) mod tests;
mod value;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use header::{name_of, Header};

pub use header::Stored;
pub use kind::Kind;
pub use value::Value;

/// The most parts of a model.
const MOST_PARTS: u64 = 1000;

/// A model in GGUF files.
#[derive(Debug)]
pub struct GgufFile {
    /// The files, in their order.
    pub paths: Vec<PathBuf>,
    /// Bytes of all files.
    pub bytes: u64,
    values: HashMap<String, Value>,
    tensors: Vec<Stored>,
}

impl GgufFile {
    /// Reads the header of a file, and of those that it is continued in. Any part of a model stands for all of it.
    ///
    /// # Errors
    /// [`Error::NotGguf`], [`Error::Unreadable`], and [`Error::Unsupported`] for what no file of this program's models
    /// has.
    pub fn open(path: &Path) -> Result<Self> {
        let first = part_path(path, 1).unwrap_or_else(|| path.to_owned());
        let mut header = Header::read(&first, 0)?;
        let count = header.values.get("split.count").and_then(Value::count).unwrap_or(1);
        if count > MOST_PARTS {
            return Err(not_gguf(&first, format!("it claims to be one of {count} files")));
        }
        let mut opened = Self {
            bytes: header.bytes,
            values: std::mem::take(&mut header.values),
            tensors: std::mem::take(&mut header.tensors),
            paths: vec![first.clone()],
        };
        for number in 2..=count {
            let next = part_path(&first, number).filter(|_| split_of(&first).is_some_and(|(.., all)| all == count));
            let next = next.ok_or_else(|| {
                let reason = format!("it is one of {count} files, and its name does not say which");
                not_gguf(&first, reason)
            })?;
            let part = Header::read(&next, opened.paths.len())?;
            let own = |key: &str| part.values.get(key).and_then(Value::count);
            if own("split.no") != Some(number - 1) || own("split.count") != Some(count) {
                return Err(not_gguf(&next, format!("it is not part {number} of {count}")));
            }
            opened.bytes += part.bytes;
            opened.tensors.extend(part.tensors);
            opened.paths.push(next);
        }
        let mut names: Vec<&str> = opened.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(not_gguf(&first, format!("its parts have two tensors `{}`", pair[0])));
        }
        match opened.count("split.tensors.count") {
            Some(all) if all != opened.tensors.len() as u64 => {
                let reason = format!("{all} tensors are announced, and there are {}", opened.tensors.len());
                Err(not_gguf(&first, reason))
            }
            _ => Ok(opened),
        }
    }

    /// The name of the first file.
    pub fn name(&self) -> String {
        self.paths.first().map_or_else(String::new, |path| name_of(path))
    }

    /// A value of the metadata.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// A whole number of the metadata.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.value(key).and_then(Value::count)
    }

    /// A text of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value(key).and_then(Value::text)
    }

    /// The tensors, in the order of the files.
    pub fn tensors(&self) -> &[Stored] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Stored> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Reads bytes of a tensor.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn read_bytes(&self, tensor: &Stored, from: u64, count: u64) -> Result<Vec<u8>> {
        let path = &self.paths[tensor.part];
        let unreadable = |source| Error::Unreadable {
            path: path.clone(),
            source,
        };
        let mut file = File::open(path).map_err(unreadable)?;
        file.seek(SeekFrom::Start(tensor.offset + from)).map_err(unreadable)?;
        // Tensors lie within the file, so this is no claim of it.
        let mut bytes = vec![0; count as usize];
        file.read_exact(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }

    /// All numbers of a small plain tensor.
    ///
    /// # Errors
    /// [`Error::NotGguf`] if it is neither.
    pub(super) fn small(&self, tensor: &Stored) -> Result<Vec<f32>> {
        if tensor.kind != Kind::F32 || tensor.bytes() > 1 << 20 {
            let reason = format!("`{}` is no short list of 32 bit floats", tensor.name);
            return Err(self.broken(reason));
        }
        let bytes = self.read_bytes(tensor, 0, tensor.bytes())?;
        let four = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        Ok(bytes.chunks_exact(4).map(four).collect())
    }

    /// A fault of these files.
    pub(super) fn broken(&self, reason: impl Into<String>) -> Error {
        Error::NotGguf {
            file: self.name(),
            reason: reason.into(),
        }
    }
}

fn not_gguf(path: &Path, reason: impl Into<String>) -> Error {
    Error::NotGguf {
        file: name_of(path),
        reason: reason.into(),
    }
}

/// The path of a part of a model, by that of another one; `None` if it is no part.
fn part_path(path: &Path, number: u64) -> Option<PathBuf> {
    let (stem, count) = split_of(path)?;
    Some(path.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf")))
}

/// The beginning of a part's name, and how many parts there are: `stem-00001-of-00003.gguf`.
pub fn split_of(path: &Path) -> Option<(String, u64)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, count) = name.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(count) && digits(number)).then_some(())?;
    Some((stem.to_owned(), count.parse().ok()?))
}
