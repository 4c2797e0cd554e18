//! The tensors of a conversion, made of those of the original by the rules of its family.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{json, Map, Value};

use super::experts::Stacks;
use super::recipe::{Decisions, Recipe};
use super::rules::{is_left_out, is_matrix, Rules};
use super::target::{is_float, known_type, Change, Stored, Target};
use crate::config::decoder::LmHead;
use crate::config::{Family, Quantization};
use crate::error::{Error, Result};
use crate::files::{tower_tensor, weight_files, Header};
use crate::model::ModelConfig;

/// Ends of names of what quantizers write.
const QUANTIZED: [&str; 8] = [
    ".scales",
    ".qweight",
    ".weight_packed",
    ".weight_scale",
    ".weight_scale_inv",
    "_blocks",
    ".absmax",
    ".SCB",
];

/// The weight files of a folder, and their tensors.
pub(super) fn sources(dir: &Path) -> Result<(Vec<String>, BTreeMap<String, Stored>)> {
    let (mut files, mut sources) = (Vec::new(), BTreeMap::new());
    for name in weight_files(dir)? {
        let path = dir.join(&name);
        let (header, data) = Header::read(&path)?;
        header.check(&path, data)?;
        for place in header.places() {
            let is_quantized = QUANTIZED.iter().any(|end| place.name.ends_with(end))
                || place.dtype.starts_with("F8")
                || (place.dtype == "U32" && place.name.ends_with(".weight"));
            if is_quantized {
                return Err(Error::AlreadyQuantized(format!(
                    "`{}` holds {}",
                    place.name, place.dtype
                )));
            }
            // A shape with a zero in it may claim any number of rows.
            if place.shape.contains(&0) {
                return Err(Error::Unsupported(format!("`{}`, which holds nothing", place.name)));
            }
            let dtype = known_type(place.dtype)
                .ok_or_else(|| Error::Unsupported(format!("numbers of type {} in `{}`", place.dtype, place.name)))?;
            let stored = Stored {
                file: files.len(),
                offset: place.offset,
                dtype,
                shape: place.shape.to_vec(),
            };
            sources.insert(place.name.to_owned(), stored);
        }
        files.push(name);
    }
    Ok((files, sources))
}

/// The outcome of choosing formats.
pub(super) struct Quantized {
    /// Formats that config.json names by their paths.
    pub named: Vec<(String, Quantization)>,
    pub undivided: Vec<String>,
}

/// All that the conversion of one model depends on.
pub(super) struct Builder<'a> {
    rules: Rules,
    config: &'a Value,
    layers: u64,
    tied: bool,
    /// The first layer that has no keys and values of its own.
    shared_from: u64,
    /// The sizes of a head in the projection of latents: of keys without positions, and of values.
    latent_rows: Option<[u64; 2]>,
    /// The type that all numbers are cast to.
    dtype: Option<&'static str>,
}

impl<'a> Builder<'a> {
    pub fn new(parsed: &ModelConfig, config: &'a Value) -> Result<Self> {
        let text = config.get("text_config").unwrap_or(config);
        for fields in [config, text] {
            for name in ["quantization", "quantization_config"] {
                if fields.get(name).is_some_and(|value| !value.is_null()) {
                    return Err(Error::AlreadyQuantized(format!("config.json has `{name}`")));
                }
            }
        }
        let number = |name: &str| text.get(name).and_then(Value::as_u64);
        let layers = ["num_hidden_layers", "num_layers", "n_layer"]
            .iter()
            .find_map(|name| number(name));
        let layers = layers.ok_or(Error::MissingField("num_hidden_layers"))?;
        let tied = [text, config]
            .iter()
            .find_map(|fields| fields.get("tie_word_embeddings")?.as_bool());
        let always_tied = matches!(&parsed.family, Family::Decoder(decoder) if decoder.lm_head == LmHead::Tied);
        let rules = Rules::of(&parsed.model_type);
        let latent_rows = number("qk_nope_head_dim").zip(number("v_head_dim"));
        // mlx-lm reads the older name at the top, and the newer one in `text_config` alone.
        let dtype = match config.get("torch_dtype").filter(|value| !value.is_null()) {
            Some(named) => named.as_str(),
            None => config.get("text_config").and_then(|text| text.get("dtype")?.as_str()),
        };
        Ok(Self {
            layers,
            tied: tied.unwrap_or(false) || always_tied,
            shared_from: match parsed.model_type.starts_with("gemma4") {
                true => layers.saturating_sub(number("num_kv_shared_layers").unwrap_or(0)),
                false => u64::MAX,
            },
            latent_rows: latent_rows
                .filter(|_| rules.latents)
                .map(|(keys, values)| [keys, values]),
            dtype: match dtype {
                Some("bfloat16") => Some("BF16"),
                Some("float16") => Some("F16"),
                Some("float32") => Some("F32"),
                _ => None,
            },
            rules,
            config,
        })
    }

