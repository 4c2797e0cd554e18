//! Adapters: low-rank additions to a model's projections (LoRA, arXiv 2106.09685; DoRA, arXiv 2402.09353), in the
//! layouts of mlx-lm and of PEFT.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{without_wrappers, Header};
use crate::error::{Error, Result};

/// The file that describes an adapter, in both layouts.
pub const ADAPTER_CONFIG: &str = "adapter_config.json";

/// More of that file than any adapter has, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The addition to one projection `y = x·Wᵀ`: `scale · (x·down)·up`. Experts have a matrix each: `down` `[experts, rank,
/// inputs]` and `up` `[experts, outputs, rank]` (LoRASwitchLinear of mlx-lm). The inputs of a table are its tokens
/// (LoRAEmbedding).
#[derive(Debug, Clone, PartialEq)]
pub struct Addition {
    /// The tensor `[inputs, rank]`; `[rank, inputs]` if `turned`.
    pub down: String,
    /// The tensor `[rank, outputs]`; `[outputs, rank]` if `turned`.
    pub up: String,
    /// The tensor `[outputs]` of the lengths of the weight's rows (DoRA); `None` if they stay as they come.
    pub magnitude: Option<String>,
    /// The factor of the product.
    pub scale: f32,
    /// True if both matrices are stored as PEFT stores them, one row per output.
    pub turned: bool,
}

/// An adapter in a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    /// The model that it was trained for, as its config names it.
    pub base: Option<String>,
    /// The file with its tensors.
    pub file: PathBuf,
    /// Its additions by the projections' paths, without what wrappers put before them.
    pub additions: BTreeMap<String, Addition>,
}

/// `adapter_config.json`, the fields of both layouts.
#[derive(Deserialize)]
struct Config {
    // mlx-lm
    fine_tune_type: Option<String>,
    lora_parameters: Option<Parameters>,
    model: Option<String>,
    // PEFT
    peft_type: Option<String>,
    base_model_name_or_path: Option<String>,
    lora_alpha: Option<f32>,
    #[serde(default)]
    use_rslora: bool,
    alpha_pattern: Option<BTreeMap<String, f32>>,
    layer_replication: Option<Value>,
    trainable_token_indices: Option<Value>,
}

#[derive(Deserialize)]
struct Parameters {
    scale: f32,
}

/// The part of an addition that a tensor is.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Down,
    Up,
    Magnitude,
}

fn unusable<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Adapter(reason.into()))
}

impl Adapter {
    /// Reads the config and the header of the weights in an adapter's folder.
    ///
    /// # Errors
    /// [`Error::Adapter`] if it is no adapter, of a kind that is not known, or changes more than projections.
    pub fn read(dir: &Path) -> Result<Self> {
        let config = read_config(dir)?;
        let peft = config.peft_type.is_some();
        config.check_kind()?;
        let file = dir.join(if peft {
            "adapter_model.safetensors"
        } else {
            "adapters.safetensors"
        });
        let (header, data) = Header::read(&file)?;
        header.check(&file, data)?;
        let mut parts: BTreeMap<String, Vec<(Part, String, Vec<u64>)>> = BTreeMap::new();
        for place in header.places() {
            let Some((path, part)) = split_name(place.name, peft) else {
                return unusable(format!(
                    "it holds `{}`, and only low-rank additions to projections can be added",
                    place.name
                ));
            };
            let shape = place.shape.to_vec();
            let named = (part, place.name.to_owned(), shape);
            parts.entry(path.to_owned()).or_default().push(named);
        }
        if parts.is_empty() {
            return unusable("its file holds no tensor");
        }
        let additions = parts.into_iter().map(|(path, parts)| {
            let addition = config.addition(&path, &parts)?;
            Ok((path, addition))
        });
        Ok(Self {
            additions: additions.collect::<Result<_>>()?,
            base: config.model.or(config.base_model_name_or_path),
            file,
        })
    }
}

