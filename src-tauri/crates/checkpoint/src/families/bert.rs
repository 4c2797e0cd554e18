//! BERT and RoBERTa: learned positions, attention that looks both ways, norms after each half. Defaults are those of
//! transformers' `BertConfig` and `RobertaConfig`.

use super::row::FamilyRow;
use super::source::Source;
use crate::config::encoder::{EncoderActivation, EncoderConfig, Positions};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::embedding("BERT", &["bert"], bert),
    FamilyRow::embedding("RoBERTa and XLM-RoBERTa", &["roberta", "xlm-roberta"], roberta),
];

/// Names of BERT's checkpoints. Task heads lie beside the encoder, which then has a name of its own.
const RENAMES: &[&[(&str, &str)]] = &[
    &[
        ("bert.embeddings", "embeddings"),
        ("bert.pooler", "pooler"),
        ("roberta.embeddings", "embeddings"),
        ("bert.encoder.layer", "layers"),
        ("roberta.encoder.layer", "layers"),
        ("encoder.layer", "layers"),
    ],
    &[
        ("attention.self.query", "self_attn.q_proj"),
        ("attention.self.key", "self_attn.k_proj"),
        ("attention.self.value", "self_attn.v_proj"),
        ("attention.output.dense", "self_attn.o_proj"),
        ("attention.output.LayerNorm", "post_attention_layernorm"),
        ("intermediate.dense", "mlp.up_proj"),
        ("output.dense", "mlp.down_proj"),
        ("output.LayerNorm", "post_mlp_layernorm"),
    ],
];

/// BERT.
pub(super) fn bert(source: Source<'_>) -> Result<Family, Error> {
    encoder(source.text, 0, 2)
}

/// RoBERTa and XLM-RoBERTa: positions begin after that of the padding token.
pub(super) fn roberta(source: Source<'_>) -> Result<Family, Error> {
    let padding: u32 = source.text.number("pad_token_id")?.unwrap_or(1);
    encoder(source.text, padding.saturating_add(1), 1)
}

fn encoder(text: Fields<'_>, first: u32, token_types: u32) -> Result<Family, Error> {
    if let Some(kind) = text.text("position_embedding_type")?.filter(|kind| kind != "absolute") {
        return Err(Error::Unsupported(format!("positions of type `{kind}`")));
    }
    let config = EncoderConfig {
        hidden_size: text.required("hidden_size")?,
        vocab_size: text.required("vocab_size")?,
        layers: text.required("num_hidden_layers")?,
        heads: text.required("num_attention_heads")?,
        width: text.required("intermediate_size")?,
        norm_eps: text.number("layer_norm_eps")?.unwrap_or(1e-12),
        activation: EncoderActivation::named(text.text("hidden_act")?.as_deref().unwrap_or("gelu"))?,
        gated: false,
        bias: true,
        positions: Positions::Learned {
            rows: text.number("max_position_embeddings")?.unwrap_or(512),
            first,
        },
        token_types: text.number("type_vocab_size")?.unwrap_or(token_types),
        renames: RENAMES,
    };
    Ok(Family::Encoder(Box::new(config.check()?)))
}
