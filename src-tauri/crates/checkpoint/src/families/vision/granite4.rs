//! Granite 4 Vision: SigLIP, of which the states after several layers go through a projector each and are added before
//! as many layers of the language part. A projector looks through windows: queries that start from shrunk states read
//! all states of their window (a Q-Former, BLIP-2).

use super::llava::next_processor;
use super::shape::TowerShape;
use super::VisionConfig;
use crate::config::activation::EncoderActivation;
use crate::config::decoder::LmHead;
use crate::config::limits::{check_heads, check_positive, check_range, check_width};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::wrapper::by_language_part;
use crate::families::{granite, Source};
use crate::image_processor::{ImageProcessor, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Granite 4 Vision",
    &["granite4_vision", "granite4-vision"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::always(&[], processor),
        prompt: ImagePrompt {
            written: "<image>\n",
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// The most sets of features.
const MOST_SETS: usize = 32;

/// Numbers of a head of a projector.
const HEAD: u32 = 64;

/// A tower and its projectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Granite4VisionConfig {
    /// The stack, without the layers after the last one whose states are used.
    pub shape: TowerShape,
    /// Patches along a side.
    pub side: u32,
    /// Tokens along a side of a window, and patches (`downsample_rate`).
    pub rate: (u32, u32),
    /// Layers of a projector.
    pub layers: u32,
    /// Width inside of its networks.
    pub width: u32,
    /// Added to the variance in the norms of its layers.
    pub eps: f32,
    /// The sets of features.
    pub sets: Vec<FeatureSet>,
}

/// Features that are added before a layer of the language part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureSet {
    /// The number of layers of the tower after which the states are read.
    pub tap: u32,
    /// The layer of the language part before which they are added.
    pub target: u32,
    /// The row and column in each block of 2 × 2 patches from which queries start; from the mean of a block if there
    /// are none.
    pub corner: Option<(u32, u32)>,
}

/// The language part. Conversions leave out that all layers of the hybrid one attend and turn.
fn language_part(source: Source<'_>) -> Result<Family, Error> {
    let kind = source.text.text("model_type")?;
    let family = match kind.as_deref() {
        Some("granite4_vision_text") => granite::dense(source)?,
        Some("granitemoehybrid") => {
            let layers = source.text.required("num_hidden_layers")?;
            let mut text = source.text.without("");
            let kinds =
                || vec!["attention"; crate::config::limits::check_layers(layers).map_or(0, |count| count as usize)];
            text.entry("layer_types").or_insert_with(|| kinds().into());
            text.entry("position_embedding_type").or_insert_with(|| "rope".into());
            by_language_part(Source {
                top: source.top,
                text: Fields::new(&text),
            })?
        }
        _ => by_language_part(source)?,
    };
    Ok(match family {
        // Conversions write the output layer whatever the config says.
        Family::Decoder(mut decoder) => {
            decoder.lm_head = LmHead::UntiedIfPresent;
            Family::Decoder(decoder)
        }
        other => other,
    })
}

/// The tower of Granite 4 Vision. Defaults are those of transformers' `Granite4VisionConfig`.
fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    match vision.text("model_type")?.as_deref() {
        None | Some("siglip_vision_model") => {}
        Some(other) => return Err(Error::Unsupported(format!("the tower `{other}` beside Granite 4"))),
    }
    if top
        .text("vision_feature_select_strategy")?
        .is_some_and(|kept| kept != "full")
    {
        return unusable("vision_feature_select_strategy", "the tower has no class token");
    }
    if top.flag("use_image_newline_parameter")? == Some(false) {
        return Err(Error::Unsupported(
            "tiles without a mark after each row (`image_newline`)".into(),
        ));
    }
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    let shape = TowerShape::parse(vision, [1152, 27, 16, 4304, 16], eps, EncoderActivation::GeluTanh)?;
    check_heads("hidden_size", shape.hidden_size, (shape.hidden_size / HEAD).max(1))?;
    let side = shape.side(vision, 384)?;
    let rate = rate(top.text("downsample_rate")?.as_deref().unwrap_or("4/8"))?;
    if !side.is_multiple_of(rate.1) {
        return unusable(
            "downsample_rate",
            format!("{side} rows of patches are no windows of {}", rate.1),
        );
    }
    let text = top.object("text_config")?.unwrap_or(top);
    let sets = sets(
        top,
        shape.layers,
        text.number("num_hidden_layers")?.unwrap_or(u32::MAX),
        rate,
    )?;
    let former = top.object("qformer_config")?;
    let number =
        |field: &'static str, usual: u32| former.map_or(Ok(usual), |former| Ok(former.number(field)?.unwrap_or(usual)));
    let config = Granite4VisionConfig {
        shape: TowerShape {
            layers: sets.iter().map(|set| set.tap).max().unwrap_or(0),
            ..shape
        },
        side,
        rate,
        layers: check_range("num_hidden_layers", number("num_hidden_layers", 1)?, 1..=64)?,
        width: number("intermediate_size", 3072)?,
        eps: former
            .map_or(Ok(None), |former| former.number("layer_norm_eps"))?
            .unwrap_or(1e-12),
        sets,
    };
    check_width("intermediate_size", 2 * u64::from(config.width))?;
    check_positive("layer_norm_eps", config.eps)?;
    Ok(VisionConfig::Granite4(config))
}

