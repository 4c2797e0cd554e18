//! Molmo and Jina VLM: layers of Qwen 2 and 3 under names of their own, and tokens for images whose embeddings follow
//! those of the vocabulary. Defaults are those of mlx-vlm's `molmo/config.py`, `molmo2/config.py` and
//! `jina_vlm/config.py`.

use serde_json::{Map, Value};

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::shapes::Shapes;
use super::source::Source;
use super::vision::molmo;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::{check_heads, check_layers, check_range};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// Both grids of an image begin alike.
const GRIDS: ImageRun = ImageRun::Grids {
    starts: ["<im_start>"; 2],
    row_end: "<im_col>",
    end: "<im_end>",
};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        "Jina VLM",
        &["jina_vlm", "jvlm"],
        jina,
        VisionRow {
            encoder: molmo::jina,
            processor: ProcessorRow::fixed(&["JinaVLM"], molmo::jina_processor),
            prompt: ImagePrompt {
                template: Some(JINA_TEMPLATE),
                run: GRIDS,
                ..PROMPT
            },
        },
    ),
    FamilyRow::vision(
        "Molmo 7B-D",
        &["molmo"],
        first,
        VisionRow {
            encoder: molmo::first,
            processor: ProcessorRow::fixed(&["Molmo"], molmo::first_processor),
            prompt: ImagePrompt {
                first: true,
                run: GRIDS,
                ..PROMPT
            },
        },
    ),
    FamilyRow::vision(
        "Molmo 2",
        &["molmo2"],
        parse,
        VisionRow {
            encoder: molmo::parse,
            processor: ProcessorRow::fixed(&["Molmo2"], molmo::processor),
            prompt: ImagePrompt {
                run: ImageRun::Grids {
                    starts: ["<low_res_im_start>", "<im_start>"],
                    row_end: "<im_col>",
                    end: "<im_end>",
                },
                ..PROMPT
            },
        },
    ),
];

const PROMPT: ImagePrompt = ImagePrompt {
    placeholder: "<|image|>",
    written: "<|image|>",
    ..ImagePrompt::new("<im_patch>")
};

/// The form of a conversation if a repository of Jina VLM has none (mlx-vlm's `processing_jinavlm.py`).
const JINA_TEMPLATE: &str = "{% for message in messages %}{% if message['role'] in ['system', 'user', 'assistant'] %}\
    {{ '<|' + message['role'] + '|>\\n' + message['content'] + '\\n' }}{% endif %}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

/// Names of the original's parts and of conversions'.
const STACK: &[(&str, &str)] = &[
    ("transformer.blocks", "layers"),
    ("transformer.wte", "embed_tokens"),
    ("transformer.ln_f", "norm"),
    ("blocks", "layers"),
    ("wte", "embed_tokens"),
    ("ln_f", "norm"),
];

/// Names of the parts of layers.
const PARTS: &[(&str, &str)] = &[
    ("att_proj", "qkv_proj"),
    ("attn_out", "o_proj"),
    ("attn_norm", "input_layernorm"),
    ("ff_norm", "post_attention_layernorm"),
    ("ff_proj", "up_gate_proj"),
    ("ff_out", "down_proj"),
];

/// Names of the parts of the first Molmo's layers.
const FIRST_PARTS: &[(&str, &str)] = &[
    ("att_proj", "self_attn.qkv_proj"),
    ("attn_out", "self_attn.o_proj"),
    ("attn_norm", "input_layernorm"),
    ("ff_norm", "post_attention_layernorm"),
    ("ff_proj", "mlp.up_gate_proj"),
    ("ff_out", "mlp.down_proj"),
];

/// The first Molmo, by the names of its repositories or by those of mlx-vlm's class, whose defaults are those of the
/// model of seven billion that is called D.
fn first(source: Source<'_>) -> Result<Family, Error> {
    let places = [source.text, source.top];
    let number = |names: &[&'static str], usual: u32| -> Result<u32, Error> {
        for place in places {
            if let Some(number) = place.first(names)? {
                return Ok(number);
            }
        }
        Ok(usual)
    };
    for field in ["norm_after", "attention_layer_norm", "weight_tying"] {
        for place in places {
            if place.flag(field)? == Some(true) {
                return Err(Error::Unsupported(format!(
                    "another Molmo than 7B-D and 72B (`{field}`)"
                )));
            }
        }
    }
    let (hidden_size, heads) = (
        number(&["hidden_size", "d_model"], 3584)?,
        number(&["num_attention_heads", "n_heads"], 28)?,
    );
    check_heads("num_attention_heads", hidden_size, heads)?;
    let vocab_size = number(&["vocab_size"], 152_064)?;
    let rows = number(&["embedding_size"], vocab_size)?;
    if rows < vocab_size {
        return unusable("embedding_size", format!("{vocab_size} tokens have {rows} embeddings"));
    }
    let eps = source
        .text
        .number("layer_norm_eps")?
        .or(source.top.number("layer_norm_eps")?);
    let shapes = Shapes {
        hidden_size,
        vocab_size,
        layers: check_layers(number(&["num_hidden_layers", "n_layers"], 28)?)?,
        heads,
        key_heads: number(&["num_key_value_heads", "n_kv_heads"], 4)?,
        head_dim: hidden_size / heads,
        width: number(&["intermediate_size", "mlp_hidden_size"], 37_888)? / 2,
        eps: eps.unwrap_or(1e-5),
        lm_head: LmHead::Untied,
    };
    let more = number(&["additional_vocab_size"], 128)?;
    let text = if source.text.has("rope_theta") {
        source.text
    } else {
        source.top
    };
    let form = Form {
        qkv_bias: true,
        qk_norm: QkNorm::None,
        theta: 1_000_000.0,
        more: more.saturating_add(rows - vocab_size),
        renames: &[STACK, FIRST_PARTS],
    };
    decoder(text, &shapes, form)
}

