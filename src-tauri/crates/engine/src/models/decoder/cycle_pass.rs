//! The pass of a model whose layers are two stacks.

use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{of_layer, Cache};
use crate::layers::ResidualStream;
use crate::models::decoder::cycles::Cycles;
use crate::models::decoder::step::Step;
use crate::models::decoder::Decoder;

impl Decoder {
    /// States `[rows, hidden]` before the norm of the last stack, of embeddings `[rows, hidden]`.
    pub(super) fn forward_cycles(
        &self,
        cycles: &Cycles,
        embedded: Tensor,
        step: &Step<'_>,
        sequences: &mut [&mut [Cache]],
    ) -> Result<Tensor> {
        let mut low = cycles.low.broadcast(embedded.shape())?;
        let (mut high, mut last) = (embedded.clone(), embedded);
        let steps: Vec<(usize, usize)> = self.order.run().collect();
        for stack in steps.chunks(cycles.layers) {
            let mut stream = ResidualStream::new(low.add(&high)?);
            for (index, layer) in stack {
                let caches = &mut of_layer(sequences, self.order.caches(*index));
                self.layers[*layer].forward(&mut stream, step, &self.residual_add, caches)?;
            }
            last = stream.sum()?.clone();
            let normed = self.norm.forward(&last)?;
            match stack.first() {
                Some((_, layer)) if *layer < cycles.layers => low = normed,
                _ => high = normed,
            }
        }
        Ok(last)
    }
}
