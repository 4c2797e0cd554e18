//! Idefics 2: SigLIP at an image's own shape, whose patches some learned rows look at, beside Mistral.

use super::llava;
use super::shape::TowerShape;
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::{check_head, check_range};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::Source;
use crate::image_processor::parts::{room_for_a_token, CENTRED, LONGEST, PATCH};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Quarters, Sizing};
use crate::image_prompt::{ImagePrompt, ImageRun};
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Idefics 2",
    &["idefics2"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::new(&["Idefics2"], processor),
        prompt: ImagePrompt {
            spaced: true,
            run: ImageRun::Fenced("<fake_token_around_image>"),
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// Learned rows in all published models.
const LATENTS: u32 = 64;

/// A tower and what looks at its patches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Idefics2Config {
    /// The stack.
    pub shape: TowerShape,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// Width inside of the network between tower and resampler.
    pub width: u32,
    /// Learned rows, each of which becomes a feature.
    pub latents: u32,
    /// Layers in which they look at the patches and at each other.
    pub depth: u32,
    /// Heads of their queries.
    pub heads: u32,
    /// Heads of keys and values.
    pub kv_heads: u32,
    /// Width of a head.
    pub head_dim: u32,
    /// The epsilon of the resampler's norms.
    pub eps: f32,
}

/// The language part, with what is as in the class of Mistral and left out.
fn language_part(source: Source<'_>) -> Result<Family, Error> {
    const FIELD: &str = "num_key_value_heads";
    // A name that nothing has, so that all is kept.
    let mut text = source.text.without("");
    if !source.text.has(FIELD) {
        text.insert(FIELD.to_owned(), 8.into());
    }
    text.entry("model_type").or_insert("mistral".into());
    llava::language_part(Source {
        top: source.top,
        text: Fields::new(&text),
    })
}

fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    let shape = TowerShape::parse(vision, [768, 12, 12, 3072, 32], eps, EncoderActivation::GeluTanh)?;
    let side = shape.side(vision, 224)?;
    let text = top.object("text_config")?.unwrap_or(top);
    let perceiver = top.object("perceiver_config")?;
    let perceiver = perceiver.ok_or(Error::MissingField("perceiver_config"))?;
    if perceiver.text("hidden_act")?.is_some_and(|name| name != "silu") {
        return Err(Error::Unsupported("another activation of Idefics 2 than `silu`".into()));
    }
    let (width, own) = (text.number("intermediate_size")?.unwrap_or(14_336), 4096u32);
    check_width("intermediate_size", width.into())?;
    let stream: u32 = text.number("hidden_size")?.unwrap_or(own);
    let of_text: f32 = text.number("rms_norm_eps")?.unwrap_or(1e-6);
    // Its class has the language part's number where it has another width than that class.
    let usual = match perceiver.number("hidden_size")?.unwrap_or(own) == stream {
        true => 1e-6,
        false => of_text,
    };
    let heads = check_range(
        "resampler_n_heads",
        perceiver.number("resampler_n_heads")?.unwrap_or(16),
        1..=1024,
    )?;
    let kv_heads: u32 = perceiver.number("num_key_value_heads")?.unwrap_or(4);
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        return unusable("num_key_value_heads", format!("{heads} heads cannot share {kv_heads}"));
    }
    let head_dim = perceiver.number("resampler_head_dim")?.unwrap_or(96);
    check_head("resampler_head_dim", head_dim)?;
    Ok(VisionConfig::Idefics2(Idefics2Config {
        shape,
        side,
        width,
        latents: check_range(
            "resampler_n_latents",
            perceiver.number("resampler_n_latents")?.unwrap_or(LATENTS),
            1..=4096,
        )?,
        depth: check_range(
            "resampler_depth",
            perceiver.number("resampler_depth")?.unwrap_or(3),
            1..=64,
        )?,
        heads,
        kv_heads,
        head_dim,
        eps: perceiver.number("rms_norm_eps")?.unwrap_or(usual),
    }))
}

impl Idefics2Config {
    /// The language part is taken to be as wide as the resampler's heads, or wider by what its network says.
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let stream = u64::from(self.width) * 2 / 7;
        let inner = u64::from(self.heads + self.kv_heads) * u64::from(self.head_dim);
        let layer = 2 * stream * inner + 12 * stream * stream;
        let network = u64::from(self.width) * (2 * cost.hidden + stream);
        let latents = u64::from(self.latents);
        VisionCost {
            others: cost.others + network + u64::from(self.depth) * layer + latents * stream,
            patches_of_token: u64::from(self.side).pow(2).div_ceil(latents),
            tokens: latents,
            ..cost
        }
    }
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    let side = processor.model_number(&["vision_config.image_size"], 980, LONGEST)?;
    let shortest = processor.within("size", &["shortest_edge"], LONGEST)?.unwrap_or(378);
    let longest = processor.within("size", &["longest_edge"], LONGEST)?.unwrap_or(980);
    if longest > side || shortest > longest {
        let (field, reason) = (
            "size",
            format!("{shortest} to {longest} pixels are not what a tower of {side} takes"),
        );
        return Err(Error::InvalidProcessor { field, reason });
    }
    room_for_a_token(shortest, patch)?;
    let latents = processor.model_number(&["perceiver_config.resampler_n_latents"], LATENTS, 1..=4096)?;
    Ok(ImageProcessor {
        sizing: Sizing::Quarters(Quarters {
            shortest,
            longest,
            splitting: processor.flag("do_image_splitting", false)?,
            patch,
            features: latents,
        }),
        filter: processor.filter(Filter::Bilinear)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
