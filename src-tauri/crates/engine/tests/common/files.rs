//! Model folders rewritten in other forms, without MLX.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{json, Map, Value};

/// A tensor of a safetensors file as its bytes.
#[derive(Clone)]
pub struct Entry {
    pub name: String,
    /// In the format's own names, such as `BF16`.
    pub dtype: String,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

impl Entry {
    /// A tensor of numbers of 2 bytes, the upper halves of 32 bit floats.
    pub fn bf16(name: impl Into<String>, shape: &[usize], numbers: impl Iterator<Item = f32>) -> Self {
        let data: Vec<u8> = numbers
            .flat_map(|number| ((number.to_bits() >> 16) as u16).to_le_bytes())
            .collect();
        assert_eq!(data.len(), shape.iter().product::<usize>() * 2);
        Self {
            name: name.into(),
            dtype: "BF16".into(),
            shape: shape.to_vec(),
            data,
        }
    }
}

/// Every tensor of a file.
pub fn read_entries(path: &Path) -> Vec<Entry> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let entries = header.into_iter().filter(|(name, _)| name != "__metadata__");
    entries
        .map(|(name, entry)| {
            let place: [usize; 2] = serde_json::from_value(entry["data_offsets"].clone()).unwrap();
            Entry {
                name,
                dtype: entry["dtype"].as_str().unwrap().to_owned(),
                shape: serde_json::from_value(entry["shape"].clone()).unwrap(),
                data: bytes[8 + length + place[0]..8 + length + place[1]].to_vec(),
            }
        })
        .collect()
}

/// Writes a file.
pub fn write_entries(path: &Path, entries: &[Entry]) {
    let (mut header, mut end) = (Map::new(), 0);
    for entry in entries {
        let start = end;
        end += entry.data.len();
        header.insert(
            entry.name.clone(),
            json!({"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [start, end]}),
        );
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(&header).unwrap();
    entries.iter().for_each(|entry| file.write_all(&entry.data).unwrap());
    file.into_inner().unwrap();
}

/// Copies the files of a folder, all but its weights and their index.
pub fn copy_words(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().contains("safetensors") {
            std::fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// Changes a folder's config.json.
pub fn edit_config(folder: &Path, change: impl FnOnce(&mut Value)) {
    let path = folder.join("config.json");
    let mut config = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(path, config.to_string()).unwrap();
}
