//! A model in GGUF files as the folder that it becomes: which tensors, in which format, in which files, and the small
//! files beside them. The numbers are read and converted a stretch of rows at a time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use serde_json::{json, Map, Value as Json};

use super::architecture::{Architecture, FILTERS, LAYER, ROWS, TOP, UNUSED};
use super::blocks::{convert, Change, Half, Loss, Parts, Target as Format, Way};
use super::config::{architecture, config, Widths};
use super::file::{GgufFile, Kind, Stored};
use super::order::{RowOrder, ValueHeads};
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
}

/// The way of a tensor of the original.
#[derive(Debug, Clone, Copy)]
struct Source {
    stored: usize,
    place: Order,
    half: Option<Half>,
    change: Change,
}

/// The order of a tensor's numbers.
#[derive(Debug, Clone, Copy)]
struct Order {
    rows: RowOrder,
    /// The heads that its columns belong to, if they are put back in order.
    columns: Option<ValueHeads>,
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
            let change = change(&tensor.name, row);
            // A decay is the exponential of an exponential, so it keeps its precision.
            let half = half.filter(|_| change != Change::Logarithm);
            for (name, place) in places(tensor, row, &widths)? {
                targets.push(target(name, tensor, half, place));
                sources.push(Source {
                    stored,
                    place,
                    half,
                    change,
                });
            }
        }
        complete(file, &widths)?;
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
        })
    }

    /// Bytes of the new weight files.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes).sum()
    }

    /// Bytes that are read of the original.
    pub fn source_bytes(&self) -> u64 {
        let sources = self.sources.iter();
        sources
            .map(|source| (&self.file.tensors()[source.stored], source.place.rows))
            .map(|(stored, rows)| match rows {
                RowOrder::Half(..) => stored.bytes() / 2,
                _ => stored.bytes(),
            })
            .sum()
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
        let Order { rows: order, columns } = source.place;
        let (rows, row_bytes) = row_count(stored, order);
        let together = order.together(rows);
        if together.saturating_mul(row_bytes) > LONGEST {
            return Err(Error::Unsupported(format!("rows of {row_bytes} bytes in `{name}`")).into());
        }
        let most = (AT_ONCE / row_bytes.max(1) / together.max(1)).max(1) * together;
        let mut loss = Loss::default();
        let format = Format {
            half: source.half,
            change: source.change,
        };
        for Range { start: mut from, end } in order.stretches(rows).unwrap_or_default() {
            while from < end {
                let count = most.min(end - from);
                let bytes = self.file.read_bytes(stored, from * row_bytes, count * row_bytes)?;
                let bytes = order.ordered(bytes, row_bytes as usize, together);
                let mut parts = convert(stored.kind, format, name, &bytes, &mut loss)?;
                if let Some(heads) = columns {
                    for part in [&mut parts.weight, &mut parts.scales, &mut parts.biases] {
                        heads.columns_in_order(part, count as usize);
                    }
                }
                write(parts, count * row_bytes)?;
                from += count;
            }
        }
        Ok(Changed {
            kind: stored.kind,
            bits: Way::of(stored.kind).quantization().map(|format| format.bits),
            loss,
        })
    }
}

