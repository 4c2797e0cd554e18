//! The layers of every family in one form, as far as memory depends on them.

use crate::config::decoder::{
    Activation, CrossAttentionConfig, DeltaNetConfig, FeedForward as FeedForwardConfig, GatedConvConfig, LmHead, Mixer as MixerConfig,
    NormPlacement, QkNorm,
};
use crate::config::gemma4::{Attention as Kind, Gemma4Config};
use crate::config::mla::MlaConfig;
use crate::{DecoderConfig, EncoderConfig, Family, Mode, ModelConfig, Quantization};

/// A whole model.
pub(super) struct Shapes {
    pub(super) hidden: u64,
    pub(super) vocabulary: u64,
    /// Whether the output layer is the embedding.
    pub(super) tied: bool,
    /// Whether there is no output layer.
    pub(super) headless: bool,
    pub(super) quantization: Option<Quantization>,
    /// Bytes of a number of the weights that are not quantised, and of what is computed on a GPU.
    pub(super) element: u64,
    pub(super) layers: Vec<Layer>,
    /// Whether keys and values are kept for what comes later; else a text is read at once.
    pub(super) cached: bool,
    /// A table with inputs for every layer: its tokens, and the width of one layer's.
    pub(super) inputs: Option<(u64, u64)>,
    /// Streams that go through the layers.
    pub(super) streams: u64,
}

/// One layer.
pub(super) struct Layer {
    pub(super) mixer: Mixer,
    /// What follows it; if there are several, they see the same input.
    pub(super) feed_forwards: Vec<FeedForward>,
    /// Whether what a part gives is normed before it is added.
    pub(super) normed_after: bool,
}

/// How a layer mixes positions.
pub(super) enum Mixer {
    Attention(Attention),
    DeltaNet(DeltaNetConfig),
    Mla(MlaConfig),
    GatedConv(GatedConvConfig),
    CrossAttention(CrossAttentionConfig),
}

/// Softmax attention.
pub(super) struct Attention {
    pub(super) heads: u64,
    pub(super) key_heads: u64,
    pub(super) width: u64,
    pub(super) window: Option<u64>,
    pub(super) keys: Keys,
    pub(super) norm: QkNorm,
    pub(super) output_gate: bool,
    pub(super) sinks: bool,
}

/// Where keys and values come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// Projections of the layer.
    Own,
    /// The layer's keys, which are its values too.
    AreValues,
    /// An earlier layer.
    Shared,
}

/// What a layer does with each position.
pub(super) enum FeedForward {
    Dense {
        width: u64,
        /// Whether what the activation gives is multiplied by a second projection.
        gated: bool,
        activation: Activation,
    },
    Moe {
        count: u64,
        top_k: u64,
        width: u64,
        activation: Activation,
        bias: bool,
    },
}

impl Attention {
    /// Heads that its projection makes, the gate's included.
    pub(super) fn projected(&self) -> u64 {
        let queries = self.heads * if self.output_gate { 2 } else { 1 };
        match self.keys {
            Keys::Own => queries + 2 * self.key_heads,
            Keys::AreValues => queries + self.key_heads,
            Keys::Shared => queries,
        }
    }
}

impl Shapes {
    pub(super) fn of(config: &ModelConfig) -> Self {
        let mut shapes = match &config.family {
            Family::Gemma4(gemma4) => Self::gemma4(gemma4),
            Family::Decoder(decoder) => Self::decoder(decoder),
            Family::Encoder(encoder) => Self::encoder(encoder),
        };
        shapes.quantization = config.quantization;
        shapes.element = match config.dtype.as_deref() {
            Some("float32") => 4,
            _ => 2,
        };
        shapes
    }

