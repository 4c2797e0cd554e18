//! PaliGemma 1 and 2: SigLIP with one projection beside Gemma 1 or 2, whose prompts look both ways.

use super::llava::{processor, tower, LlavaConfig};
use super::{LlavaProjector, VisionConfig};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::{gemma, Source};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "PaliGemma 1 and 2",
    &["paligemma"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::always(&[], processor),
        prompt: ImagePrompt {
            template: Some(TEMPLATE),
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// The form of a prompt, which no repository has: all images, then the last question and a line end. The models were
/// trained on single questions.
const TEMPLATE: &str = "{% for m in messages %}{% if m.content is not string %}{% for p in m.content %}\
    {% if p.type == 'image' %}<image>{% endif %}{% endfor %}{% endif %}{% endfor %}{{ bos_token }}\
    {% for m in messages | selectattr('role', 'equalto', 'user') | list %}{% if loop.last %}\
    {% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}\
    {{ p.text }}{% endif %}{% endfor %}{% endif %}{% endif %}{% endfor %}{{ '\\n' }}";

fn language_part(source: Source<'_>) -> Result<Family, Error> {
    match source.text.text("model_type")?.as_deref() {
        // Files that describe one model alone have its name there.
        None | Some("gemma" | "paligemma") => gemma::gemma(source),
        Some("gemma2") => gemma::gemma2(source),
        Some(other) => Err(Error::Unsupported(format!(
            "PaliGemma beside the language part `{other}`"
        ))),
    }
}

fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let text = top.object("text_config")?.unwrap_or(top);
    Ok(VisionConfig::Llava(LlavaConfig {
        post_norm: true,
        // The class of mlx-vlm reads an absent one as true.
        whole_prompts: text.flag("use_bidirectional_attention")?.unwrap_or(true),
        ..tower(vision, top, "full", -1, LlavaProjector::Projection)?
    }))
}
