//! Attention and Mamba 2 beside each other, as Falcon-H1 has them in every layer.

use checkpoint::config::decoder::JointConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, RecurrentCache};
use crate::error;
use crate::layers::ResidualStream;
use crate::models::decoder::attention::Attention;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mamba2::Mamba2;
use crate::models::decoder::step::Step;

/// Both read the same, and what they give is added.
#[derive(Parameters)]
pub struct Joint {
    attention: Attention,
    mamba: Mamba2,
}

impl Joint {
    /// Loads what stands below `path`: `self_attn` and `mamba`.
    pub fn load(config: &JointConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        Ok(Self {
            attention: Attention::load(&config.attention, &format!("{path}.self_attn"), loading)?,
            mamba: Mamba2::load(&config.mamba, &format!("{path}.mamba"), loading)?,
        })
    }

    /// Its empty caches: keys, then states.
    pub fn caches(&self) -> Vec<Cache> {
        vec![self.attention.cache(false), Cache::Recurrent(RecurrentCache::default())]
    }

    /// The index of the attention's mask in a step.
    pub fn mask(&self) -> usize {
        self.attention.mask(false)
    }

    /// `[rows, hidden]` to the same. The caches are the keys of all sequences, then their states.
    pub fn forward(&self, x: &Tensor, step: &Step<'_>, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let (keys, states) = caches.split_at_mut(caches.len() / 2);
        let mut read = ResidualStream::new(x.clone());
        let attended = self.attention.forward(&mut read, None, step, keys)?;
        self.mamba.forward(x, states)?.add(&attended)
    }
}
