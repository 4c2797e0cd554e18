//! The bytes of the text model's weights, from the headers of safetensors files, which list every tensor.

use std::fs;
use std::path::Path;

use checkpoint::Header;

use crate::error::Error;
use crate::local::integrity::shards;

/// Bytes of the tensors that the text model of a folder reads. A file whose header cannot be read counts whole.
///
/// # Errors
/// [`Error::Read`] if a file is missing, [`Error::Missing`] if the index names none.
pub fn stored_bytes(folder: &Path) -> Result<u64, Error> {
    let mut sum = 0u64;
    let names = shards(folder).map_err(|fault| Error::Missing(folder.join(fault.path)))?;
    for name in names {
        let path = folder.join(name);
        let meta = fs::metadata(&path).map_err(|source| Error::read(&path, source))?;
        let bytes = Header::read(&path).map_or(meta.len(), |(header, _)| header.text_bytes());
        sum = sum.saturating_add(bytes.min(meta.len()));
    }
    Ok(sum)
}
