//! Nemotron Nano Omni without what it hears and without films: RADIO (class tokens and registers before the patches,
//! learned positions that are resampled) beside Nemotron-H.

use serde_json::Map;

use super::shape::TowerShape;
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::families::nemotron_h;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::image_processor::parts::{MERGE, PATCH, PIXELS};
use crate::image_processor::{Filter, ImageProcessor, Layout, PatchBudget, ProcessorConfig, Sizing, CLIP};
use crate::image_prompt::{ImagePrompt, ImageRun};
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Nemotron Nano Omni, without what it hears",
    &[
        "NemotronH_Nano_Omni_Reasoning_V3",
        "nemotron_h_nano_omni",
        "nemotronh_nano_omni_reasoning_v3",
    ],
    nemotron_h::parse,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::always(&[], processor),
        prompt: ImagePrompt {
            run: ImageRun::Between("<img>", "</img>"),
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// The side of a patch in all published models, and the patches of an image.
const PATCH_SIDE: u32 = 16;
const PATCHES: [u32; 2] = [1024, 13_312];

/// The most tokens of a prompt with an image, unless the processor's file says more.
const LONGEST: u32 = 16_384;

/// The tower whose shape is that of the class.
const HUGE: &str = "vit_huge";

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
    /// Width inside of the projector.
    pub width: u32,
}

fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let unsupported = |what: String| Err(Error::Unsupported(format!("{what} of Nemotron Nano Omni")));
    if top.text("ps_version")?.as_deref() != Some("v2") {
        return unsupported("another order of patches than `v2` (`ps_version`)".into());
    }
    let nothing = Map::new();
    let args = vision.object("args")?.unwrap_or(Fields::new(&nothing));
    let named = args.text("model")?.filter(|_| !vision.has("hidden_size"));
    if let Some(other) = named.filter(|name| !name.contains(HUGE)) {
        return unsupported(format!("the tower `{other}`"));
    }
    if vision.has("vitdet_window_size") || vision.has("feature_normalizer_config") {
        return unsupported("windows or a normalizer in the tower".into());
    }
    let usual = [1280, 32, 16, 5120, PATCH_SIDE];
    let shape = TowerShape::parse(vision, usual, 1e-6, EncoderActivation::Gelu)?;
    let pixels = match args.number("cpe_max_size")? {
        Some(pixels) => pixels,
        None => vision.number("max_resolution")?.unwrap_or(2048),
    };
    let side = super::shape::patches_along("max_resolution", pixels, shape.patch_size)?;
    // Elsewhere a part of the table is cut out as it is.
    if shape.side(vision, 224)? == side {
        return unsupported("learned positions that are not resampled".into());
    }
    let ratio = top.number("downsample_ratio")?.unwrap_or(0.5f32);
    let merge = ratio.recip().round();
    if !(1.0..=16.0).contains(&merge) {
        return unusable("downsample_ratio", format!("{ratio} is no part of a side"));
    }
    let width = top.number("projector_hidden_size")?.unwrap_or(4096);
    check_width("projector_hidden_size", u64::from(width))?;
    let states = top.number("vit_hidden_size")?.unwrap_or(1280);
    if states != shape.hidden_size {
        let reason = format!("the tower is {} wide, and not {states}", shape.hidden_size);
        return unusable("vit_hidden_size", reason);
    }
    Ok(VisionConfig::Radio(RadioConfig {
        shape,
        side,
        merge: merge as u32,
        width,
    }))
}

impl RadioConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let inside = u64::from(self.width) * cost.hidden * u64::from(self.merge).pow(2);
        let others = cost.others + 2 * inside;
        VisionCost {
            others,
            ..cost.joined(self.merge)
        }
    }
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let patch = processor.model_number(&["vision_config.patch_size"], PATCH_SIDE, PATCH)?;
    let patch = processor.number("patch_size", patch, PATCH)?;
    let ratio = processor.model_fraction("downsample_ratio", 0.5, 0.0625..=1.0)?;
    let merge = (1.0 / ratio).round() as u32;
    if !MERGE.contains(&merge) {
        return Err(Error::InvalidProcessor {
            field: "downsample_ratio",
            reason: format!("{ratio} is no part of a side"),
        });
    }
    let [least, most] = PATCHES;
    let least = processor.number("min_num_patches", least, PIXELS)?;
    let most = processor.number("max_num_patches", most, PIXELS)?;
    let longest = processor.number("max_model_len", LONGEST, PIXELS)?;
    let room = longest.saturating_sub(4).saturating_mul(merge * merge);
    Ok(ImageProcessor {
        sizing: Sizing::PatchBudget(PatchBudget {
            patch,
            merge,
            least,
            most: room.min(most).max(least),
        }),
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(CLIP))?,
        layout: Layout::Patches {
            side: patch,
            block: 1,
            frames: 1,
            colour_by_colour: true,
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::{Family, ModelConfig};

    fn config() -> Value {
        // As Nemotron 3 Nano Omni has it, as far as it matters here.
        let text = json!({"model_type": "nemotron_h", "hidden_size": 2688, "vocab_size": 131072, "hybrid_override_pattern": "MEM*EM",
            "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 64, "mamba_head_dim": 64,
            "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "n_routed_experts": 128, "num_experts_per_tok": 6,
            "n_shared_experts": 1, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "n_group": 1,
            "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "layer_norm_epsilon": 1e-5});
        let teachers = json!([{"name": "clip"}, {"name": "dino"}]);
        let vision = json!({"model_type": "radio", "patch_size": 16, "max_resolution": 2048,
            "args": {"model": "vit_huge_patch16_224", "cpe_max_size": 2048, "register_multiple": 8, "teachers": teachers}});
        json!({"model_type": "NemotronH_Nano_Omni_Reasoning_V3", "llm_config": text, "vision_config": vision, "ps_version": "v2",
            "downsample_ratio": 0.5, "projector_hidden_size": 20480, "vit_hidden_size": 1280, "force_image_size": 512})
    }

    #[test]
    fn the_tower_is_that_of_its_class() {
        let found = ModelConfig::parse(&config().to_string()).unwrap();
        let (Some(VisionConfig::Radio(tower)), Family::Decoder(_)) = (&found.vision, &found.family) else {
            panic!("{:?}", found.vision_problem)
        };
        assert_eq!(
            (tower.shape.layers, tower.shape.hidden_size, tower.side, tower.merge),
            (32, 1280, 128, 2)
        );
    }

    #[test]
    fn another_tower_is_refused_and_texts_are_read() {
        for (place, value) in [
            ("/ps_version", json!("v1")),
            ("/downsample_ratio", json!(0.0)),
            ("/vit_hidden_size", json!(1024)),
            ("/projector_hidden_size", json!(u32::MAX)),
            ("/vision_config/args/model", json!("vit_large_patch16_224")),
            ("/vision_config/args/cpe_max_size", json!(224)),
            ("/vision_config/args/cpe_max_size", json!(0)),
            ("/vision_config/patch_size", json!(0)),
        ] {
            let mut config = config();
            *config.pointer_mut(place).unwrap() = value.clone();
            let found = ModelConfig::parse(&config.to_string()).unwrap();
            assert!(
                found.vision.is_none() && found.vision_problem.is_some(),
                "{place} {value}"
            );
        }
    }
}