/// The sides of a window in tokens and in patches, as `"4/8"` tells them: blocks of patches become a token.
fn rate(written: &str) -> Result<(u32, u32), Error> {
    let sides = written
        .split_once('/')
        .map(|(query, window)| (query.trim().parse(), window.trim().parse()));
    match sides {
        Some((Ok(query), Ok(window))) if query > 0 && window <= 64 && window >= query && window % query == 0 => {
            Ok((query, window))
        }
        _ => unusable(
            "downsample_rate",
            format!("`{written}` are no tokens in a window of patches"),
        ),
    }
}

/// The sets by `deepstack_layer_map`, then those by `spatial_target_layers`, for towers of so many `layers` and language
/// parts of so many `targets`.
fn sets(top: Fields<'_>, layers: u32, targets: u32, rate: (u32, u32)) -> Result<Vec<FeatureSet>, Error> {
    const MAP: &str = "deepstack_layer_map";
    const SPATIAL: &str = "spatial_target_layers";
    let tap = |field: &'static str, wanted: f32| {
        let after = if wanted < 0.0 {
            wanted + 1.0 + layers as f32
        } else {
            wanted
        };
        match after.fract() == 0.0 && (0.0..=layers as f32).contains(&after) {
            true => Ok(after as u32),
            false => unusable(field, format!("there is no layer {wanted} of {layers}")),
        }
    };
    let target =
        |field: &'static str, wanted: f32| match wanted.fract() == 0.0 && (0.0..targets as f32).contains(&wanted) {
            true => Ok(wanted as u32),
            false => unusable(
                field,
                format!("there is no layer {wanted} of {targets} in the language part"),
            ),
        };
    let mut sets = Vec::new();
    for pair in top.pairs(MAP)?.unwrap_or_default() {
        sets.push(FeatureSet {
            tap: tap(MAP, pair[0])?,
            target: target(MAP, pair[1])?,
            corner: None,
        });
    }
    if top.flag("use_spatial_sampling")?.unwrap_or(true) {
        let layer = top.number("spatial_vision_layer")?.unwrap_or(-1.0f32);
        let wanted = top.numbers(SPATIAL)?.unwrap_or_else(|| vec![12.0, 15.0, 18.0, 21.0]);
        if wanted.len() > 4 || rate.1 != 2 * rate.0 {
            let reason = format!(
                "blocks of {} by {} patches have no {} corners",
                rate.1,
                rate.0,
                wanted.len()
            );
            return unusable(SPATIAL, reason);
        }
        for (corner, wanted) in (0..).zip(wanted) {
            sets.push(FeatureSet {
                tap: tap("spatial_vision_layer", layer)?,
                target: target(SPATIAL, wanted)?,
                corner: Some((corner / 2, corner % 2)),
            });
        }
    }
    let mut seen: Vec<u32> = sets.iter().map(|set| set.target).collect();
    seen.sort_unstable();
    if sets.is_empty() || sets.len() > MOST_SETS || seen.windows(2).any(|two| two[0] == two[1]) {
        return unusable(MAP, format!("{seen:?} are not layers with a set of features each"));
    }
    Ok(sets)
}

