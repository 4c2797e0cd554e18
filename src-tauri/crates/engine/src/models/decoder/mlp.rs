//! The gated network of the parametric decoder.

use checkpoint::config::decoder::DenseConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{Activation, Linear, Projection, ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;

/// `down(activation(gate(x)) · up(x))`.
#[derive(Parameters)]
pub struct Mlp {
    activation: Activation,
    /// gate_proj, if there is one, and up_proj side by side.
    gate_up_proj: Linear,
    /// The norm of what comes before the last projection.
    inner_norm: Option<RmsNorm>,
    down_proj: Linear,
}

impl Mlp {
    /// Loads what stands below `path`: `gate_proj` and `up_proj`, or both in one `gate_up_proj` (Phi 3, GLM 4), or row
    /// by row in turn in `gate_up_pairs` (Falcon-OCR), or in the other order in `up_gate_proj` (OLMo 1), and `down_proj`.
    /// Without a gate there is `up_proj` alone.
    pub fn load(config: &DenseConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (hidden, width) = (loading.config.hidden_size as i32, config.width as i32);
        let at = |name: &str| format!("{path}.{name}");
        let has = |name: &str| loading.weights.has(&format!("{path}.{name}.weight"));
        let (names, parts): (&[&str], Vec<Projection>) = if !config.activation.is_gated() {
            (&["up_proj"], vec![Projection::new(at("up_proj"), width)])
        } else if has("gate_up_proj") {
            (&["gate_up_proj"], vec![Projection::new(at("gate_up_proj"), 2 * width)])
        } else if has("gate_up_pairs") {
            let pairs = Projection::new(at("gate_up_pairs"), 2 * width);
            (&["gate_up_pairs"], vec![pairs.deinterleaved(&[0..1, 1..2])])
        } else if has("up_gate_proj") {
            let turned = Projection::new(at("up_gate_proj"), 2 * width);
            (
                &["up_gate_proj"],
                vec![turned.deinterleaved(&[width..2 * width, 0..width])],
            )
        } else {
            let names: &[&str] = &["gate_proj", "up_proj"];
            (
                names,
                names.iter().map(|name| Projection::new(at(name), width)).collect(),
            )
        };
        let down = format!("{path}.down_proj");
        if config.bias {
            for name in names.iter().chain(&["down_proj"]) {
                loading.weights.require(&format!("{path}.{name}.bias"))?;
            }
        }
        let (sub_norm, eps) = (at("ffn_sub_norm"), loading.config.norm.eps);
        let inner_norm = || RmsNorm::load(loading.weights, &sub_norm, width, eps);
        Ok(Self {
            inner_norm: loading.config.inner_norms.then(inner_norm).transpose()?,
            activation: Activation::new(config.activation, loading.dtype)?,
            gate_up_proj: Linear::load_rows(loading.weights, &parts, hidden)?,
            down_proj: Linear::load(loading.weights, &down, width, hidden)?,
        })
    }

    /// The same of the normed stream.
    pub fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        self.down(self.gate_up_proj.gated_normed(stream, norm, &self.activation)?)
    }

    /// `[length, hidden]` to the same.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down(self.gate_up_proj.gated(x, &self.activation)?)
    }

    fn down(&self, gated: Tensor) -> Result<Tensor> {
        match &self.inner_norm {
            Some(norm) => self.down_proj.forward(&norm.forward(&gated)?),
            None => self.down_proj.forward(&gated),
        }
    }
}