    /// The tensors of the language part, and those of a vision encoder, unquantized.
    pub fn targets(&self, sources: BTreeMap<String, Stored>) -> Result<(Vec<Target>, Vec<Target>)> {
        let is_torchs = |(name, stored): (&String, &Stored)| name.ends_with("conv1d.weight") && stored.columns() != 1;
        let from_one = self.rules.norms_from_one && sources.iter().any(is_torchs);
        let (mut targets, mut towers, mut stacks) = (Vec::new(), Vec::new(), Stacks::default());
        for (name, stored) in sources {
            if let Some(short) = tower_tensor(&name) {
                towers.push(plain(short, &stored, Change::None));
                continue;
            }
            let name = self.rules.name(&name);
            if is_left_out(&name) || self.is_absent(&name) {
                continue;
            }
            match stacks.take(&self.rules, &name, stored)? {
                Ok(experts) => targets.extend(experts),
                Err(stored) => match (self.latent_rows, name.strip_suffix(".kv_b_proj.weight")) {
                    (Some(rows), Some(before)) => targets.extend(latents(before, &stored, rows)?),
                    _ => targets.push(plain(name.clone(), &stored, change_of(&name, &stored, from_one))),
                },
            }
        }
        targets.extend(stacks.finish()?);
        let has_head = |target: &Target| target.name == "lm_head.weight";
        if self.rules.copied_head && !targets.iter().any(has_head) {
            let embedding = targets.iter().find(|target| target.name == "model.embed_tokens.weight");
            targets.extend(embedding.cloned().map(|copy| Target {
                name: "lm_head.weight".into(),
                ..copy
            }));
        }
        for target in &mut targets {
            let casts = is_float(target.dtype) && !self.rules.uncast.iter().any(|part| target.name.contains(part));
            if let Some(dtype) = self.dtype.filter(|_| casts) {
                target.dtype = dtype;
            }
        }
        targets.sort_by_cached_key(|target| natural(&target.name));
        towers.sort_by_cached_key(|target| natural(&target.name));
        Ok((targets, towers))
    }

    /// True for a tensor that the model does not have: layers beyond the last, which draft, an output layer that is the
    /// embedding, and keys and values of layers that take those of others.
    fn is_absent(&self, name: &str) -> bool {
        let layer = name.split_once("layers.").and_then(|(_, rest)| {
            let number = rest.split('.').next()?;
            number.parse::<u64>().ok()
        });
        let shares = |layer: u64| {
            let taken = [".self_attn.k_proj", ".self_attn.v_proj", ".self_attn.k_norm"];
            layer >= self.shared_from && taken.iter().any(|part| name.contains(part))
        };
        layer.is_some_and(|layer| layer >= self.layers || shares(layer))
            || (self.tied && !self.rules.copied_head && name.trim_start_matches("language_model.") == "lm_head.weight")
    }

