//! How an embedding model makes one vector of the states of a text's tokens, by the files that sentence-transformers
//! writes: `modules.json` and what it names (`1_Pooling/config.json`, `2_Dense/config.json`, …),
//! `sentence_bert_config.json`. A model without `modules.json` is pooled as sentence-transformers would: by the mean,
//! but a few families' as they were trained. A reranker makes one number, its score, in the same way.

use std::io::ErrorKind;
use std::path::{Component, Path};

use protocol::ModelKind;
use serde_json::{Map, Value};

use crate::config::limits::check_width;
use crate::config::Family;
use crate::config::Fields;
use crate::error::{unusable, Error, Result};
use crate::files::{parse_json, ModelCard};
use crate::model::config::ModelConfig;

/// The file that names the modules; who has it is an embedding model.
pub const MODULES: &str = "modules.json";

/// The family whose embedding models, if `modules.json` was lost, are pooled by the last token and normalized, as all
/// of Qwen's are.
pub(crate) const POOLED_BY_LAST_TOKEN: &str = "qwen3";

/// The same with their poolings, and the families that mlx-vlm pools and normalizes so.
const NORMALIZED: [(&str, Pooling); 5] = [
    (POOLED_BY_LAST_TOKEN, Pooling::LastToken),
    ("embedding_gemma2", Pooling::Mean),
    ("lfm2_embedding", Pooling::FirstToken),
    ("llama_bidirec", Pooling::Mean),
    ("modernbert", Pooling::Mean),
];

/// More modules than any model has.
const MOST_MODULES: usize = 32;

/// From the states of tokens to a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingConfig {
    /// The pooling of the states; results of several are concatenated.
    pub pooling: Vec<Pooling>,
    /// The steps that follow, in order.
    pub steps: Vec<EmbeddingStep>,
    /// Tokens of the longest text that is read.
    pub max_tokens: u32,
    /// True if texts are lowercased first.
    pub lower_case: bool,
    /// Numbers of a vector.
    pub width: u32,
    /// The lengths to which a vector may be cut.
    pub dimensions: Dimensions,
}

/// One vector from the states of all tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The first token's.
    FirstToken,
    /// The greatest of each number.
    Max,
    /// The mean.
    Mean,
    /// The sum over the root of the number of tokens.
    MeanOverRoot,
    /// The mean, weighted by the position from 1 on.
    WeightedMean,
    /// The last token's.
    LastToken,
}

/// A step on a pooled vector.
#[derive(Debug, Clone, PartialEq)]
pub enum EmbeddingStep {
    /// A projection.
    Dense(DenseConfig),
    /// A norm by mean and variance, of the model's own weights.
    Norm(NormStep),
    /// To the length 1.
    Normalize,
}

/// A norm by mean and variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormStep {
    /// The name of its weights.
    pub path: &'static str,
    /// Numbers that it norms.
    pub width: u32,
    /// Added to the variance.
    pub eps: f32,
    /// True if a bias is added.
    pub bias: bool,
}

/// The function that the output of a projection goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenseActivation {
    /// Nothing.
    Identity,
    /// The hyperbolic tangent.
    Tanh,
    /// GELU by the error function (ModernBERT's head).
    Gelu,
}

/// A projection with an activation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenseConfig {
    /// The place of its weights `[outputs, inputs]`.
    pub place: DensePlace,
    /// Numbers that go in.
    pub inputs: u32,
    /// Numbers that come out.
    pub outputs: u32,
    /// True if there is a bias.
    pub bias: bool,
    /// The function that its output goes through.
    pub activation: DenseActivation,
}

/// The place of a projection's weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DensePlace {
    /// A folder in the model's, as `linear`; or the model's own weights as `dense.N`, where converters put them.
    Folder(String),
    /// The model's own weights, by this name.
    Own(&'static str),
}

/// Which numbers of a vector may be asked for: models that were trained so (Matryoshka) have a sense in their first
/// numbers alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimensions {
    /// All of them.
    Whole,
    /// This number of leading ones, or more.
    AtLeast(u32),
    /// These numbers of the first.
    Listed(Vec<u32>),
}

impl Dimensions {
    /// True if a vector of `width` numbers may be cut to `wanted`.
    pub fn allow(&self, wanted: u32, width: u32) -> bool {
        wanted == width
            || match self {
                Self::Whole => false,
                Self::AtLeast(fewest) => (*fewest..width).contains(&wanted),
                Self::Listed(known) => known.contains(&wanted) && wanted < width,
            }
    }
}

