//! The tower of ERNIE 4.5 VL: patches in blocks, turned by row and column, and a resampler that makes one token of each
//! block. It joins pairs of frames of a film as well; an image is its own second frame.

use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::check_positive;
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::families::vision::shape::{activation, merge, TowerShape};
use crate::memory::VisionCost;

/// The shapes of the tower. Defaults are those of transformers' `Ernie4_5_VLMoeVisionConfig`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErnieVisionConfig {
    /// The stack.
    pub shape: TowerShape,
    /// Patches on a side of the square that becomes one token (`spatial_merge_size`).
    pub merge: u32,
    /// True if the resampler joins frames (`use_temporal_conv`).
    pub joins_frames: bool,
    /// Added to the mean square in the norm of tokens: the language part's.
    pub text_eps: f32,
}

/// The tower of ERNIE 4.5 VL. The original files have other names of some fields than those of transformers.
pub(crate) fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let text = top.object("text_config")?.unwrap_or(top);
    let hidden_size = vision.first(&["embed_dim", "hidden_size"])?.unwrap_or(1280u32);
    let ratio = vision.number("mlp_ratio")?.unwrap_or(4.0f32);
    let shape = TowerShape {
        hidden_size,
        layers: vision.number("depth")?.unwrap_or(32),
        heads: vision.number("num_heads")?.unwrap_or(16),
        intermediate_size: match vision.number("intermediate_size")? {
            Some(width) => width,
            None => (hidden_size as f32 * ratio) as u32,
        },
        patch_size: vision.number("patch_size")?.unwrap_or(14),
        eps: vision.first(&["rms_norm_eps", "layer_norm_eps"])?.unwrap_or(1e-6),
        activation: activation(vision, "hidden_act", EncoderActivation::QuickGelu)?,
    };
    let config = ErnieVisionConfig {
        shape: shape.check()?.check_turning()?,
        merge: merge("spatial_merge_size", vision.number("spatial_merge_size")?)?,
        joins_frames: top.flag("use_temporal_conv")?.unwrap_or(true),
        text_eps: text.number("rms_norm_eps")?.unwrap_or(1e-5),
    };
    check_positive("rms_norm_eps", config.shape.eps)?;
    check_positive("rms_norm_eps", config.text_eps)?;
    check_width("spatial_merge_size", 2 * u64::from(config.square()))?;
    for (field, wanted) in [
        ("spatial_conv_size", config.merge),
        ("temporal_conv_size", 2),
        ("pixel_hidden_size", config.shape.hidden_size),
    ] {
        if let Some(other) = top.number::<u32>(field)?.filter(|number| *number != wanted) {
            return unusable(field, format!("it is {other}, and the tower makes {wanted}"));
        }
    }
    if let Some(frames) = vision
        .number::<u32>("temporal_merge_size")?
        .filter(|frames| *frames != 2)
    {
        return unusable(
            "temporal_merge_size",
            format!("it is {frames}, and frames are joined in pairs"),
        );
    }
    Ok(VisionConfig::Ernie(config))
}

impl ErnieVisionConfig {
    /// Numbers of all patches of a block.
    pub fn square(&self) -> u32 {
        self.shape.hidden_size.saturating_mul(self.merge * self.merge)
    }

