//! The tower of MiMo V2: heads that share keys, and in most layers a window over patches row by row or column by
//! column, with a score for each head that is added to that of the first patch.

use super::{check_patch, check_shapes, check_width, VisionConfig};
use crate::config::limits::{check_head, check_key_heads, check_layers, check_positive, check_quarters};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// The shapes of the tower. Defaults are those of mlx-vlm's `VisionConfig`.
#[derive(Debug, Clone, PartialEq)]
pub struct MimoVisionConfig {
    /// Width of its stream.
    pub hidden_size: u32,
    /// Width inside of its networks.
    pub intermediate_size: u32,
    /// Heads of queries.
    pub heads: u32,
    /// Heads of keys and values.
    pub key_heads: u32,
    /// Width of a head (`qk_channels`).
    pub head_dim: u32,
    /// Width of the language part.
    pub out_hidden_size: u32,
    /// Side of a patch in pixels.
    pub patch_size: u32,
    /// How often a patch's image stands in it.
    pub frames: u32,
    /// Patches on a side of the square that becomes one token.
    pub merge: u32,
    /// Added to the mean square in the norms of the layers.
    pub eps: f32,
    /// Patches before and after one that it sees in layers with a window (`visual_token_window_size`); all if there is
    /// none.
    pub window: Option<u32>,
    /// True if layers with a window have such scores (`use_sink`).
    pub sinks: bool,
    /// The layers.
    pub layers: Vec<MimoVisionLayer>,
}

/// One layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MimoVisionLayer {
    /// True if it sees the whole image.
    pub full: bool,
    /// True if patches follow each other column by column.
    pub columns: bool,
}

/// The tower of MiMo V2.
pub(crate) fn parse(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    const KINDS: &str = "vit_window_attn_types";
    let number = |field: &'static str, usual: u32| Ok::<u32, Error>(vision.number(field)?.unwrap_or(usual));
    match vision.text("hidden_act")?.as_deref() {
        None | Some("silu") => {}
        Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
    let count = check_layers(number("depth", 28)?)?;
    let full = vision.numbers("fullatt_block_indexes")?;
    let full = full.unwrap_or_else(|| vec![0.0, 9.0, 18.0, 27.0]);
    let kinds = vision.numbers(KINDS)?.unwrap_or_default();
    if !kinds.is_empty() && kinds.len() < count as usize {
        return unusable(KINDS, format!("it names {} of {count} layers", kinds.len()));
    }
    let layers = (0..count).map(|layer| MimoVisionLayer {
        full: full.contains(&(layer as f32)),
        columns: kinds.get(layer as usize) == Some(&1.0),
    });
    let window = vision.number::<f32>("visual_token_window_size")?.unwrap_or(64.0);
    let config = MimoVisionConfig {
        hidden_size: number("hidden_size", 1280)?,
        intermediate_size: number("intermediate_size", 4608)?,
        heads: number("num_heads", 32)?,
        key_heads: number("num_key_value_heads", 8)?,
        head_dim: number("qk_channels", 64)?,
        out_hidden_size: number("out_hidden_size", 4096)?,
        patch_size: number("patch_size", 16)?,
        frames: number("temporal_patch_size", 2)?,
        merge: number("spatial_merge_size", 2)?,
        eps: vision.number("rms_norm_eps")?.unwrap_or(1e-6),
        window: Some(window as u32).filter(|_| window > 0.0),
        sinks: vision.flag("use_sink")?.unwrap_or(true),
        layers: layers.collect(),
    };
    config.check()
}

impl MimoVisionConfig {
    fn check(self) -> Result<VisionConfig, Error> {
        check_patch(self.patch_size)?;
        check_positive("rms_norm_eps", self.eps)?;
        check_key_heads("num_key_value_heads", self.heads, self.key_heads)?;
        check_head("qk_channels", self.head_dim)?;
        check_quarters("qk_channels", self.head_dim)?;
        let layers = self.layers.len() as u32;
        check_shapes(
            layers,
            self.hidden_size,
            self.heads,
            self.head_dim,
            self.intermediate_size,
        )?;
        check_width("out_hidden_size", self.out_hidden_size.into())?;
        let all = (u64::from(self.heads) + 2 * u64::from(self.key_heads)) * u64::from(self.head_dim);
        check_width("num_heads", all)?;
        if !(1..=16).contains(&self.merge) || !(1..=16).contains(&self.frames) {
            let reason = format!("{} by {} patches become no token", self.merge, self.frames);
            return unusable("spatial_merge_size", reason);
        }
        check_width("visual_token_window_size", self.window.unwrap_or(1).into())?;
        Ok(VisionConfig::Mimo(self))
    }

    pub(super) fn cost(&self) -> VisionCost {
        let (hidden, layers) = (u64::from(self.hidden_size), self.layers.len() as u64);
        let square = hidden * u64::from(self.merge).pow(2);
        let patch = 3 * u64::from(self.frames) * u64::from(self.patch_size).pow(2);
        let heads = 2 * (u64::from(self.heads) + u64::from(self.key_heads)) * u64::from(self.head_dim);
        VisionCost {
            layers,
            hidden,
            width: self.intermediate_size.into(),
            projections: 3,
            heads: self.heads.into(),
            others: hidden * patch
                + square * (square + u64::from(self.out_hidden_size))
                + layers * hidden * heads.saturating_sub(4 * hidden),
            patches_of_token: u64::from(self.merge).pow(2),
            ..VisionCost::EMPTY
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    fn parsed(value: &Value) -> Result<VisionConfig, Error> {
        let fields = Fields::new(value.as_object().unwrap());
        parse(fields, fields)
    }

    #[test]
    fn layers_have_windows_by_rows_or_by_columns_or_none() {
        let vision = json!({"depth": 4, "fullatt_block_indexes": [0, 3], "vit_window_attn_types": [-1, 0, 1, -1]});
        let Ok(VisionConfig::Mimo(config)) = parsed(&vision) else {
            panic!("another tower")
        };
        let kinds: Vec<_> = config.layers.iter().map(|layer| (layer.full, layer.columns)).collect();
        assert_eq!(kinds, [(true, false), (false, false), (false, true), (true, false)]);
        assert_eq!((config.window, config.key_heads), (Some(64), 8));
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        for (field, value) in [
            ("num_key_value_heads", json!(3)),
            ("qk_channels", json!(0)),
            ("qk_channels", json!(62)),
            ("depth", json!(u32::MAX)),
            ("vit_window_attn_types", json!([1])),
            ("spatial_merge_size", json!(0)),
            ("rms_norm_eps", json!(0.0)),
            ("out_hidden_size", json!(u32::MAX)),
        ] {
            let error = parsed(&json!({field: value.clone()})).unwrap_err().to_string();
            let named = if field == "depth" { "layers" } else { field };
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
