//! The headers of safetensors files, read without their tensors. Nothing that a header claims is believed before it is
//! compared with the file: programs that map such files find one that is cut short only in the middle of a computation.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde_json::Value;

use super::tensor_names::is_unused_tensor;
use crate::error::{Error, Result};

/// The largest header that the format allows, in bytes.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The entry of one tensor in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TensorInfo {
    /// The type of its numbers, such as `BF16`.
    dtype: Option<String>,
    shape: Option<Vec<u64>>,
    /// Its first byte after the header.
    start: u64,
    /// The byte after its last one.
    end: u64,
}

impl TensorInfo {
    fn read(entry: &Value) -> Option<Self> {
        let numbers =
            |field: &str| -> Option<Vec<u64>> { entry.get(field)?.as_array()?.iter().map(Value::as_u64).collect() };
        let [start, end] = numbers("data_offsets")?[..] else {
            return None;
        };
        (start <= end).then(|| Self {
            dtype: entry.get("dtype").and_then(Value::as_str).map(str::to_owned),
            shape: numbers("shape"),
            start,
            end,
        })
    }

    /// Refuses a type that is not known, a length that MLX cannot hold, and a size that does not fit type and shape.
    fn check(&self) -> std::result::Result<(), String> {
        let dtype = self.dtype.as_deref().ok_or("has no type")?;
        let width = bytes_per_number(dtype).ok_or_else(|| format!("has the unknown type {dtype}"))?;
        let shape = self.shape.as_ref().ok_or("has no shape")?;
        // MLX keeps lengths as i32, and a longer one would come out as another, even if the tensor holds no numbers.
        if let Some(length) = shape.iter().find(|length| i32::try_from(**length).is_err()) {
            return Err(format!("is {length} long, which is longer than a tensor can be"));
        }
        let numbers = shape
            .iter()
            .try_fold(1u64, |product, length| product.checked_mul(*length));
        if numbers.and_then(|numbers| numbers.checked_mul(width)) == Some(self.end - self.start) {
            return Ok(());
        }
        Err(format!(
            "has {} bytes, which do not fit its shape {shape:?}",
            self.end - self.start
        ))
    }
}

/// Bytes of one number of this type; `None` for types that are not read here.
fn bytes_per_number(dtype: &str) -> Option<u64> {
    match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" => Some(1),
        "U16" | "I16" | "F16" | "BF16" => Some(2),
        "U32" | "I32" | "F32" => Some(4),
        "U64" | "I64" | "F64" => Some(8),
        _ => None,
    }
}

/// The header of a safetensors file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    tensors: BTreeMap<String, TensorInfo>,
    /// Bytes before the tensors.
    data_start: u64,
}

/// The place of a tensor in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorPlace<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its first byte in the file.
    pub offset: u64,
    /// The type of its numbers, such as `BF16`.
    pub dtype: &'a str,
    /// Its shape.
    pub shape: &'a [u64],
}

impl Header {
    /// The length of a header by the first eight bytes of a file, which it follows; `None` if no header is that long.
    pub fn length(start: [u8; 8]) -> Option<u64> {
        Some(u64::from_le_bytes(start)).filter(|length| *length <= MAX_HEADER_BYTES)
    }

    /// Reads a header's JSON; `None` if it is no header.
    pub fn parse(json: &[u8]) -> Option<Self> {
        let entries: BTreeMap<String, Value> = serde_json::from_slice(json).ok()?;
        let tensors = entries.into_iter().filter(|(name, _)| name != "__metadata__");
        Some(Self {
            tensors: tensors
                .map(|(name, entry)| Some((name, TensorInfo::read(&entry)?)))
                .collect::<Option<_>>()?,
            data_start: 8 + json.len() as u64,
        })
    }

