//! Mistral 4: DeepSeek's attention over latents with queries that grow with their position, and experts that share what
//! they count.

use super::deepseek::{decoder, INTERLEAVED, LATENT_EPS};
use super::experts::{groups, place};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, Mixer, QueryScaling};
use crate::config::limits::check_nonzero;
use crate::config::moe::{MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Mistral 4, text only", &["mistral4"], parse)];

/// Mistral 4.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text, Some(LATENT_EPS), text.required("v_head_dim")?, INTERLEAVED)?;
    let scaling = query_scaling(text)?;
    config.each_layer(|layer| {
        if let Mixer::Mla(latent) = &mut layer.mixer {
            latent.query_scaling = scaling;
        }
    });
    let traditional = text.flag("rope_interleave")?.unwrap_or(true);
    config.ropes.iter_mut().for_each(|rope| rope.traditional = traditional);
    let width = text.required("moe_intermediate_size")?;
    let beside = text.number::<u32>("n_shared_experts")?.filter(|count| *count > 0);
    let experts = MoeConfig {
        num_experts: text.required("n_routed_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            groups: groups(text)?,
            ..RouterConfig::new(Scoring::Softmax, text.flag("norm_topk_prob")?.unwrap_or(true))
        },
        shared: beside.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    };
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(0) as usize;
    place(&mut config, experts, |layer| layer >= first);
    config.family()
}

fn query_scaling(text: Fields<'_>) -> Result<Option<QueryScaling>, Error> {
    const CONTEXT: &str = "original_max_position_embeddings";
    let Some(rope) = text.object("rope_parameters")?.or(text.object("rope_scaling")?) else {
        return Ok(None);
    };
    let Some(beta) = rope.number("llama_4_scaling_beta")? else {
        return Ok(None);
    };
    let original_context = rope.number(CONTEXT)?.unwrap_or(8192);
    check_nonzero(CONTEXT, original_context)?;
    Ok(Some(QueryScaling {
        beta,
        original_context,
        from_one: false,
    }))
}
