//! The weight files of a converted model: which tensor lies where.

use serde_json::{json, Map, Value};

use super::target::{width, Part, Target};

/// The most bytes of a file, as mlx-lm has it; a larger tensor gets a file of its own.
const MOST_BYTES: u64 = 5 << 30;

/// A weight file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Its name.
    pub name: String,
    /// All that stands before the tensors.
    pub header: Vec<u8>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The places of [`Conversion::targets`](super::Conversion::targets) that it holds, each with the first byte of
    /// each of its parts.
    pub targets: Vec<(usize, Vec<u64>)>,
}

/// The files of these tensors, and their index.
pub(crate) fn shards(targets: &[Target]) -> (Vec<Shard>, Value) {
    shards_of(targets, MOST_BYTES)
}

fn shards_of(targets: &[Target], most: u64) -> (Vec<Shard>, Value) {
    let (mut groups, mut filled, mut total) = (Vec::<Vec<usize>>::new(), 0, 0);
    for (index, target) in targets.iter().enumerate() {
        let bytes: u64 = target.parts().iter().map(Part::bytes).sum();
        total += bytes;
        match groups.last_mut() {
            Some(group) if filled + bytes <= most => {
                group.push(index);
                filled += bytes;
            }
            _ => {
                groups.push(vec![index]);
                filled = bytes;
            }
        }
    }
    let count = groups.len();
    let mut map = std::collections::BTreeMap::new();
    let shards = groups.into_iter().enumerate().map(|(number, group)| {
        let name = match count {
            1 => "model.safetensors".to_owned(),
            _ => format!("model-{:05}-of-{count:05}.safetensors", number + 1),
        };
        for part in group.iter().flat_map(|index| targets[*index].parts()) {
            map.insert(part.name, name.clone());
        }
        shard(name, targets, group)
    });
    let shards: Vec<Shard> = shards.collect();
    let numbers: u64 = targets.iter().map(Target::numbers).sum();
    let index = json!({"metadata": {"total_size": total, "total_parameters": numbers}, "weight_map": map});
    (shards, index)
}

fn shard(name: String, targets: &[Target], group: Vec<usize>) -> Shard {
    let mut targets: Vec<(usize, Vec<u64>, Vec<Part>)> = group
        .into_iter()
        .map(|index| {
            let parts = targets[index].parts();
            (index, vec![0; parts.len()], parts)
        })
        .collect();
    // Wide numbers first, so that each lies at a multiple of its width.
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (target, (.., parts)) in targets.iter().enumerate() {
        places.extend((0..parts.len()).map(|part| (target, part)));
    }
    places.sort_by_key(|(target, part)| std::cmp::Reverse(width(targets[*target].2[*part].dtype)));
    let mut header = Map::from_iter([("__metadata__".to_owned(), json!({"format": "mlx"}))]);
    let mut end = 0;
    for (target, part) in places {
        let (_, offsets, parts) = &mut targets[target];
        let described = &parts[part];
        let (start, bytes) = (end, described.bytes());
        end += bytes;
        offsets[part] = start;
        let entry = json!({"dtype": described.dtype, "shape": described.shape, "data_offsets": [start, end]});
        header.insert(described.name.clone(), entry);
    }
    let mut json = Value::Object(header).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    let before = header.len() as u64;
    let targets = targets.into_iter().map(|(index, offsets, _)| {
        let offsets = offsets.into_iter().map(|offset| before + offset);
        (index, offsets.collect())
    });
    Shard {
        name,
        bytes: before + end,
        targets: targets.collect(),
        header,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::{Mode, Quantization};
    use crate::Header;

    #[test]
    fn files_hold_as_much_as_they_may_and_headers_are_read_back() {
        let target = |name: &str, quantization| Target {
            name: format!("{name}.weight"),
            shape: vec![3, 64],
            dtype: "BF16",
            pieces: Vec::new(),
            quantization,
        };
        let four = Quantization {
            group_size: 64,
            bits: 4,
            mode: Mode::Affine,
        };
        let small = Quantization {
            group_size: 32,
            bits: 4,
            mode: Mode::Mxfp4,
        };
        let targets = [target("a", None), target("b", Some(four)), target("c", Some(small))];
        let (one, _) = shards_of(&targets, 1 << 20);
        assert_eq!((one.len(), one[0].name.as_str()), (1, "model.safetensors"));
        let header = Header::parse(&one[0].header[8..]).unwrap();
        header
            .check(std::path::Path::new("x"), one[0].bytes - one[0].header.len() as u64)
            .unwrap();
        for place in header.places() {
            assert!(place.offset.is_multiple_of(width(place.dtype)), "{place:?}");
        }
        // 384 bytes, then 96 + 6 + 6, then 96 + 6.
        let (several, index) = shards_of(&targets, 384);
        let names: Vec<&str> = several.iter().map(|shard| shard.name.as_str()).collect();
        assert_eq!(
            names,
            ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
        );
        assert_eq!(index["metadata"], json!({"total_size": 594, "total_parameters": 576}));
        assert_eq!(index["weight_map"]["c.scales"], names[1]);
        assert_eq!(index["weight_map"]["a.weight"], names[0]);
    }
}