    /// Reads the header of a file, and how many bytes follow it there.
    ///
    /// # Errors
    /// [`Error::Unreadable`], [`Error::Truncated`] if the file ends inside its header, [`Error::NotSafetensors`].
    pub fn read(path: &Path) -> Result<(Self, u64)> {
        let unreadable = |source| Error::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let mut start = [0; 8];
        file.read_exact(&mut start).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => truncated(path, "it ends before its header"),
            _ => unreadable(error),
        })?;
        let claimed = u64::from_le_bytes(start);
        let length =
            Self::length(start).ok_or_else(|| not_safetensors(path, format!("its header claims {claimed} bytes")))?;
        let data = size.checked_sub(8 + length).ok_or_else(|| {
            truncated(
                path,
                format!("its header claims {length} bytes and the file has {size}"),
            )
        })?;
        let mut json = Vec::new();
        file.take(length).read_to_end(&mut json).map_err(unreadable)?;
        let header = Self::parse(&json).ok_or_else(|| not_safetensors(path, "its header is not one of tensors"))?;
        Ok((header, data))
    }

    /// Refuses a header whose tensors do not all lie within the `bytes` after the header, or are not of the size that
    /// their types and shapes make. `path` is the file, for the message.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::NotSafetensors`].
    pub fn check(&self, path: &Path, data: u64) -> Result<()> {
        for (name, tensor) in &self.tensors {
            if tensor.end > data {
                return Err(truncated(
                    path,
                    format!("`{name}` ends at byte {} of {data}", tensor.end),
                ));
            }
            tensor
                .check()
                .map_err(|reason| not_safetensors(path, format!("`{name}` {reason}")))?;
        }
        Ok(())
    }

    /// The places of the tensors; those without a type or a shape, which [`Header::check`] refuses, are left out.
    pub fn places(&self) -> impl Iterator<Item = TensorPlace<'_>> {
        self.tensors.iter().filter_map(|(name, tensor)| {
            Some(TensorPlace {
                name,
                offset: self.data_start.saturating_add(tensor.start),
                dtype: tensor.dtype.as_deref()?,
                shape: tensor.shape.as_ref()?,
            })
        })
    }

    /// The names of the tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Bytes of a tensor; `None` if there is none of this name.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.tensors.get(name).map(|tensor| tensor.end - tensor.start)
    }

    /// The end of the last tensor, in bytes after the header.
    pub fn end(&self) -> u64 {
        self.tensors.values().map(|tensor| tensor.end).max().unwrap_or(0)
    }

    /// Bytes of the tensors that the text model reads.
    pub fn text_bytes(&self) -> u64 {
        let text = self.tensors.iter().filter(|(name, _)| !is_unused_tensor(name));
        text.fold(0, |sum: u64, (_, tensor)| sum.saturating_add(tensor.end - tensor.start))
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn truncated(path: &Path, reason: impl Into<String>) -> Error {
    Error::Truncated {
        file: name(path),
        reason: reason.into(),
    }
}

fn not_safetensors(path: &Path, reason: impl Into<String>) -> Error {
    Error::NotSafetensors {
        file: name(path),
        reason: reason.into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(header: &[u8], data: usize) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header, &vec![0; data]].concat();
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn a_header_tells_the_bytes_of_its_tensors() {
        let header = json!({"__metadata__": {"format": "mlx"},
            "language_model.model.embed_tokens.weight": {"dtype": "BF16", "shape": [10, 10], "data_offsets": [0, 200]},
            "vision_tower.patch.weight": {"dtype": "BF16", "shape": [50], "data_offsets": [200, 300]}});
        let (_folder, path) = file(header.to_string().as_bytes(), 300);
        let (header, data) = Header::read(&path).unwrap();
        header.check(&path, data).unwrap();
        assert_eq!((header.text_bytes(), header.end(), data), (200, 300, 300));
        assert_eq!(header.bytes("vision_tower.patch.weight"), Some(100));
        assert!(matches!(header.check(&path, 299), Err(Error::Truncated { .. })));
    }

    #[test]
    fn whatever_a_header_claims_it_is_read_or_refused() {
        for header in [
            &b"[]"[..],
            b"{",
            br#"{"a": 1}"#,
            br#"{"a": {"data_offsets": [1]}}"#,
            br#"{"a": {"data_offsets": [5, 2]}}"#,
            br#"{"a": {"data_offsets": [-1, 2]}}"#,
        ] {
            let (_folder, path) = file(header, 10);
            assert!(
                matches!(Header::read(&path), Err(Error::NotSafetensors { .. })),
                "{header:?}"
            );
        }
        for entry in [
            json!({"shape": [1], "data_offsets": [0, 4]}),
            json!({"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}),
            json!({"dtype": "F32", "data_offsets": [0, 4]}),
            json!({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}),
            json!({"dtype": "F32", "shape": [u64::MAX, 8], "data_offsets": [0, 4]}),
            json!({"dtype": "F32", "shape": [0x8000_0000_u64, 0], "data_offsets": [0, 0]}),
            json!({"dtype": "F32", "shape": [0, 0x1_0000_0001_u64], "data_offsets": [0, 0]}),
        ] {
            let (_folder, path) = file(json!({ "a": entry }).to_string().as_bytes(), 4);
            let (header, data) = Header::read(&path).unwrap();
            assert!(
                matches!(header.check(&path, data), Err(Error::NotSafetensors { .. })),
                "{entry}"
            );
        }
        let longest = json!({"a": {"dtype": "F32", "shape": [i32::MAX, 0], "data_offsets": [0, 0]}});
        let (_folder, path) = file(longest.to_string().as_bytes(), 0);
        let (header, data) = Header::read(&path).unwrap();
        header.check(&path, data).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        for (bytes, cut) in [(&b"12"[..], true), (b"\x30\0\0\0\0\0\0\0{}", true), (&[255; 8], false)] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(
                matches!(Header::read(&path), Err(Error::Truncated { .. })),
                cut,
                "{bytes:?}"
            );
            assert!(Header::read(&path).is_err());
        }
        let huge = json!({"a": {"data_offsets": [0, u64::MAX]}, "b": {"data_offsets": [0, u64::MAX]}});
        assert_eq!(
            Header::parse(huge.to_string().as_bytes()).unwrap().text_bytes(),
            u64::MAX
        );
    }
}
