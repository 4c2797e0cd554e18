//! Reading complete texts with a decoder that makes embeddings: no caches stay, and several texts may share a pass.

use checkpoint::config::decoder::{DecoderConfig, Mixer};
use mlx::ops::ids_tensor;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::layers::ResidualStream;
use crate::models::decoder::step::Step;
use crate::models::decoder::Decoder;
use crate::models::pass::{mask, Pass};

/// True if several texts may lie one after another: if every mixer is attention whose scores depend on nothing but the
/// distance of two positions.
pub(super) fn packs(config: &DecoderConfig) -> bool {
    let mixes = |mixer: &Mixer| matches!(mixer, Mixer::Attention(attention) if attention.query_scaling.is_none());
    config.layers.iter().all(|layer| mixes(&layer.mixer)) && config.ropes.iter().all(|rope| rope.dynamic.is_none())
}

impl Decoder {
    /// True if [`Decoder::begin`] takes several texts.
    pub fn packs(&self) -> bool {
        self.packs
    }

    /// True if attention looks both ways, so that a text has to be read at once.
    pub fn is_bidirectional(&self) -> bool {
        self.bidirectional
    }

    /// The number of its layers.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Begins to read texts of these lengths, whose tokens are `ids` one after another.
    pub fn begin(&self, ids: &[u32], lengths: &[usize]) -> Result<Pass> {
        let masks = self
            .windows
            .iter()
            .map(|(window, _)| mask(lengths, *window, self.bidirectional));
        Ok(Pass::new(lengths, self.embed(&ids_tensor(ids))?, masks.collect()))
    }

    /// Takes a pass through the next `count` layers; nothing is evaluated.
    pub fn advance(&self, pass: &mut Pass, count: usize) -> Result<()> {
        let rows = pass.rows();
        let step = Step {
            sequences: 1,
            ropes: &self.ropes,
            rotations: self.ropes.iter().map(|rope| rope.at(0, rows)).collect(),
            masks: pass.masks.clone(),
            query_scaling: vec![None],
            images: &[],
        };
        let mut stream = ResidualStream::new(pass.states.clone());
        for layer in self.layers.iter().skip(pass.layer).take(count) {
            let mut caches = layer.caches();
            let caches = &mut caches.iter_mut().collect::<Vec<_>>();
            layer.forward(&mut stream, &step, &self.residual_add, caches)?;
            pass.layer += 1;
        }
        pass.states = stream.sum()?.clone();
        Ok(())
    }

    /// States `[rows, width]` after the last layer, normed, of which embeddings are made.
    pub fn normed(&self, states: &Tensor) -> Result<Tensor> {
        self.norm.forward(states)
    }
}