impl Config {
    fn check_kind(&self) -> Result<()> {
        let set = |field: &Option<Value>| field.as_ref().is_some_and(|value| !value.is_null());
        match (self.peft_type.as_deref(), self.fine_tune_type.as_deref()) {
            (Some("LORA"), _) if set(&self.layer_replication) => unusable("it repeats layers of the model"),
            (Some("LORA"), _) if set(&self.trainable_token_indices) => unusable("it changes the embedding of tokens"),
            (Some("LORA"), _) => Ok(()),
            (Some(kind), _) => unusable(format!("it is of the kind {kind}, and LoRA and DoRA can be added")),
            (None, Some("full")) => {
                unusable("it holds whole weights (`\"fine_tune_type\": \"full\"`); fuse it into a model of its own")
            }
            (None, None | Some("lora" | "dora")) => Ok(()),
            (None, Some(kind)) => unusable(format!("it is of the kind {kind}, and LoRA and DoRA can be added")),
        }
    }

    fn addition(&self, path: &str, parts: &[(Part, String, Vec<u64>)]) -> Result<Addition> {
        let find = |wanted: Part| parts.iter().find(|(part, ..)| *part == wanted);
        let (Some((_, down, down_shape)), Some((_, up, _))) = (find(Part::Down), find(Part::Up)) else {
            return unusable(format!("one of the two matrices of `{path}` is missing"));
        };
        let turned = self.peft_type.is_some();
        let scale = match (&self.lora_parameters, turned) {
            (Some(parameters), false) => parameters.scale,
            (None, false) => return unusable(format!("{ADAPTER_CONFIG} lacks `lora_parameters`")),
            (_, true) => self.scale_of_peft(path, down_shape.first().copied().unwrap_or_default())?,
        };
        if !scale.is_finite() {
            return unusable(format!("the scale of `{path}` is no number"));
        }
        Ok(Addition {
            down: down.clone(),
            up: up.clone(),
            magnitude: find(Part::Magnitude).map(|(_, name, _)| name.clone()),
            scale,
            turned,
        })
    }

    /// `alpha / rank`, or `alpha / √rank` with `use_rslora`; keys of `alpha_pattern` are names or ends of paths.
    fn scale_of_peft(&self, path: &str, rank: u64) -> Result<f32> {
        let patterns = self.alpha_pattern.iter().flatten();
        let mut alpha = self.lora_alpha;
        for (pattern, own) in patterns {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
            if !pattern.chars().all(plain) {
                return unusable(format!(
                    "`alpha_pattern` has the expression `{pattern}`, and names can be read"
                ));
            }
            let pattern = without_wrappers(pattern);
            let ends = path.strip_suffix(pattern);
            if ends.is_some_and(|before| before.is_empty() || before.ends_with('.')) {
                alpha = Some(*own);
            }
        }
        let Some(alpha) = alpha else {
            return unusable(format!("{ADAPTER_CONFIG} lacks `lora_alpha`"));
        };
        if rank == 0 {
            return unusable(format!("the rank of `{path}` is 0"));
        }
        Ok(match self.use_rslora {
            true => alpha / (rank as f32).sqrt(),
            false => alpha / rank as f32,
        })
    }
}

fn read_config(dir: &Path) -> Result<Config> {
    let path = dir.join(ADAPTER_CONFIG);
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
    read.map_err(|source| Error::Unreadable { path, source })?;
    if text.len() as u64 > MOST_BYTES {
        return unusable(format!("{ADAPTER_CONFIG} has more than {MOST_BYTES} bytes"));
    }
    serde_json::from_str(&text).or_else(|error| unusable(format!("{ADAPTER_CONFIG} cannot be read: {error}")))
}

