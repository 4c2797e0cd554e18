//! Quantized weights as `config.json` describes them.

use std::fmt;

use super::fields::Fields;
use crate::error::Error;
use crate::memory::Packing;

/// The number format of quantized weights, in MLX's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Integers with a scale and a bias per group.
    Affine,
    /// 4 bit floats, a power of two per 32.
    Mxfp4,
    /// 8 bit floats, a power of two per 32.
    Mxfp8,
    /// 4 bit floats, an 8 bit float per 16.
    Nvfp4,
}

impl Mode {
    /// The name that MLX uses.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Affine => "affine",
            Mode::Mxfp4 => "mxfp4",
            Mode::Mxfp8 => "mxfp8",
            Mode::Nvfp4 => "nvfp4",
        }
    }

    /// The only group size and bits of formats that leave no choice.
    pub(crate) fn fixed(self) -> Option<(u32, u32)> {
        match self {
            Mode::Affine => None,
            Mode::Mxfp4 => Some((32, 4)),
            Mode::Mxfp8 => Some((32, 8)),
            Mode::Nvfp4 => Some((16, 4)),
        }
    }
}

/// How most of a model's weights are quantized. Single ones may differ; their shapes tell, and the loader goes by
/// those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantization {
    /// Weights that share a scale.
    pub group_size: u32,
    /// Bits of one weight.
    pub bits: u32,
    /// The number format.
    pub mode: Mode,
}

impl Quantization {
    /// The numbers that the memory estimate depends on.
    pub(crate) fn packing(self) -> Packing {
        let (bits, group) = (f64::from(self.bits), f64::from(self.group_size));
        Packing {
            bits: self.bits.into(),
            group_size: self.group_size.into(),
            bits_with_scales: match self.mode {
                // A scale and a bias of 16 bits each.
                Mode::Affine => bits + 32.0 / group,
                Mode::Mxfp4 | Mode::Mxfp8 | Mode::Nvfp4 => bits + 8.0 / group,
            },
        }
    }

    /// The `quantization` of MLX's own files, with the parts that are quantized in another way or not at all
    /// (`"path": {…}`, `"path": false`); formats of other quantizers are named in the error.
    pub(crate) fn parse(top: Fields<'_>, text: Fields<'_>) -> Result<Option<Self>, Error> {
        let own = match top.object("quantization")? {
            Some(fields) => Some(fields),
            None => text.object("quantization")?,
        };
        let foreign = match top.object("quantization_config")? {
            Some(fields) => Some(fields),
            None => text.object("quantization_config")?,
        };
        let Some(fields) = own.or(foreign) else { return Ok(None) };
        if own.is_none() {
            if let Some(method) = fields.text("quant_method")? {
                return Self::of_method(&method, fields).map(Some);
            }
        }
        let most = Self::read(fields)?;
        for part in fields.objects() {
            if part.has("bits") || part.has("mode") {
                Self::read(part)?;
            }
        }
        Ok(Some(most))
    }

    /// Methods whose files hold what MLX computes with.
    fn of_method(method: &str, fields: Fields<'_>) -> Result<Self, Error> {
        if method == "bitnet" {
            return Self::ternary(fields);
        }
        let mode = match method {
            "mxfp4" => Mode::Mxfp4,
            "mxfp8" => Mode::Mxfp8,
            other => return Err(Error::Unsupported(format!("weights quantised by `{other}`"))),
        };
        let (group_size, bits) = mode.fixed().unwrap_or_default();
        Ok(Self { group_size, bits, mode })
    }

    /// BitNet's -1, 0 and 1, of which the loader makes MLX's integers of 2 bits.
    fn ternary(fields: Fields<'_>) -> Result<Self, Error> {
        // With the other class a matrix is divided by its scale.
        let multiplied = fields.text("linear_class")?.as_deref() == Some("autobitlinear");
        let offline = fields.text("quantization_mode")?.is_none_or(|mode| mode == "offline");
        if !(multiplied && offline) {
            let reason = "weights quantised by `bitnet` that are not packed in the form of its own models";
            return Err(Error::Unsupported(reason.into()));
        }
        Ok(Self {
            group_size: 128,
            bits: 2,
            mode: Mode::Affine,
        })
    }