impl Granite4VisionConfig {
    /// Heads of a projector.
    pub fn heads(&self) -> u32 {
        (self.shape.hidden_size / HEAD).max(1)
    }

    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let (hidden, width) = (cost.hidden, u64::from(self.width));
        let layer = 8 * hidden * hidden + 2 * hidden * width;
        let projector = u64::from(self.layers) * layer + 2 * hidden * hidden;
        VisionCost {
            others: cost.others + self.sets.len() as u64 * projector,
            patches_of_token: u64::from(self.rate.1 / self.rate.0).pow(2),
            ..cost
        }
    }
}

/// LLaVA-NeXT's, with fewer features of a tile.
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let mut read = next_processor(processor)?;
    if let Sizing::AnyResolution(rule) = &mut read.sizing {
        let (query, window) = rate(processor.model_text("downsample_rate")?.unwrap_or("4/8"))?;
        rule.patch *= window / query;
        if !rule.tile.is_multiple_of(rule.patch) {
            return Err(Error::InvalidProcessor {
                field: "size",
                reason: format!("{} pixels are no tokens of {}", rule.tile, rule.patch),
            });
        }
    }
    Ok(read)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    /// As granite-vision-4.0 has them.
    fn parsed(changes: &Value) -> Result<Granite4VisionConfig, Error> {
        let mut top = json!({"deepstack_layer_map": [[-19, 9], [-13, 6], [-7, 3], [-1, 0]], "downsample_rate": "4/8",
            "spatial_target_layers": [12, 15, 18, 21], "text_config": {"num_hidden_layers": 40}});
        top.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        let vision = json!({"model_type": "siglip_vision_model"});
        match parse(
            Fields::new(vision.as_object().unwrap()),
            Fields::new(top.as_object().unwrap()),
        )? {
            VisionConfig::Granite4(config) => Ok(config),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn states_at_several_depths_go_to_several_layers() {
        let config = parsed(&json!({})).unwrap();
        let sets: Vec<_> = config
            .sets
            .iter()
            .map(|set| (set.tap, set.target, set.corner))
            .collect();
        assert_eq!(sets[..4], [(9, 9, None), (15, 6, None), (21, 3, None), (27, 0, None)]);
        assert_eq!(sets[4..6], [(27, 12, Some((0, 0))), (27, 15, Some((0, 1)))]);
        assert_eq!(
            (config.shape.layers, config.side, config.rate, config.heads()),
            (27, 24, (4, 8), 18)
        );
    }

    #[test]
    fn impossible_features_are_refused_by_name() {
        for (field, value) in [
            ("downsample_rate", json!("4:8")),
            ("downsample_rate", json!("0/8")),
            ("downsample_rate", json!("3/8")),
            ("downsample_rate", json!("5/10")),
            ("downsample_rate", json!("8/4")),
            ("deepstack_layer_map", json!([[-29, 3]])),
            ("deepstack_layer_map", json!([[-1, 40]])),
            ("deepstack_layer_map", json!([[-1, 12]])),
            ("deepstack_layer_map", json!([[-1, -1]])),
            ("deepstack_layer_map", json!([-1, 3])),
            ("spatial_target_layers", json!([1, 2, 4, 5, 7])),
            ("spatial_vision_layer", json!(28)),
            ("vision_feature_select_strategy", json!("default")),
            ("use_image_newline_parameter", json!(false)),
            ("qformer_config", json!({"num_hidden_layers": 0})),
        ] {
            let error = parsed(&json!({field: value.clone()})).unwrap_err().to_string();
            let named = match field {
                "use_image_newline_parameter" => "image_newline",
                "qformer_config" => "num_hidden_layers",
                field => field,
            };
            assert!(error.contains(named), "{field} {value}: {error}");
        }
        assert!(parsed(&json!({"use_spatial_sampling": false, "downsample_rate": "2/8"})).is_ok());
    }
}
