//! Writes a shape as a model's folder: config, weights in shards, and the least tokenizer and template that can be
//! opened.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use serde_json::{json, Map, Value};

use crate::entry::{Entry, Kind, WORDS};
use crate::towers::{self, ImagePrompts};

/// Bytes of weights in a file.
const SHARD: u64 = 4 << 30;
/// Random bytes that packed weights are cut from, again and again: what they are does not change the speed.
const POOL: usize = 8 << 20;

/// One tensor of a file.
struct Piece {
    name: String,
    dtype: &'static str,
    shape: Vec<u64>,
    bytes: u64,
    fill: Fill,
}

#[derive(Clone, Copy)]
enum Fill {
    /// Random bits.
    Bits,
    /// 16 bit floats, evenly spread between two numbers.
    Between(f32, f32),
    /// One byte again and again.
    Byte(u8),
}

/// Writes the folder; the file `complete` comes last.
pub fn write(folder: &Path, config: &Value, entries: &[Entry]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let quantization = config.get("quantization");
    let pieces: Vec<Piece> = entries.iter().flat_map(|entry| pieces(entry, quantization)).collect();
    let mut shards: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut filled = 0;
    for piece in pieces {
        if filled > 0 && filled + piece.bytes > SHARD {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += piece.bytes;
        if let Some(shard) = shards.last_mut() {
            shard.push(piece);
        }
    }
    let mut random = Random(20_261_121);
    let pool: Vec<u8> = (0..POOL / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let (mut places, mut total) = (Map::new(), 0);
    for (index, shard) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", index + 1, shards.len());
        write_shard(&folder.join(&name), shard, &pool, &mut random)?;
        for piece in shard {
            places.insert(piece.name.clone(), json!(name));
            total += piece.bytes;
        }
    }
    let shown = towers::prompts(config);
    let mut files = vec![
        ("config.json", config.clone()),
        (
            "model.safetensors.index.json",
            json!({"metadata": {"total_size": total}, "weight_map": places}),
        ),
        (
            "tokenizer_config.json",
            json!({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>",
                   "chat_template": shown.as_ref().map_or("{% for message in messages %}{{ message.content }}{% endfor %}", |shown| shown.template)}),
        ),
        (
            "tokenizer.json",
            json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": control_tokens(shown.as_ref()),
                   "normalizer": null, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                       {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": true}]},
                   "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
                   "model": {"type": "WordLevel", "vocab": vocabulary(), "unk_token": "<unk>"}}),
        ),
    ];
    files.extend(shown.map(|shown| ("preprocessor_config.json", shown.processor)));
    for (name, value) in files {
        std::fs::write(folder.join(name), value.to_string())?;
    }
    std::fs::write(folder.join("complete"), "")
}

/// Tokens that no text becomes.
fn control_tokens(shown: Option<&ImagePrompts>) -> Vec<Value> {
    let token = |(id, content): (u32, &str)| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let of_images = shown
        .iter()
        .flat_map(|shown| (WORDS..).zip(shown.tokens.iter().copied()));
    [(1, "<eos>")].into_iter().chain(of_images).map(token).collect()
}

/// The ten digits, and some words that answers are drawn from; other text is unknown.
fn vocabulary() -> Map<String, Value> {
    let special = ["<unk>".to_owned(), "<eos>".to_owned()];
    let words = special
        .into_iter()
        .chain((0..10).map(|digit| digit.to_string()))
        .chain((12..WORDS).map(|id| format!("word{id}")));
    words.zip(0..).map(|(word, id)| (word, Value::from(id))).collect()
}