    fn read(fields: Fields<'_>) -> Result<Self, Error> {
        let mode = match fields.text("mode")?.as_deref() {
            None | Some("affine") => Mode::Affine,
            Some("mxfp4") => Mode::Mxfp4,
            Some("mxfp8") => Mode::Mxfp8,
            Some("nvfp4") => Mode::Nvfp4,
            Some(other) => return Err(Error::Unsupported(format!("the quantisation mode `{other}`"))),
        };
        if let Some((group_size, bits)) = mode.fixed() {
            return Ok(Self { group_size, bits, mode });
        }
        // MLX's defaults, for parts that only say how many bits they have.
        let group_size = fields.number("group_size")?.unwrap_or(64);
        let bits = fields.required("bits")?;
        match (group_size, bits) {
            (32 | 64 | 128, 2..=6 | 8) => Ok(Self { group_size, bits, mode }),
            _ => Err(Error::Unsupported(format!(
                "quantisation to {bits} bits in groups of {group_size}"
            ))),
        }
    }
}

impl fmt::Display for Quantization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            Mode::Affine => write!(f, "{} bit, groups of {}", self.bits, self.group_size),
            mode => write!(f, "{}", mode.name()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    fn parse(config: &Value) -> Result<Option<Quantization>, Error> {
        let top = Fields::new(config.as_object().unwrap());
        Quantization::parse(top, top)
    }

    #[test]
    fn every_format_of_mlx_is_known() {
        for bits in [2, 3, 4, 5, 6, 8] {
            for group_size in [32, 64, 128] {
                let found = parse(&json!({"quantization": {"bits": bits, "group_size": group_size}}))
                    .unwrap()
                    .unwrap();
                assert_eq!(
                    (found.bits, found.group_size, found.mode),
                    (bits, group_size, Mode::Affine)
                );
            }
        }
        for mode in ["mxfp4", "mxfp8", "nvfp4"] {
            assert_eq!(
                parse(&json!({"quantization": {"mode": mode}}))
                    .unwrap()
                    .unwrap()
                    .to_string(),
                mode
            );
        }
        assert_eq!(parse(&json!({})).unwrap(), None);
    }

    #[test]
    fn formats_that_nobody_computes_are_refused_wherever_they_stand() {
        for quantization in [
            json!({"bits": 7, "group_size": 64}),
            json!({"bits": 4, "group_size": 16}),
            json!({"bits": 4, "group_size": 64, "model.layers.0.mlp": {"bits": 1, "group_size": 64}}),
            json!({"bits": 4, "group_size": 64, "model.layers.0.mlp": {"mode": "fp3"}}),
        ] {
            assert!(parse(&json!({"quantization": quantization})).is_err(), "{quantization}");
        }
        let mixed = json!({"bits": 4, "group_size": 64, "a": {"bits": 8, "group_size": 32}, "b": false, "c": {"mode": "mxfp4"}});
        assert_eq!(parse(&json!({"quantization": mixed})).unwrap().unwrap().bits, 4);
    }

    #[test]
    fn other_quantisers_are_refused_by_name() {
        for method in [
            "gptq",
            "awq",
            "bitsandbytes",
            "fp8",
            "compressed-tensors",
            "modelopt",
            "bitnet",
        ] {
            let error = parse(&json!({"quantization_config": {"quant_method": method}})).unwrap_err();
            assert!(error.to_string().contains(method), "{error}");
        }
        let mxfp4 = parse(&json!({"quantization_config": {"quant_method": "mxfp4"}}))
            .unwrap()
            .unwrap();
        assert_eq!((mxfp4.mode, mxfp4.bits, mxfp4.group_size), (Mode::Mxfp4, 4, 32));
    }
}