/// Names of Jina VLM's parts.
const JINA_STACK: &[(&str, &str)] = &[("embedding", "embed_tokens"), ("ln_f", "norm")];

/// Names of the parts of its layers.
const JINA_PARTS: &[(&str, &str)] = &[
    ("attn.qkv", "self_attn.qkv_proj"),
    ("attn.out", "self_attn.o_proj"),
    ("attn.q_norm", "self_attn.q_norm"),
    ("attn.k_norm", "self_attn.k_norm"),
    ("attn_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn.gate_up", "mlp.up_gate_proj"),
    ("ffn.down", "mlp.down_proj"),
];

/// Jina VLM, whose fields stand in objects for each part of a layer.
fn jina(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let part = |of: Fields<'_>, name: &'static str| -> Result<Map<String, Value>, Error> {
        // A name that nothing has, so that all is kept.
        Ok(of.object(name)?.map_or_else(Map::new, |part| part.without("")))
    };
    let block = part(text, "block_config")?;
    let [attention, network, norm] = [
        part(Fields::new(&block), "attn_config")?,
        part(Fields::new(&block), "ffn_config")?,
        part(Fields::new(&block), "lnorm_config")?,
    ];
    let attention = Fields::new(&attention);
    if attention.flag("q_lnorm")? == Some(false) {
        return Err(Error::Unsupported(
            "queries of Jina VLM without norms (`q_lnorm`)".into(),
        ));
    }
    let shapes = Shapes {
        hidden_size: text.number("hidden_size")?.unwrap_or(2048),
        vocab_size: text.number("vocab_size")?.unwrap_or(151_936),
        layers: check_layers(text.first(&["n_layers", "num_hidden_layers"])?.unwrap_or(28))?,
        heads: attention.number("n_heads")?.unwrap_or(16),
        key_heads: attention.number("n_kv_heads")?.unwrap_or(8),
        head_dim: attention.number("head_dim")?.unwrap_or(128),
        width: Fields::new(&network).number("size")?.unwrap_or(6144),
        eps: Fields::new(&norm).number("eps")?.unwrap_or(1e-6),
        lm_head: LmHead::Untied,
    };
    let form = Form {
        qkv_bias: false,
        qk_norm: QkNorm::PerHead,
        theta: 1_000_000.0,
        more: text.number("additional_vocab_size")?.unwrap_or(128),
        renames: &[JINA_STACK, JINA_PARTS],
    };
    decoder(text, &shapes, form)
}

fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    for field in ["norm_after", "use_norm_after"] {
        if text.flag(field)? == Some(true) {
            return Err(Error::Unsupported(format!(
                "norms after the halves of Molmo's layers (`{field}`)"
            )));
        }
    }
    if text.has("rope_scaling_layers") {
        return Err(Error::Unsupported(
            "ropes that some layers of Molmo scale (`rope_scaling_layers`)".into(),
        ));
    }
    let normed = text.flag("use_qk_norm")?.unwrap_or(true);
    let kind = text.text("qk_norm_type")?;
    if !normed || kind.as_deref().is_some_and(|kind| kind != "qwen3") {
        return Err(Error::Unsupported(
            "other norms of queries and keys of Molmo than Qwen 3's".into(),
        ));
    }
    if text.text("hidden_act")?.is_some_and(|name| name != "silu") {
        return Err(Error::Unsupported(
            "another activation of Molmo's layers than `silu`".into(),
        ));
    }
    let heads = text.number("num_attention_heads")?.unwrap_or(32);
    let shapes = Shapes {
        hidden_size: text.number("hidden_size")?.unwrap_or(2560),
        vocab_size: text.number("vocab_size")?.unwrap_or(151_936),
        layers: check_layers(text.number("num_hidden_layers")?.unwrap_or(36))?,
        heads,
        key_heads: text.number("num_key_value_heads")?.unwrap_or(8),
        head_dim: text.number("head_dim")?.unwrap_or(128),
        width: text.number("intermediate_size")?.unwrap_or(9728),
        eps: text.number("layer_norm_eps")?.unwrap_or(1e-6),
        lm_head: LmHead::Untied,
    };
    let form = Form {
        qkv_bias: text.flag("qkv_bias")?.unwrap_or(false),
        qk_norm: QkNorm::PerHead,
        theta: 5_000_000.0,
        more: text.number("additional_vocab_size")?.unwrap_or(128),
        renames: &[STACK, PARTS],
    };
    decoder(text, &shapes, form)
}

/// The differences of one of the models from another.
struct Form {
    qkv_bias: bool,
    qk_norm: QkNorm,
    theta: f32,
    /// Tokens after those of the vocabulary.
    more: u32,
    renames: &'static [&'static [(&'static str, &'static str)]],
}

/// Layers of these shapes, and tokens that follow those of the vocabulary.
fn decoder(text: Fields<'_>, shapes: &Shapes, form: Form) -> Result<Family, Error> {
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::new(form.theta))?;
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: form.qkv_bias,
            qk_norm: form.qk_norm,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let layers = vec![layer; shapes.layers as usize];
    DecoderConfig {
        read_only_tokens: check_range("additional_vocab_size", form.more, 0..=1 << 16)?,
        renames: form.renames,
        ..shapes.decoder(vec![rope], layers)
    }
    .family()
}