/// The tensors that stand for one entry: a quantized matrix has up to three.
fn pieces(entry: &Entry, quantization: Option<&Value>) -> Vec<Piece> {
    let columns = entry.shape.last().copied().unwrap_or(1);
    let piece = |name: &str, dtype, shape: &[u64], fill| {
        let width = match dtype {
            "U32" => 4,
            "U8" => 1,
            _ => 2,
        };
        Piece {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            bytes: shape.iter().product::<u64>() * width,
            fill,
        }
    };
    let size = if entry.kind == Kind::Small { 0.25 } else { 1.0 };
    let spread = size * (columns as f32).sqrt().recip();
    let plain = |fill| vec![piece(&entry.name, "BF16", &entry.shape, fill)];
    match (entry.kind, quantization) {
        (Kind::Factors, _) => plain(Fill::Between(0.75, 1.25)),
        (Kind::Constant(number), _) => plain(Fill::Between(number, number)),
        (Kind::Router, _) => plain(Fill::Between(-6.8 * spread, 6.8 * spread)),
        (Kind::Offsets, _) => plain(Fill::Between(-0.1, 0.1)),
        (Kind::Wide, _) | (Kind::Matrix | Kind::Small, None) => plain(Fill::Between(-1.7 * spread, 1.7 * spread)),
        (Kind::Matrix | Kind::Small, Some(format)) => {
            let number = |field: &str, usual| format[field].as_u64().unwrap_or(usual);
            let (bits, group) = (number("bits", 4), number("group_size", 64));
            let last = |length: u64| {
                let mut shape = entry.shape.clone();
                shape.last_mut().into_iter().for_each(|columns| *columns = length);
                shape
            };
            let path = entry.name.trim_end_matches(".weight");
            let weight = piece(&entry.name, "U32", &last(columns * bits / 32), Fill::Bits);
            let (scales, groups) = (format!("{path}.scales"), last(columns / group));
            if format["mode"] == "mxfp4" {
                // The four bit floats go up to 6; the byte is an exponent of 2.
                let exponent = 127 + (spread / 3.0).log2().round() as i32;
                let fill = Fill::Byte(exponent.clamp(0, 254) as u8);
                return vec![weight, piece(&scales, "U8", &groups, fill)];
            }
            // Numbers from 0 to 15 have a mean of 7.5 and spread by 4.6.
            let (scale, biases) = (spread / 4.6, format!("{path}.biases"));
            let [scaled, shifted] = [
                Fill::Between(scale * 0.9, scale * 1.1),
                Fill::Between(-7.6 * scale, -7.4 * scale),
            ];
            vec![
                weight,
                piece(&scales, "BF16", &groups, scaled),
                piece(&biases, "BF16", &groups, shifted),
            ]
        }
    }
}

fn write_shard(path: &Path, pieces: &[Piece], pool: &[u8], random: &mut Random) -> Result<()> {
    let (mut header, mut offset) = (Map::new(), 0);
    header.insert("__metadata__".into(), json!({"format": "mlx"}));
    for piece in pieces {
        let end = offset + piece.bytes;
        header.insert(
            piece.name.clone(),
            json!({"dtype": piece.dtype, "shape": piece.shape, "data_offsets": [offset, end]}),
        );
        offset = end;
    }
    let mut header = Value::Object(header).to_string();
    let blanks = header.len().next_multiple_of(8) - header.len();
    header.push_str(&" ".repeat(blanks));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for piece in pieces {
        let mut left = piece.bytes as usize;
        match piece.fill {
            Fill::Byte(byte) => file.write_all(&vec![byte; left])?,
            Fill::Bits => {
                while left > 0 {
                    let start = random.next() as usize % (pool.len() / 2);
                    let part = left.min(pool.len() - start);
                    file.write_all(&pool[start..start + part])?;
                    left -= part;
                }
            }
            Fill::Between(low, high) => {
                for _ in 0..left / 2 {
                    let number = low + (high - low) * (random.next() >> 40) as f32 / (1u64 << 24) as f32;
                    file.write_all(&((number.to_bits() >> 16) as u16).to_le_bytes())?;
                }
            }
        }
    }
    file.flush()
}

/// Marsaglia's xorshift with a multiplied end ("xorshift64*").
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