impl EmbeddingConfig {
    /// Reads the files beside `config.json` in a model's folder.
    ///
    /// # Errors
    /// If a file is broken, or names a module that is not known.
    pub fn read(dir: &Path, config: &ModelConfig) -> Result<Self> {
        let mut embedding = Self {
            pooling: vec![Pooling::Mean],
            steps: Vec::new(),
            max_tokens: config.context,
            lower_case: false,
            width: hidden_size(config),
            dimensions: Dimensions::Whole,
        };
        let own = object(dir, "config.json")?.unwrap_or_default();
        if config.kind == ModelKind::Reranker {
            return embedding.ranking(config, Fields::new(&own));
        }
        embedding.dimensions = dimensions(Fields::new(&own), &ModelCard::read(dir))?;
        if let Some(bounds) = object(dir, "sentence_bert_config.json")? {
            let bounds = Fields::new(&bounds);
            let most: Option<u32> = bounds.number("max_seq_length")?;
            embedding.max_tokens = most.map_or(config.context, |most| most.min(config.context));
            embedding.lower_case = bounds.flag("do_lower_case")?.unwrap_or(false);
        }
        let Some(modules) = json(dir, MODULES)? else {
            if let Some((_, pooling)) = NORMALIZED.iter().find(|(known, _)| *known == config.model_type) {
                embedding.pooling = vec![*pooling];
                embedding.steps.push(EmbeddingStep::Normalize);
            }
            return Ok(embedding);
        };
        let modules = modules.as_array().filter(|modules| modules.len() <= MOST_MODULES);
        let modules = modules.ok_or_else(|| broken("it is not a list of modules"))?;
        let mut pooled = false;
        for module in modules {
            let kind = module["type"].as_str().ok_or_else(|| broken("a module has no type"))?;
            let folder = module["path"].as_str().unwrap_or_default();
            if !is_plain(folder) {
                return Err(broken(&format!("`{folder}` is no folder of the model")));
            }
            let settings = || Ok::<_, Error>(object(dir, &format!("{folder}/config.json"))?.unwrap_or_default());
            match kind.rsplit('.').next().unwrap_or(kind) {
                "Transformer" if folder.is_empty() => {}
                "Transformer" => return Err(Error::Unsupported(format!("a transformer in the folder `{folder}`"))),
                "Pooling" if !pooled => {
                    pooled = true;
                    embedding.pooling = pooling(Fields::new(&settings()?))?;
                    embedding.width = embedding.width.saturating_mul(embedding.pooling.len() as u32);
                }
                "Dense" if pooled => {
                    let dense = dense(Fields::new(&settings()?), folder)?;
                    if dense.inputs != embedding.width {
                        let reason = format!("it takes {} numbers and gets {}", dense.inputs, embedding.width);
                        return unusable("in_features", reason);
                    }
                    embedding.width = dense.outputs;
                    embedding.steps.push(EmbeddingStep::Dense(dense));
                }
                "Normalize" if pooled => embedding.steps.push(EmbeddingStep::Normalize),
                // It drops parts of a text in training alone.
                "Dropout" => {}
                other => return Err(Error::Unsupported(format!("the module `{other}`"))),
            }
        }
        check_width("pooling_mode", embedding.width.into())?;
        Ok(embedding)
    }

    /// With the head of transformers' `BertForSequenceClassification`, `RobertaForSequenceClassification` or
    /// `ModernBertForSequenceClassification`, which makes one number of a text.
    fn ranking(mut self, config: &ModelConfig, own: Fields<'_>) -> Result<Self> {
        let dense = |place, outputs, bias, activation| {
            EmbeddingStep::Dense(DenseConfig {
                place: DensePlace::Own(place),
                inputs: self.width,
                outputs,
                bias,
                activation,
            })
        };
        let of_first = |inner, last| {
            let inner = dense(inner, self.width, true, DenseActivation::Tanh);
            vec![inner, dense(last, 1, true, DenseActivation::Identity)]
        };
        (self.steps, self.pooling) = match config.model_type.as_str() {
            "bert" => (of_first("pooler.dense", "classifier"), vec![Pooling::FirstToken]),
            "roberta" | "xlm-roberta" => {
                let steps = of_first("classifier.dense", "classifier.out_proj");
                (steps, vec![Pooling::FirstToken])
            }
            "modernbert" => {
                match own.text("classifier_activation")?.as_deref() {
                    None | Some("gelu") => {}
                    Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
                }
                let bias = own.flag("classifier_bias")?.unwrap_or(false);
                let norm = NormStep {
                    path: "head.norm",
                    width: self.width,
                    eps: own.number("norm_eps")?.unwrap_or(1e-5),
                    bias: own.flag("norm_bias")?.unwrap_or(false),
                };
                let steps = vec![
                    dense("head.dense", self.width, bias, DenseActivation::Gelu),
                    EmbeddingStep::Norm(norm),
                    dense("classifier", 1, true, DenseActivation::Identity),
                ];
                let pooling = match own.text("classifier_pooling")?.as_deref() {
                    None | Some("cls") => Pooling::FirstToken,
                    Some("mean") => Pooling::Mean,
                    Some(other) => return Err(Error::Unsupported(format!("pooling by `{other}`"))),
                };
                (steps, vec![pooling])
            }
            other => return Err(Error::Unsupported(format!("rerankers of type `{other}`"))),
        };
        self.width = 1;
        Ok(self)
    }

