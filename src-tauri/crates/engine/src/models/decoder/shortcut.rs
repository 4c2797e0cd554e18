//! A network, and experts that read the same and are added after the next layer (LongCat Flash).

use checkpoint::config::decoder::ShortcutConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mlp::Mlp;
use crate::models::decoder::sparse_moe::SparseMoe;

/// Both parts of one layer.
#[derive(Parameters)]
pub struct Shortcut {
    mlp: Mlp,
    experts: SparseMoe,
}

impl Shortcut {
    /// Loads what stands below `path`: the network and the experts.
    pub fn load(config: &ShortcutConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        Ok(Self {
            mlp: Mlp::load(&config.dense, path, loading)?,
            experts: SparseMoe::load(&config.experts, path, loading)?,
        })
    }

    /// The network's output for the normed stream, and what is added after the next layer, `[length, hidden]` each.
    pub fn forward(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<(Tensor, Tensor)> {
        let normed = stream.normed(norm)?;
        let read = || ResidualStream::new(normed.clone());
        Ok((
            self.mlp.forward_normed(&mut read(), None)?,
            self.experts.forward(&mut read(), None, None)?,
        ))
    }
}
