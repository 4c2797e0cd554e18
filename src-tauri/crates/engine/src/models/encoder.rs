//! Encoders: BERT and its kin. Names of tensors are those of transformers' newer encoders; families with other names
//! say so in [`EncoderConfig::renames`].

use checkpoint::config::encoder::{EncoderConfig, Positions};
use mlx::device::{device, Device};
use mlx::ops::{ids_tensor, join, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::KvView;
use crate::error;
use crate::layers::{scaled_dot_product_attention, Embedding, LayerNorm, Linear, Pointwise, Rope};
use crate::models::pass::{mask, spans, Pass};
use crate::weights::Weights;

/// Queries that attend to a long text together, so that no device has to hold the scores of all.
const QUERIES: i32 = 1024;

/// The encoder.
#[derive(Parameters)]
pub struct Encoder {
    vocabulary: u32,
    heads: i32,
    word_embeddings: Embedding,
    positions: PositionTable,
    token_types: Option<TokenTypes>,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

/// How positions enter.
#[derive(Parameters)]
enum PositionTable {
    Learned {
        rows: Embedding,
        /// The row of the first position.
        first: u32,
    },
    Rotary(Rope),
}

/// The embeddings of token types, which say of which text of a pair a token is.
#[derive(Parameters)]
struct TokenTypes {
    rows: Embedding,
    /// The first row, `[1, width]`, which is added to every token of a text that is alone.
    first: Tensor,
    #[parameters(skip)]
    count: u32,
}

impl TokenTypes {
    /// The embeddings of tokens of these types, to be added to theirs.
    fn of(&self, types: &[u32]) -> Result<Tensor> {
        if types.iter().all(|kind| *kind == 0) {
            return Ok(self.first.clone());
        }
        // A row that the table does not have would be read from whatever follows it in memory.
        let rows: Vec<u32> = types.iter().map(|kind| (*kind).min(self.count - 1)).collect();
        self.rows.forward(&ids_tensor(&rows))
    }
}

#[derive(Parameters)]
struct Layer {
    qkv_proj: Linear,
    o_proj: Linear,
    post_attention_layernorm: LayerNorm,
    mlp: Mlp,
    post_mlp_layernorm: LayerNorm,
}

/// `down(activation(up(x)))`, or `down(activation(gate(x)) · up(x))`.
#[derive(Parameters)]
struct Mlp {
    activation: Pointwise,
    /// up_proj, or gate_proj and up_proj side by side.
    up_proj: Linear,
    gated: bool,
    down_proj: Linear,
}

impl Mlp {
    fn load(config: &EncoderConfig, path: &str, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (hidden, width) = (config.hidden_size as i32, config.width as i32);
        let up = (format!("{path}.up_proj"), width);
        let parts = match config.gated {
            true => vec![(format!("{path}.gate_proj"), width), up],
            false => vec![up],
        };
        let down = format!("{path}.down_proj");
        if config.bias {
            for part in parts.iter().map(|(part, _)| part).chain([&down]) {
                weights.require(&format!("{part}.bias"))?;
            }
        }
        Ok(Self {
            activation: Pointwise::new(config.activation, dtype)?,
            up_proj: Linear::load_joined(weights, &parts, hidden)?,
            gated: config.gated,
            down_proj: Linear::load(weights, &down, width, hidden)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = match self.gated {
            true => {
                let inner = self.up_proj.forward(x)?;
                let width = inner.dim(-1) / 2;
                self.activation
                    .times(&inner.slice(1, 0, width)?, &inner.slice(1, width, 2 * width)?)?
            }
            false => self.up_proj.activated(x, &self.activation)?,
        };
        self.down_proj.forward(&inner)
    }
}

impl Layer {
    fn load(config: &EncoderConfig, layer: usize, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (hidden, path) = (config.hidden_size as i32, format!("layers.{layer}"));
        let attention = |name: &str| format!("{path}.self_attn.{name}");
        let joined = attention("qkv_proj");
        let parts = match weights.has(&format!("{joined}.weight")) {
            true => vec![(joined, 3 * hidden)],
            false => ["q_proj", "k_proj", "v_proj"]
                .map(|name| (attention(name), hidden))
                .to_vec(),
        };
        let output = attention("o_proj");
        if config.bias {
            for part in parts.iter().map(|(part, _)| part).chain([&output]) {
                weights.require(&format!("{part}.bias"))?;
            }
        }
        let norm = |weights: &mut Weights<'_>, name: &str| {
            LayerNorm::load(weights, &format!("{path}.{name}"), hidden, config.norm_eps)
        };
        Ok(Self {
            qkv_proj: Linear::load_joined(weights, &parts, hidden)?,
            o_proj: Linear::load(weights, &output, hidden, hidden)?,
            post_attention_layernorm: norm(weights, "post_attention_layernorm")?,
            mlp: Mlp::load(config, &format!("{path}.mlp"), dtype, weights)?,
            post_mlp_layernorm: norm(weights, "post_mlp_layernorm")?,
        })
    }

    /// States `[rows, hidden]` to the same; `mask` says what each row sees if the texts are not separated.
    fn forward(
        &self,
        h: &Tensor,
        heads: i32,
        rope: Option<&Rope>,
        lengths: &[usize],
        mask: Option<&Mask>,
    ) -> Result<Tensor> {
        let (rows, hidden) = (h.dim(0), h.dim(1));
        let width = hidden / heads;
        let all = self.qkv_proj.forward(h)?;
        let split = |part: i32| {
            let part = all.slice(1, part * hidden, (part + 1) * hidden)?;
            part.reshape(&[1, rows, heads, width])?.swapaxes(1, 2)
        };
        let (mut queries, mut keys, values) = (split(0)?, split(1)?, split(2)?);
        if let Some(rope) = rope {
            // Scores depend on the distance of two positions alone, so texts may begin anywhere.
            let rotation = rope.at(0, rows as usize);
            (queries, keys) = (rope.forward(&queries, &rotation)?, rope.forward(&keys, &rotation)?);
        }
        let scale = (width as f32).powf(-0.5);
        let attended = match mask {
            Some(mask) => queries
                .fast_attention(&keys, &values, scale, mask, None)?
                .transpose(&[0, 2, 1, 3])?
                .reshape(&[rows, hidden])?,
            None => {
                let mut attended = Vec::new();
                for (start, end) in spans(lengths) {
                    let (keys, values) = (keys.slice(2, start, end)?, values.slice(2, start, end)?);
                    let seen = KvView::Plain { keys, values };
                    for first in (start..end).step_by(QUERIES as usize) {
                        let queries = queries.slice(2, first, end.min(first + QUERIES))?;
                        attended.push(scaled_dot_product_attention(&queries, &seen, scale, &Mask::None, None)?);
                    }
                }
                join(&attended, 0)?
            }
        };
        let projected = self.o_proj.forward(&attended)?;
        let h = self.post_attention_layernorm.forward_sum(h, &projected)?;
        self.post_mlp_layernorm.forward_sum(&h, &self.mlp.forward(&h)?)
    }
}

impl Encoder {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &EncoderConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        config.renames.iter().for_each(|table| weights.rename(table));
        let hidden = config.hidden_size as i32;
        let norm = LayerNorm::load(weights, "embeddings.LayerNorm", hidden, config.norm_eps)?;
        let dtype = weights
            .dtype_of_matrix("embeddings.word_embeddings")
            .unwrap_or(Dtype::Float32);
        let table = |weights: &mut Weights<'_>, name: &str, rows: u32| {
            Embedding::load(weights, &format!("embeddings.{name}_embeddings"), rows as i32, hidden)
        };
        let word_embeddings = table(weights, "word", config.vocab_size)?;
        let positions = match &config.positions {
            Positions::Learned { rows, first } => PositionTable::Learned {
                rows: table(weights, "position", *rows)?,
                first: *first,
            },
            Positions::Rotary { rope, .. } => PositionTable::Rotary(Rope::new(rope, config.head_dim(), dtype)?),
        };
        let token_types = match config.token_types {
            0 => None,
            count => {
                let rows = table(weights, "token_type", count)?;
                let first = rows.forward(&ids_tensor(&[0]))?;
                Some(TokenTypes { rows, first, count })
            }
        };
        let layers = (0..config.layers as usize).map(|layer| Layer::load(config, layer, dtype, weights));
        let model = Self {
            vocabulary: config.vocab_size,
            heads: config.heads as i32,
            word_embeddings,
            positions,
            token_types,
            norm,
            layers: layers.collect::<error::Result<_>>()?,
        };
        weights.materialize(model.tensors())?;
        Ok(model)
    }

    /// The number of tokens of its vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// The number of its layers.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Begins to read texts of these lengths, whose tokens are `ids` one after another, and of these types.
    pub fn begin(&self, ids: &[u32], types: &[u32], lengths: &[usize]) -> Result<Pass> {
        let mut h = self.word_embeddings.forward(&ids_tensor(ids))?;
        if let Some(token_types) = &self.token_types {
            h = h.add(&token_types.of(types)?)?;
        }
        if let PositionTable::Learned { rows, first } = &self.positions {
            let places: Vec<u32> = lengths
                .iter()
                .flat_map(|length| *first..*first + *length as u32)
                .collect();
            h = h.add(&rows.forward(&ids_tensor(&places))?)?;
        }
        // A GPU takes one product with a mask in the time of a few short ones; the CPU computes what the mask leaves
        // out.
        let masks = match lengths.len() > 1 && device() != Device::Cpu {
            true => vec![mask(lengths, None, true)],
            false => Vec::new(),
        };
        Ok(Pass::new(lengths, self.norm.forward(&h)?, masks))
    }

    /// Takes a pass through the next `count` layers; nothing is evaluated.
    pub fn advance(&self, pass: &mut Pass, count: usize) -> Result<()> {
        let rope = match &self.positions {
            PositionTable::Learned { .. } => None,
            PositionTable::Rotary(rope) => Some(rope),
        };
        for layer in self.layers.iter().skip(pass.layer).take(count) {
            pass.states = layer.forward(&pass.states, self.heads, rope, &pass.lengths, pass.masks.first())?;
            pass.layer += 1;
        }
        Ok(())
    }
}
