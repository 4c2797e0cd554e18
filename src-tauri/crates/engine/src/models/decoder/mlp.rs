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
    down_proj: Linear,
}

impl Mlp {
    /// Loads what stands below `path`: `gate_proj` and `up_proj`, or both in one `gate_up_proj` (Phi 3, GLM 4), or row
    /// by row in turn in `gate_up_pairs` (Falcon-OCR), and `down_proj`. Without a gate there is `up_proj` alone.
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
        Ok(Self {
            activation: Activation::new(config.activation, loading.dtype)?,
            gate_up_proj: Linear::load_rows(loading.weights, &parts, hidden)?,
            down_proj: Linear::load(loading.weights, &down, width, hidden)?,
        })
    }

    /// The same of the normed stream.
    pub fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        self.down_proj
            .forward(&self.gate_up_proj.gated_normed(stream, norm, &self.activation)?)
    }

    /// `[length, hidden]` to the same.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down_proj.forward(&self.gate_up_proj.gated(x, &self.activation)?)
    }
}
