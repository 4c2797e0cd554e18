//! How many bytes the weights of the text model are: the headers of safetensors files list every tensor.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use checkpoint::config::is_unused_tensor;
use serde_json::Value;

use crate::structure::{shards, LONGEST_HEADER};
use crate::Error;

/// Bytes of the tensors that the text model of a folder reads; of a file whose header cannot be read, all of it.
///
/// # Errors
/// [`Error::Read`] if a file is not there, [`Error::Missing`] if the index names none.
pub fn stored_bytes(folder: &Path) -> Result<u64, Error> {
    let mut sum = 0u64;
    let names = shards(folder).map_err(|fault| Error::Missing {
        path: folder.join(fault.path),
    })?;
    for name in names {
        let path = folder.join(name);
        let meta = fs::metadata(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let bytes = header(&path).and_then(|header| text_bytes(&header)).unwrap_or(meta.len());
        sum = sum.saturating_add(bytes.min(meta.len()));
    }
    Ok(sum)
}

fn header(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let mut start = [0; 8];
    file.read_exact(&mut start).ok()?;
    let length = header_length(start)?;
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).ok()?;
    (header.len() as u64 == length).then_some(header)
}

/// The bytes of the header that follow the first eight of a safetensors file; `None` if they claim more than a header has.
pub fn header_length(start: [u8; 8]) -> Option<u64> {
    let length = u64::from_le_bytes(start);
    (length <= LONGEST_HEADER).then_some(length)
}

/// Bytes of the tensors that the text model reads, by the header of a safetensors file; `None` if it is none.
pub fn text_bytes(header: &[u8]) -> Option<u64> {
    let header: Value = serde_json::from_slice(header).ok()?;
    let tensors = header
        .as_object()?
        .iter()
        .filter(|(name, _)| *name != "__metadata__" && !is_unused_tensor(name));
    tensors
        .map(|(_, entry)| {
            let place = entry.get("data_offsets")?.as_array()?;
            place.get(1)?.as_u64()?.checked_sub(place.first()?.as_u64()?)
        })
        .try_fold(0u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}
