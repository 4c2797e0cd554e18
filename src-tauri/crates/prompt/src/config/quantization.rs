//! What `config.json` says about quantised weights.

use std::fmt;

use super::fields::Fields;
use super::ConfigError;

/// The number format of quantised weights, in MLX's names.
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
}

/// How most of a model's weights are quantised. Single tensors may differ; their shapes tell.
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
    /// The `quantization` of MLX's own files; formats of other quantisers are named in the error.
    pub(super) fn parse(top: Fields<'_>, text: Fields<'_>) -> Result<Option<Self>, ConfigError> {
        let own = top.object("quantization")?;
        let foreign = match top.object("quantization_config")? {
            Some(fields) => Some(fields),
            None => text.object("quantization_config")?,
        };
        let Some(fields) = own.or(foreign) else { return Ok(None) };
        if own.is_none() {
            if let Some(method) = fields.text("quant_method")? {
                return Err(ConfigError::NotYet(format!("weights quantised by `{method}`")));
            }
        }
        let mode = match fields.text("mode")?.as_deref() {
            None | Some("affine") => Mode::Affine,
            Some("mxfp4") => Mode::Mxfp4,
            Some("mxfp8") => Mode::Mxfp8,
            Some("nvfp4") => Mode::Nvfp4,
            Some(other) => return Err(ConfigError::NotYet(format!("the quantisation mode `{other}`"))),
        };
        Ok(Some(Self {
            group_size: fields.required("group_size")?,
            bits: fields.required("bits")?,
            mode,
        }))
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
