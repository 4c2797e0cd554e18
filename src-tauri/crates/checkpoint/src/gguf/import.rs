//! A model in GGUF files as the folder that it becomes: which tensors, in which format, in which files, and the small
//! files beside them. The numbers are read and converted a stretch of rows at a time.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{json, Map, Value as Json};

use super::architecture::{Architecture, BARE, LAYER, ROWS, TOP, UNUSED};
use super::blocks::{convert, Half, Loss, Parts, Target as Format, Way};
use super::config::{architecture, config, Widths};
use super::file::{GgufFile, Kind, Stored};
use super::tokenizer::{check_tokenizer, tokenizer_files};
use crate::config::Quantization;
use crate::conversion::{shards, Shard, Target};
use crate::error::{Error, Result};
use crate::model::ModelConfig;

/// Bytes that are read at once, if rows are no longer.
const AT_ONCE: u64 = 8 << 20;

/// The most bytes of rows that belong together.
const LONGEST: u64 = 256 << 20;

/// How the names of a vision part begin, which Ollama has in the same file.
const VISION: [&str; 2] = ["v.", "mm."];

/// A model to come.
#[derive(Debug)]
pub struct GgufImport {
    /// The files that it is read from.
    pub file: GgufFile,
    /// The weight files.
    pub shards: Vec<Shard>,
    /// The tensors.
    pub targets: Vec<Target>,
    /// `model.safetensors.index.json`.
    pub index: Json,
    /// `config.json`.
    pub config: Json,
    /// The other files, by their names.
    pub others: Vec<(&'static str, Json)>,
    /// True if the file has a vision part, which is left out.
    pub text_only: bool,
    /// The origin of each target.
    sources: Vec<Source>,
    half: Option<Half>,
}

/// The way of a tensor of the original.
#[derive(Debug, Clone, Copy)]
struct Source {
    stored: usize,
    /// Heads whose rows are put back in order.
    heads: Option<u64>,
    added: f32,
}

/// A format, its successor, and the loss between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changed {
    /// The format in the GGUF file.
    pub kind: Kind,
    /// Bits of a number in the folder; `None` for plain numbers.
    pub bits: Option<u32>,
    /// The loss of all its tensors.
    pub loss: Loss,
}

/// The parts of a folder that a header alone tells.
struct Layout {
    config: Map<String, Json>,
    targets: Vec<Target>,
    sources: Vec<Source>,
    text_only: bool,
    half: Option<Half>,
}

/// True if a model in these files can be imported, as far as their headers tell without the lists of tokens. Reads
/// faster than [`GgufImport::plan`].
///
/// # Errors
/// The reason why it cannot.
pub fn check_gguf(path: &Path) -> Result<GgufFile> {
    let file = GgufFile::open(path)?;
    Layout::of(&file)?;
    check_tokenizer(&file)?;
    Ok(file)
}

impl Layout {
    fn of(file: &GgufFile) -> Result<Self> {
        let row = architecture(file)?;
        let half = half(file, row);
        let (mut config, widths) = config(file, row, half)?;
        let (mut targets, mut sources, mut text_only) = (Vec::new(), Vec::new(), false);
        for (stored, tensor) in file.tensors().iter().enumerate() {
            if VISION.iter().any(|start| tensor.name.starts_with(start)) {
                text_only = true;
                continue;
            }
            if UNUSED.contains(&tensor.name.as_str()) {
                continue;
            }
            let (name, heads) = place(tensor, row, widths)?;
            let is_norm = tensor.name.ends_with("norm.weight");
            sources.push(Source {
                stored,
                heads,
                added: if is_norm { row.norms } else { 0.0 },
            });
            targets.push(target(name, tensor, half));
        }
        complete(file, widths)?;
        if let Some(quantization) = quantization(&targets) {
            config.insert("quantization".to_owned(), quantization.clone());
            config.insert("quantization_config".to_owned(), quantization);
        }
        // Refuses now what the loader would refuse later.
        ModelConfig::parse(&Json::Object(config.clone()).to_string())?;
        Ok(Self {
            config,
            targets,
            sources,
            text_only,
            half,
        })
    }
}