/// The rows of a tensor, and the bytes of one. The numbers of a list whose order changes are rows of one.
fn row_count(stored: &Stored, order: RowOrder) -> (u64, u64) {
    match stored.shape[..] {
        [count] if order != RowOrder::Stored => (count, stored.kind.bytes()),
        _ => (stored.rows(), stored.row_bytes()),
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

/// The change of a tensor's numbers.
fn change(name: &str, row: &Architecture) -> Change {
    match row.norms {
        added if added != 0.0 && name.ends_with("norm.weight") => Change::Add(added),
        _ if name.ends_with(".ssm_a") => Change::Logarithm,
        _ => Change::Stays,
    }
}

/// The names of a tensor in the folder, of which it may become two, and the order of their numbers.
fn places(tensor: &Stored, row: &Architecture, widths: &Widths) -> Result<Vec<(String, Order)>> {
    let unknown = || {
        Error::Unsupported(format!(
            "the tensor `{}` of the architecture `{}`",
            tensor.name, row.name
        ))
    };
    let find = |names: &[(&'static str, &'static str)], name: &str| {
        names.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
    };
    if !tensor.kind.is_plain() && tensor.shape.len() < 2 {
        return Err(unknown());
    }
    let layer = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    let Some((number, rest)) = layer else {
        let (stem, end) = split_end(&tensor.name).ok_or_else(unknown)?;
        let path = find(row.top, stem).or_else(|| find(TOP, stem)).ok_or_else(unknown)?;
        return Ok(vec![(format!("{path}.{end}"), STORED)]);
    };
    let number: u64 = number.parse().map_err(|_| unknown())?;
    if number >= widths.layers {
        // A layer that drafts has a number after those that answer.
        let drafts = tensor.name.contains(".nextn.") || widths.drafting > number - widths.layers;
        return if drafts { Ok(Vec::new()) } else { Err(unknown()) };
    }
    let at = |path: &str| format!("model.layers.{number}.{path}");
    if let Some(path) = find(row.names, rest) {
        return Ok(vec![(at(path), order(tensor, rest, row, widths)?)]);
    }
    let (part, end) = split_end(rest).ok_or_else(unknown)?;
    let path = |part: &str| find(row.names, part).or_else(|| find(LAYER, part)).ok_or_else(unknown);
    if part == "ffn_gate_up_exps" {
        let halves = ["ffn_gate_exps", "ffn_up_exps"].into_iter().enumerate();
        let half = |(half, part)| {
            let rows = checked(tensor, RowOrder::Half(half, widths.experts))?;
            Ok((at(&format!("{}.{end}", path(part)?)), Order { rows, ..STORED }))
        };
        return halves.map(half).collect();
    }
    let name = at(&format!("{}.{end}", path(part)?));
    Ok(vec![(name, order(tensor, part, row, widths)?)])
}

const STORED: Order = Order {
    rows: RowOrder::Stored,
    columns: None,
};

/// A name without its `weight` or `bias`, and that.
fn split_end(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.')
        .filter(|(_, end)| matches!(*end, "weight" | "bias"))
}

/// An order that a tensor can have.
fn checked(tensor: &Stored, order: RowOrder) -> Result<RowOrder> {
    let (rows, _) = row_count(tensor, order);
    let fits = order.stretches(rows).is_some()
        && (tensor.shape.len() <= 2 || matches!(order, RowOrder::Stored | RowOrder::Half(..)));
    fits.then_some(order)
        .ok_or_else(|| Error::Unsupported(format!("{rows} rows of `{}`", tensor.name)))
}

/// The order of the numbers of a layer's part.
fn order(tensor: &Stored, part: &str, row: &Architecture, widths: &Widths) -> Result<Order> {
    let mut order = STORED;
    order.rows = match (part, widths.kinds.value_heads) {
        ("attn_q", _) if row.turned => RowOrder::Turned(widths.heads),
        ("attn_k", _) if row.turned => RowOrder::Turned(widths.key_heads),
        ("attn_qkv" | "ssm_conv1d", Some(heads)) => RowOrder::Values(heads, heads.before(), heads.width),
        ("attn_gate", Some(heads)) => RowOrder::Values(heads, 0, heads.width),
        ("ssm_beta" | "ssm_alpha" | "ssm_a" | "ssm_dt.bias", Some(heads)) => RowOrder::Values(heads, 0, 1),
        _ => RowOrder::Stored,
    };
    if let ("ssm_out", Some(heads)) = (part, widths.kinds.value_heads) {
        let whole = tensor.kind.is_plain() || heads.width.is_multiple_of(32);
        if !whole || tensor.columns() != heads.rows() {
            return Err(Error::Unsupported(format!(
                "{} columns of `{}`",
                tensor.columns(),
                tensor.name
            )));
        }
        order.columns = Some(heads);
    }
    checked(tensor, order.rows)?;
    Ok(order)
}

fn target(name: String, tensor: &Stored, half: Option<Half>, order: Order) -> Target {
    let quantization = Way::of(tensor.kind).quantization();
    let mut shape = tensor.shape.clone();
    let is_row = |path: &str| name.strip_suffix(".weight").is_some_and(|name| name.ends_with(path));
    if shape.len() == 1 && ROWS.into_iter().any(is_row) {
        shape.insert(0, 1);
    }
    if shape.len() == 2 && FILTERS.into_iter().any(is_row) {
        shape.push(1);
    }
    if let (RowOrder::Half(..), [.., rows, _]) = (order.rows, &mut shape[..]) {
        *rows /= 2;
    }
    Target {
        name,
        shape,
        dtype: half.map_or("F32", Half::name),
        pieces: Vec::new(),
        quantization,
    }
}

/// Refuses files in which a layer lacks tensors that others of its kind have.
fn complete(file: &GgufFile, widths: &Widths) -> Result<()> {
    let kind = |layer: u64| widths.kinds.kinds.get(layer as usize).copied().unwrap_or(0);
    let mut found: BTreeMap<(u8, &str), u64> = BTreeMap::new();
    for tensor in file.tensors() {
        let layer = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        if let Some((layer, part)) = layer.and_then(|(number, part)| Some((number.parse().ok()?, part))) {
            if layer < widths.layers {
                *found.entry((kind(layer), part)).or_default() += 1;
            }
        }
    }
    let mut layers: BTreeMap<u8, u64> = BTreeMap::new();
    for layer in 0..widths.layers {
        *layers.entry(kind(layer)).or_default() += 1;
    }
    let of_kind = |kind: u8| layers.get(&kind).copied().unwrap_or(0);
    let mut lacking = found
        .into_iter()
        .map(|((kind, part), count)| (part, count, of_kind(kind)));
    match lacking.find(|(_, count, layers)| count != layers) {
        Some((part, count, layers)) => Err(file.broken(format!("{count} of {layers} layers have `{part}`"))),
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