    /// Chooses the format of each matrix.
    pub fn quantize(&self, targets: &mut [Target], recipe: &Recipe) -> Result<Quantized> {
        let down = targets.iter().find(|target| target.name.contains("down_proj"));
        let layer_segment = down.and_then(|target| {
            let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            target.name.split('.').position(is_number)
        });
        if recipe.sensitive_bits.is_some() && layer_segment.is_none() {
            return Err(Error::Recipe(
                "this model has no layers with a `down_proj`, by which mixtures choose; leave out the mixture".into(),
            ));
        }
        let decisions = Decisions {
            recipe,
            finer: self.rules.finer,
            layers: self.layers,
            layer_segment: layer_segment.unwrap_or(usize::MAX),
        };
        let (mut named, mut undivided, mut any) = (Vec::new(), Vec::new(), false);
        for target in targets {
            let is_kept = |path: &str| self.rules.plain.iter().any(|end| path.ends_with(end));
            let path = target.path().to_owned();
            if path == target.name
                || target.shape.len() < 2
                || !is_float(target.dtype)
                || !is_matrix(&path)
                || is_kept(&path)
            {
                continue;
            }
            let columns = target.shape.last().copied().unwrap_or(0);
            match decisions.of(&path, columns) {
                None => undivided.push(path),
                Some(decision) => {
                    any = true;
                    target.quantization = Some(decision.format);
                    if decision.named {
                        named.push((path, decision.format));
                    }
                }
            }
        }
        if !any {
            return Err(Error::Recipe(format!(
                "groups of {} divide no matrix of this model; choose a smaller group",
                recipe.most.group_size
            )));
        }
        Ok(Quantized { named, undivided })
    }

    /// config.json with the formats, its fields in the order of the alphabet as mlx-lm writes them.
    pub fn new_config(&self, recipe: &Recipe, named: Vec<(String, Quantization)>) -> Value {
        let format = |format: Quantization| {
            let Quantization { group_size, bits, mode } = format;
            json!({"group_size": group_size, "bits": bits, "mode": mode.name()})
        };
        let mut quantization = format(recipe.most);
        for (path, other) in named {
            quantization[path] = format(other);
        }
        let mut fields: BTreeMap<String, Value> = match self.config {
            Value::Object(fields) => fields.clone().into_iter().collect(),
            _ => BTreeMap::new(),
        };
        fields.remove("_name_or_path");
        fields.insert("quantization_config".into(), quantization.clone());
        fields.insert("quantization".into(), quantization);
        Value::Object(Map::from_iter(fields))
    }
}

fn plain(name: String, stored: &Stored, change: Change) -> Target {
    let mut shape = stored.shape.clone();
    // A convolution of each channel by itself, as torch has it; the numbers stand in the same order in MLX's.
    let is_convolution = name.ends_with("conv.weight") || name.ends_with("conv1d.weight");
    if let (true, [_, 1, width]) = (is_convolution && change == Change::None, &shape[..]) {
        if *width > 1 && tower_tensor(&name).is_none() {
            shape.swap(1, 2);
        }
    }
    Target {
        name,
        shape,
        dtype: stored.dtype,
        pieces: stored.whole(change),
        quantization: None,
    }
}

/// The change of a tensor that keeps its name.
fn change_of(name: &str, stored: &Stored, norms_from_one: bool) -> Change {
    let norms = [
        ".input_layernorm.weight",
        ".post_attention_layernorm.weight",
        "model.norm.weight",
        ".q_norm.weight",
        ".k_norm.weight",
    ];
    match norms_from_one && stored.shape.len() == 1 && norms.iter().any(|end| name.ends_with(end)) {
        true => Change::PlusOne,
        false => Change::None,
    }
}

/// The projection of latents, `[heads · (keys + values), rank]`, as the two of each head.
fn latents(before: &str, stored: &Stored, [keys, values]: [u64; 2]) -> Result<[Target; 2]> {
    let (rows, rank, head) = (stored.rows(), stored.columns(), keys.saturating_add(values));
    if stored.shape.len() != 2 || head == 0 || !rows.is_multiple_of(head) {
        return Err(Error::Unsupported(format!(
            "latents of the shape {:?} in `{before}`",
            stored.shape
        )));
    }
    let heads = rows / head;
    let target = |name: &str, shape: [u64; 2], from: u64, rows: u64, change: Change| Target {
        name: format!("{before}.{name}.weight"),
        shape: vec![heads, shape[0], shape[1]],
        dtype: stored.dtype,
        pieces: (0..heads)
            .map(|number| stored.piece(number * head + from, rows, change))
            .collect(),
        quantization: None,
    };
    Ok([
        target("embed_q", [rank, keys], 0, keys, Change::Turned),
        target("unembed_out", [values, rank], keys, values, Change::None),
    ])
}

/// A key that sorts `layers.10` after `layers.9`.
fn natural(name: &str) -> Vec<(u64, String)> {
    let parts = name.split('.');
    parts
        .map(|part| {
            part.parse()
                .map_or((u64::MAX, part.to_owned()), |number| (number, String::new()))
        })
        .collect()
}