    /// True if the vectors have the length 1.
    pub fn normalizes(&self) -> bool {
        self.steps.last() == Some(&EmbeddingStep::Normalize)
    }
}

/// The width of the states of tokens.
fn hidden_size(config: &ModelConfig) -> u32 {
    match &config.family {
        Family::Gemma4(config) => config.hidden_size,
        Family::Decoder(config) => config.embedder.map_or(config.hidden_size, |embedder| embedder.width),
        Family::Encoder(config) => config.hidden_size,
        Family::Head(config) => config.hidden_size,
    }
}

/// `is_matryoshka` and `matryoshka_dimensions`, by which vLLM goes too; else the models whose authors say only in their
/// cards that they were trained so.
fn dimensions(config: Fields<'_>, card: &ModelCard) -> Result<Dimensions> {
    let listed = config.numbers("matryoshka_dimensions")?.unwrap_or_default();
    let listed: Vec<u32> = listed
        .into_iter()
        .filter(|number| *number >= 1.0)
        .map(|number| number as u32)
        .collect();
    Ok(match config.flag("is_matryoshka")? {
        _ if !listed.is_empty() => Dimensions::Listed(listed),
        Some(true) => Dimensions::AtLeast(1),
        None if card.is_named("qwen3-embedding") => Dimensions::AtLeast(32),
        None if card.is_named("embeddinggemma") => Dimensions::Listed(vec![128, 256, 512]),
        Some(false) | None => Dimensions::Whole,
    })
}

/// The modes of a pooling module, in the order in which sentence-transformers puts what they give side by side.
fn pooling(settings: Fields<'_>) -> Result<Vec<Pooling>> {
    const MODES: [(&str, &str, Pooling); 6] = [
        ("cls", "pooling_mode_cls_token", Pooling::FirstToken),
        ("max", "pooling_mode_max_tokens", Pooling::Max),
        ("mean", "pooling_mode_mean_tokens", Pooling::Mean),
        (
            "mean_sqrt_len_tokens",
            "pooling_mode_mean_sqrt_len_tokens",
            Pooling::MeanOverRoot,
        ),
        (
            "weightedmean",
            "pooling_mode_weightedmean_tokens",
            Pooling::WeightedMean,
        ),
        ("lasttoken", "pooling_mode_lasttoken", Pooling::LastToken),
    ];
    if let Some(name) = settings.text("pooling_mode")? {
        let mode = MODES.iter().find(|(known, ..)| *known == name);
        let mode = mode.ok_or_else(|| Error::Unsupported(format!("pooling by `{name}`")))?;
        return Ok(vec![mode.2]);
    }
    let mut modes = Vec::new();
    for (_, field, mode) in MODES {
        // The mean is what is made if nothing is said at all.
        let default = mode == Pooling::Mean && !MODES.iter().any(|(_, other, _)| settings.has(other));
        if settings.flag(field)?.unwrap_or(default) {
            modes.push(mode);
        }
    }
    match modes.is_empty() {
        true => unusable("pooling_mode", "none is switched on"),
        false => Ok(modes),
    }
}

fn dense(settings: Fields<'_>, folder: &str) -> Result<DenseConfig> {
    let (inputs, outputs) = (settings.required("in_features")?, settings.required("out_features")?);
    check_width("in_features", inputs.into())?;
    check_width("out_features", outputs.into())?;
    let activation = settings.text("activation_function")?.unwrap_or_else(|| "Tanh".into());
    Ok(DenseConfig {
        place: DensePlace::Folder(folder.to_owned()),
        inputs,
        outputs,
        bias: settings.flag("bias")?.unwrap_or(true),
        activation: match activation.rsplit('.').next() {
            Some("Identity") => DenseActivation::Identity,
            Some("Tanh") => DenseActivation::Tanh,
            _ => return Err(Error::Unsupported(format!("the activation `{activation}`"))),
        },
    })
}

/// True if a path of a file is one folder of the model, or the model's own.
fn is_plain(folder: &str) -> bool {
    let mut parts = Path::new(folder).components();
    folder.is_empty()
        || (matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) && !folder.contains('\\'))
}

fn json(dir: &Path, name: &str) -> Result<Option<Value>> {
    let path = dir.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse_json(&text).map(Some).map_err(|error| Error::InvalidModule {
            file: name.to_owned(),
            reason: error.to_string(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Unreadable { path, source }),
    }
}

fn object(dir: &Path, name: &str) -> Result<Option<Map<String, Value>>> {
    match json(dir, name)? {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(Error::InvalidModule {
            file: name.to_owned(),
            reason: "it is not a JSON object".into(),
        }),
    }
}

fn broken(reason: &str) -> Error {
    Error::InvalidModule {
        file: MODULES.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
