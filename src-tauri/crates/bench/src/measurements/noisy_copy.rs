//! A copy of a model that says mostly the same: a draft model for measurements.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result};
use protocol::FolderSource;
use serde::Deserialize;
use serde_json::Value;

/// The bit of a BF16 number that changes it by an eighth.
const NOISE: u8 = 0x10;

/// A tensor in the header of a safetensors file.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    data_offsets: [u64; 2],
}

/// Copies a model's folder; of the numbers that its weights are scaled by, or of the weights if none are quantized, one in
/// `every` is changed a little.
///
/// # Errors
/// When the copy cannot be written.
pub fn noisy_copy(model: &FolderSource, folder: &Path, every: usize) -> Result<FolderSource> {
    for entry in fs::read_dir(&model.path)?.flatten() {
        let (from, to) = (entry.path(), folder.join(entry.file_name()));
        if !from.is_file() {
            continue;
        }
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        if to.extension().is_some_and(|extension| extension == "safetensors") {
            add_noise(&to, every).with_context(|| format!("cannot change {}", to.display()))?;
        }
    }
    Ok(FolderSource {
        reference: format!("{}, one number in {every} changed", model.reference),
        path: folder.to_owned(),
        revision: Some(format!("noisy {every}")),
        adapter: None,
    })
}

fn add_noise(path: &Path, every: usize) -> Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let header: BTreeMap<String, Value> = serde_json::from_slice(&header)?;
    let quantized = header.keys().any(|name| name.ends_with(".scales"));
    for (name, entry) in header {
        if name == "__metadata__" || (quantized && !name.ends_with(".scales")) {
            continue;
        }
        let Entry { dtype, data_offsets } = serde_json::from_value(entry)?;
        if !matches!(dtype.as_str(), "BF16" | "F16") {
            continue;
        }
        let [start, end] = data_offsets.map(|offset| 8 + length + offset);
        let mut data = vec![0; (end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut data)?;
        data.chunks_exact_mut(2)
            .step_by(every)
            .for_each(|number| number[0] ^= NOISE);
        file.seek(SeekFrom::Start(start))?;
        file.write_all(&data)?;
    }
    Ok(())
}