/// The path of a projection, and the part of its addition; `None` for any other tensor.
fn split_name(name: &str, peft: bool) -> Option<(&str, Part)> {
    let (path, part) = match peft {
        false => {
            let (path, last) = name.rsplit_once('.')?;
            let part = match last {
                "lora_a" => Part::Down,
                "lora_b" => Part::Up,
                "m" => Part::Magnitude,
                _ => return None,
            };
            (path, part)
        }
        true => {
            let name = name.strip_prefix("base_model.model.").unwrap_or(name);
            let name = name.strip_suffix(".weight").unwrap_or(name);
            let name = name.strip_suffix(".default").unwrap_or(name);
            let (path, last) = name.rsplit_once('.')?;
            let part = match last {
                "lora_A" | "lora_embedding_A" => Part::Down,
                "lora_B" | "lora_embedding_B" => Part::Up,
                "lora_magnitude_vector" => Part::Magnitude,
                _ => return None,
            };
            (path, part)
        }
    };
    Some((without_wrappers(path), part))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::{Adapter, ADAPTER_CONFIG};

    /// Writes an adapter whose tensors have these names and shapes, all zeros.
    fn write(dir: &Path, config: &str, file: &str, tensors: &[(&str, &[u64])]) {
        std::fs::write(dir.join(ADAPTER_CONFIG), config).unwrap();
        let (mut header, mut at) = (serde_json::Map::new(), 0);
        for (name, shape) in tensors {
            let end = at + 4 * shape.iter().product::<u64>();
            let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [at, end]});
            header.insert((*name).to_owned(), entry);
            at = end;
        }
        let header = serde_json::Value::Object(header).to_string();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(vec![0; at as usize]);
        std::fs::write(dir.join(file), bytes).unwrap();
    }

    const MLX: &str = r#"{"fine_tune_type": "dora", "model": "o/base", "lora_parameters": {"rank": 4, "scale": 20.0}}"#;
    const PEFT: &str = r#"{"peft_type": "LORA", "r": 8, "lora_alpha": 16, "base_model_name_or_path": "o/base",
        "alpha_pattern": {"mlp.up_proj": 4, "model.layers.1.self_attn.q_proj": 32}, "rank_pattern": {"up_proj": 2}}"#;

    #[test]
    fn both_layouts_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let tensors: [(&str, &[u64]); 3] = [
            ("model.layers.0.self_attn.q_proj.lora_a", &[6, 4]),
            ("model.layers.0.self_attn.q_proj.lora_b", &[4, 8]),
            ("model.layers.0.self_attn.q_proj.m", &[8]),
        ];
        write(dir.path(), MLX, "adapters.safetensors", &tensors);
        let adapter = Adapter::read(dir.path()).unwrap();
        assert_eq!(adapter.base.as_deref(), Some("o/base"));
        let addition = &adapter.additions["layers.0.self_attn.q_proj"];
        assert!(addition.scale == 20.0 && !addition.turned && addition.magnitude.is_some());

        let dir = tempfile::tempdir().unwrap();
        let path = |rest: &str| format!("base_model.model.model.layers.{rest}");
        let names = ["0.self_attn.q_proj", "1.self_attn.q_proj", "1.mlp.up_proj"].map(|module| {
            [
                path(&format!("{module}.lora_A.weight")),
                path(&format!("{module}.lora_B.weight")),
            ]
        });
        let mut tensors: Vec<(&str, &[u64])> = Vec::new();
        for [down, up] in &names {
            let small = down.contains("up_proj");
            tensors.push((down, if small { &[2, 6] } else { &[8, 6] }));
            tensors.push((up, if small { &[9, 2] } else { &[9, 8] }));
        }
        write(dir.path(), PEFT, "adapter_model.safetensors", &tensors);
        let adapter = Adapter::read(dir.path()).unwrap();
        let scales: Vec<f32> = adapter.additions.values().map(|addition| addition.scale).collect();
        assert_eq!(scales, [2.0, 2.0, 4.0], "{:?}", adapter.additions.keys());
        assert!(adapter.additions.values().all(|addition| addition.turned));
    }

    #[test]
    fn other_files_say_why_they_cannot_be_added() {
        let one: &[(&str, &[u64])] = &[
            ("model.layers.0.a.lora_a", &[2, 1]),
            ("model.layers.0.a.lora_b", &[1, 2]),
        ];
        type Case<'a> = (&'a str, &'a [(&'a str, &'a [u64])], &'a str);
        let cases: [Case<'_>; 8] = [
            (r#"{"fine_tune_type": "full"}"#, one, "whole weights"),
            (
                r#"{"fine_tune_type": "oft", "lora_parameters": {"scale": 1}}"#,
                one,
                "of the kind oft",
            ),
            (r#"{}"#, one, "lacks `lora_parameters`"),
            (r#"{"lora_parameters": {"scale": 1e39}}"#, one, "is no number"),
            (r#"{"lora_parameters": {"rank": 1}}"#, one, "missing field `scale`"),
            ("[", one, "cannot be read"),
            (MLX, &[("model.layers.0.a.lora_a", &[2, 1])], "one of the two matrices"),
            (MLX, &[("lm_head.weight", &[2, 2])], "`lm_head.weight`"),
        ];
        for (config, tensors, reason) in cases {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path(), config, "adapters.safetensors", tensors);
            let error = Adapter::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains(reason), "{config}: {error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let error = Adapter::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(ADAPTER_CONFIG), "{error}");
    }
}