    pub(super) fn cost(&self) -> VisionCost {
        let plain = self.shape.cost(2, 0, 1);
        let square = u64::from(self.square());
        let (joined, matrices) = (plain.joined(self.merge), if self.joins_frames { 4 } else { 1 });
        VisionCost {
            others: joined.others + matrices * square * square + square * joined.hidden,
            ..joined
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::config::decoder::FeedForward;
    use crate::{Family, ModelConfig};

    fn parsed(vision: &Value, top: &Value) -> Result<VisionConfig, Error> {
        parse(
            Fields::new(vision.as_object().unwrap()),
            Fields::new(top.as_object().unwrap()),
        )
    }

    #[test]
    fn both_forms_are_the_same_tower() {
        let original = json!({"model_type": "DFNRope_vision_transformer", "depth": 32, "embed_dim": 1280, "hidden_size": 1280,
            "hidden_act": "quick_gelu", "mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2});
        let top =
            json!({"rms_norm_eps": 1e-5, "pixel_hidden_size": 1280, "spatial_conv_size": 2, "temporal_conv_size": 2});
        let found = parsed(&original, &top).unwrap();
        let transformers =
            json!({"model_type": "ernie4_5_vl_moe_vision", "temporal_merge_size": 2, "intermediate_size": 5120});
        assert_eq!(parsed(&transformers, &json!({"text_config": {}})).unwrap(), found);
        let VisionConfig::Ernie(config) = found else {
            panic!("another tower")
        };
        assert_eq!(
            (config.shape.head_dim(), config.square(), config.joins_frames),
            (80, 5120, true)
        );
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        for (vision, top, named) in [
            (json!({"num_heads": 7}), json!({}), "num_attention_heads"),
            (json!({"embed_dim": u32::MAX}), json!({}), "num_attention_heads"),
            (json!({"spatial_merge_size": 0}), json!({}), "spatial_merge_size"),
            (json!({"temporal_merge_size": 4}), json!({}), "temporal_merge_size"),
            (json!({}), json!({"spatial_conv_size": 4}), "spatial_conv_size"),
            (json!({}), json!({"temporal_conv_size": 1}), "temporal_conv_size"),
            (json!({}), json!({"pixel_hidden_size": 1}), "pixel_hidden_size"),
            (json!({}), json!({"rms_norm_eps": 0.0}), "rms_norm_eps"),
            (json!({"hidden_act": "mish"}), json!({}), "mish"),
        ] {
            let error = parsed(&vision, &top).unwrap_err().to_string();
            assert!(error.contains(named), "{vision} {top}: {error}");
        }
    }

    #[test]
    fn ernie_4_5_vl_has_experts_of_text_and_of_images() {
        // As ERNIE-4.5-VL-28B-A3B-PT has it.
        let vision = json!({"model_type": "DFNRope_vision_transformer", "depth": 32, "embed_dim": 1280, "hidden_size": 1280, "hidden_act": "quick_gelu",
                            "mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2});
        let config = json!({"model_type": "ernie4_5_moe_vl", "vision_config": vision, "hidden_size": 2560, "num_hidden_layers": 28,
                            "intermediate_size": 12288, "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103424, "rms_norm_eps": 1e-5,
                            "rope_theta": 500000, "rope_scaling": {"type": "default", "mrope_section": [22, 22, 20]}, "use_bias": false,
                            "moe_num_experts": [64, 64], "moe_intermediate_size": [1536, 512], "moe_k": 6, "moe_num_shared_experts": 2,
                            "moe_layer_start_index": [1, 1], "moe_layer_end_index": [29, 28], "moe_layer_interval": 1, "pixel_hidden_size": 1280});
        let read = |config: &Value| ModelConfig::parse(&config.to_string());
        let whole = read(&config).unwrap();
        let (Some(VisionConfig::Ernie(tower)), Family::Decoder(decoder)) = (&whole.vision, &whole.family) else {
            panic!("{whole:?}")
        };
        assert_eq!((tower.merge, tower.square()), (2, 5120));
        assert!(matches!(decoder.layers[0].feed_forward, FeedForward::Dense(_)));
        for layer in &decoder.layers[1..] {
            let FeedForward::ModalMoe(experts) = layer.feed_forward else {
                panic!("{layer:?}")
            };
            assert_eq!(
                (experts.text.width, experts.vision.width, experts.vision.num_experts),
                (1536, 512, 64)
            );
            assert_eq!(experts.text.shared.map(|shared| shared.width), Some(3072));
            assert_eq!(experts.vision.shared, None);
        }
        let sections = decoder.ropes[0].sections.unwrap();
        assert_eq!([0, 1, 43, 44, 63].map(|pair| sections.axis(pair)), [1, 2, 2, 0, 0]);
        for (field, value, named) in [
            ("moe_num_experts", json!([64, 64, 64]), "moe_num_experts"),
            ("moe_num_experts", json!([64, 5]), "num_experts_per_tok"),
            ("moe_intermediate_size", json!([1536, 4e9]), "moe_intermediate_size"),
            ("rope_scaling", json!({"mrope_section": [20, 24, 20]}), "mrope_section"),
            ("rope_scaling", json!({"mrope_section": [22, 22, 22]}), "mrope_section"),
            ("rope_3d", json!(false), "rows and columns"),
            ("use_bias", json!(true), "use_bias"),
            ("moe_gate_act", json!("luck"), "luck"),
        ] {
            let mut changed = config.clone();
            changed[field] = value.clone();
            let error = read(&changed).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