impl GgufImport {
    /// Plans the import of a file, or of all parts of a model by one of them.
    ///
    /// # Errors
    /// Every reason why it cannot be imported; nothing of the tensors is read before.
    pub fn plan(path: &Path) -> Result<Self> {
        let file = GgufFile::open(path)?;
        let Layout {
            mut config,
            targets,
            sources,
            text_only,
            half,
        } = Layout::of(&file)?;
        check_tokenizer(&file)?;
        let tokenizer = tokenizer_files(&file, architecture(&file)?)?;
        config.extend(tokenizer.ids);
        let (shards, index) = shards(&targets);
        Ok(Self {
            others: vec![
                ("tokenizer.json", tokenizer.tokenizer),
                ("tokenizer_config.json", tokenizer.config),
                ("generation_config.json", tokenizer.generation),
            ],
            config: Json::Object(config),
            file,
            shards,
            targets,
            index,
            text_only,
            sources,
            half,
        })
    }

    /// Bytes of the new weight files.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }

    /// Bytes that are read of the original.
    pub fn source_bytes(&self) -> u64 {
        let stored = self.sources.iter().map(|source| &self.file.tensors()[source.stored]);
        stored.map(Stored::bytes).sum()
    }

    /// Reads a tensor and hands out its parts piece by piece, each with the bytes that were read for it.
    ///
    /// # Errors
    /// [`Error::Unreadable`], [`Error::Unsupported`] for numbers that 16 bits cannot hold, and those of `write`.
    pub fn read<E: From<Error>>(
        &self,
        target: usize,
        mut write: impl FnMut(Parts, u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<Changed, E> {
        let (source, name) = (self.sources[target], &self.targets[target].name);
        let stored = &self.file.tensors()[source.stored];
        let (rows, row_bytes) = match stored.shape[..] {
            // The numbers of a bias are rows of one.
            [count] if source.heads.is_some() => (count, stored.kind.bytes()),
            _ => (stored.rows(), stored.row_bytes()),
        };
        let together = source.heads.map_or(1, |heads| rows / heads);
        if together.saturating_mul(row_bytes) > LONGEST {
            return Err(Error::Unsupported(format!("rows of {row_bytes} bytes in `{name}`")).into());
        }
        let most = (AT_ONCE / row_bytes.max(1) / together.max(1)).max(1) * together;
        let mut loss = Loss::default();
        let format = Format {
            half: self.half,
            added: source.added,
        };
        let mut from = 0;
        while from < rows {
            let count = most.min(rows - from);
            let bytes = self.file.read_bytes(stored, from * row_bytes, count * row_bytes)?;
            let bytes = match source.heads {
                Some(_) => in_order(&bytes, row_bytes as usize, together as usize),
                None => bytes,
            };
            write(
                convert(stored.kind, format, name, &bytes, &mut loss)?,
                count * row_bytes,
            )?;
            from += count;
        }
        Ok(Changed {
            kind: stored.kind,
            bits: Way::of(stored.kind).quantization().map(|format| format.bits),
            loss,
        })
    }
}

/// The format of scales and plain numbers: that of the embedding if nothing is quantized; `None` for 32 bits.
fn half(file: &GgufFile, row: &Architecture) -> Option<Half> {
    if file.tensors().iter().any(|tensor| !tensor.kind.is_plain()) {
        return Some(row.half);
    }
    match file.tensor("token_embd.weight").map(|tensor| tensor.kind) {
        Some(Kind::F16) => Some(Half::F16),
        Some(Kind::BF16) => Some(Half::BF16),
        _ => None,
    }
}

/// The name of a tensor in the folder, and the heads whose rows are turned.
fn place(tensor: &Stored, row: &Architecture, widths: Widths) -> Result<(String, Option<u64>)> {
    let unknown = || {
        Error::Unsupported(format!(
            "the tensor `{}` of the architecture `{}`",
            tensor.name, row.name
        ))
    };
    let (stem, end) = tensor.name.rsplit_once('.').ok_or_else(unknown)?;
    if (end != "weight" && end != "bias") || (!tensor.kind.is_plain() && tensor.shape.len() < 2) {
        return Err(unknown());
    }
    let find = |names: &[(&'static str, &'static str)], stem: &str| {
        names.iter().find(|(known, _)| *known == stem).map(|(_, path)| *path)
    };
    if let Some(path) = find(TOP, stem) {
        return Ok((format!("{path}.{end}"), None));
    }
    let (number, part) = stem
        .strip_prefix("blk.")
        .and_then(|rest| rest.split_once('.'))
        .ok_or_else(unknown)?;
    let number: u64 = number.parse().map_err(|_| unknown())?;
    let path = find(row.names, part)
        .or_else(|| find(LAYER, part))
        .ok_or_else(unknown)?;
    if number >= widths.layers {
        return Err(unknown());
    }
    let heads = match part {
        "attn_q" => Some(widths.heads),
        "attn_k" => Some(widths.key_heads),
        _ => None,
    };
    let heads = heads.filter(|_| row.turned);
    let rows = if tensor.shape.len() == 1 {
        tensor.columns()
    } else {
        tensor.rows()
    };
    if heads.is_some_and(|heads| !rows.is_multiple_of(2 * heads)) || (heads.is_some() && tensor.shape.len() > 2) {
        return Err(Error::Unsupported(format!("{rows} rows of `{}`", tensor.name)));
    }
    let name = match BARE.contains(&path) {
        true => format!("model.layers.{number}.{path}"),
        false => format!("model.layers.{number}.{path}.{end}"),
    };
    Ok((name, heads))
}

fn target(name: String, tensor: &Stored, half: Option<Half>) -> Target {
    let quantization = Way::of(tensor.kind).quantization();
    let mut shape = tensor.shape.clone();
    let is_row = |path: &str| name.strip_suffix(".weight").is_some_and(|name| name.ends_with(path));
    if shape.len() == 1 && ROWS.into_iter().any(is_row) {
        shape.insert(0, 1);
    }
    Target {
        name,
        shape,
        dtype: half.map_or("F32", Half::name),
        pieces: Vec::new(),
        quantization,
    }
}

/// Refuses files in which a layer lacks tensors that others have.
fn complete(file: &GgufFile, widths: Widths) -> Result<()> {
    let mut layers: BTreeMap<&str, u64> = BTreeMap::new();
    for tensor in file.tensors() {
        if let Some((_, part)) = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            *layers.entry(part).or_default() += 1;
        }
    }
    match layers.into_iter().find(|(_, count)| *count != widths.layers) {
        Some((part, count)) => Err(file.broken(format!("{count} of {} layers have `{part}`", widths.layers))),
        None => Ok(()),
    }
}

/// `quantization` of config.json as mlx-lm writes it: the format of most numbers, and matrices in other ones.
fn quantization(targets: &[Target]) -> Option<Json> {
    let mut counts: HashMap<(u32, &str), u64> = HashMap::new();
    let key = |format: Quantization| (format.bits, format.mode.name());
    let quantized = || targets.iter().filter_map(|target| Some((target, target.quantization?)));
    for (target, format) in quantized() {
        *counts.entry(key(format)).or_default() += target.numbers();
    }
    let (most, _) = counts.into_iter().max_by_key(|(key, count)| (*count, *key))?;
    let describe = |(bits, mode): (u32, &str)| json!({"group_size": 32, "bits": bits, "mode": mode});
    let mut described = describe(most);
    let others = quantized().filter(|(_, format)| key(*format) != most);
    let others: Map<String, Json> = others
        .map(|(target, format)| (target.path().to_owned(), describe(key(format))))
        .collect();
    if let Some(described) = described.as_object_mut() {
        described.extend(others);
    }
    Some(described)
}

/// Rows of whole heads with the first halves of their rotations before the second ones.
fn in_order(bytes: &[u8], row: usize, head: usize) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(row * head) {
        for half in 0..2 {
            let rows = head.chunks_exact(row).skip(half).step_by(2);
            rows.for_each(|row| ordered.extend_from_slice(row));
        }
    }
    ordered
}