    fn decoder(config: &DecoderConfig) -> Self {
        let layers = config.layers.iter().map(|layer| Layer {
            mixer: match &layer.mixer {
                MixerConfig::Attention(attention) => Mixer::Attention(Attention {
                    heads: attention.heads.into(),
                    key_heads: attention.key_heads.into(),
                    width: attention.head_dim.into(),
                    window: attention.window.map(u64::from),
                    keys: Keys::Own,
                    norm: attention.qk_norm,
                    output_gate: attention.output_gate,
                    sinks: attention.sinks,
                }),
                MixerConfig::DeltaNet(net) => Mixer::DeltaNet(*net),
                MixerConfig::Mla(latent) => Mixer::Mla(latent.clone()),
                MixerConfig::GatedConv(conv) => Mixer::GatedConv(*conv),
                MixerConfig::CrossAttention(cross) => Mixer::CrossAttention(*cross),
            },
            feed_forwards: match &layer.feed_forward {
                FeedForwardConfig::Dense(dense) => vec![FeedForward::Dense {
                    width: dense.width.into(),
                    gated: true,
                    activation: dense.activation,
                }],
                FeedForwardConfig::Moe(experts) => {
                    let shared = experts.shared.map(|shared| FeedForward::Dense {
                        width: shared.width.into(),
                        gated: true,
                        activation: experts.activation,
                    });
                    let experts = FeedForward::Moe {
                        count: experts.num_experts.into(),
                        top_k: experts.top_k.into(),
                        width: experts.width.into(),
                        activation: experts.activation,
                        bias: experts.bias,
                    };
                    std::iter::once(experts).chain(shared).collect()
                }
            },
            normed_after: layer.norms != NormPlacement::Pre,
        });
        Self {
            hidden: config.hidden_size.into(),
            vocabulary: config.vocab_size.into(),
            tied: config.lm_head != LmHead::Untied,
            headless: config.lm_head == LmHead::Absent,
            cached: !config.bidirectional,
            quantization: None,
            element: 2,
            layers: layers.collect(),
            inputs: None,
            streams: 1,
        }
    }

    fn encoder(config: &EncoderConfig) -> Self {
        let layer = || Layer {
            mixer: Mixer::Attention(Attention {
                heads: config.heads.into(),
                key_heads: config.heads.into(),
                width: config.head_dim().into(),
                window: None,
                keys: Keys::Own,
                norm: QkNorm::None,
                output_gate: false,
                sinks: false,
            }),
            feed_forwards: vec![FeedForward::Dense {
                width: config.width.into(),
                gated: config.gated,
                activation: Activation::GeluTanh,
            }],
            normed_after: true,
        };
        Self {
            hidden: config.hidden_size.into(),
            vocabulary: config.vocab_size.into(),
            tied: true,
            headless: true,
            cached: false,
            quantization: None,
            element: 2,
            layers: (0..config.layers).map(|_| layer()).collect(),
            inputs: None,
            streams: 1,
        }
    }

    fn gemma4(config: &Gemma4Config) -> Self {
        let layer = |index: usize| {
            let full = config.layers[index] == Kind::Full;
            let keys = match config.donor(index) == index {
                false => Keys::Shared,
                true if full && config.attention_k_eq_v => Keys::AreValues,
                true => Keys::Own,
            };
            let activation = Activation::GeluTanh;
            let dense = FeedForward::Dense {
                width: config.mlp_width(index).into(),
                gated: true,
                activation,
            };
            let experts = config.experts.map(|experts| FeedForward::Moe {
                count: experts.num_experts.into(),
                top_k: experts.top_k_experts.into(),
                width: experts.moe_intermediate_size.into(),
                activation,
                bias: false,
            });
            Layer {
                mixer: Mixer::Attention(Attention {
                    heads: config.num_attention_heads.into(),
                    key_heads: config.key_heads(index).into(),
                    width: config.head_width(index).into(),
                    window: (!full).then_some(config.sliding_window.into()),
                    keys,
                    norm: QkNorm::PerHead,
                    output_gate: false,
                    sinks: false,
                }),
                feed_forwards: std::iter::once(dense).chain(experts).collect(),
                normed_after: true,
            }
        };
        Self {
            hidden: config.hidden_size.into(),
            vocabulary: config.vocab_size.into(),
            tied: config.tie_word_embeddings,
            headless: false,
            cached: true,
            quantization: None,
            element: 2,
            layers: (0..config.layers.len()).map(layer).collect(),
            inputs: config
                .hidden_size_per_layer_input
                .map(|width| (config.vocab_size_per_layer_input.into(), width.into())),
            streams: config.altup.as_ref().map_or(1, |altup| altup.streams.into()),
        }
    }

    /// Bits that a quantised weight takes with its share of scales; `None` if weights are plain.
    pub(super) fn bits(&self) -> Option<f64> {
        let quantization = self.quantization?;
        let (bits, group) = (f64::from(quantization.bits), f64::from(quantization.group_size));
        Some(match quantization.mode {
            // A scale and a bias of 16 bits each.
            Mode::Affine => bits + 32.0 / group,
            Mode::Mxfp4 | Mode::Mxfp8 | Mode::Nvfp4 => bits + 8.0 / group,
        })
    }

    /// How many layers, from the first, a chunk of the prompt goes through: it is read for the caches alone, so layers after
    /// the last that keeps something are not computed.
    pub(super) fn read_layers(&self) -> usize {
        let keeps = |layer: &Layer| !matches!(&layer.mixer, Mixer::Attention(attention) if attention.keys == Keys::Shared);
        self.layers.iter().rposition(keeps).map_or(0, |last| last + 1)
    }
}
