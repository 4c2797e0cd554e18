//! The weights of a model: their number, and the bytes of those that are widened to 32 bit floats.

use super::{Backend, LayerCost, ModelCost, Part};

impl ModelCost {
    /// Number of weights, without the few of norms and biases.
    pub(crate) fn parameters(&self) -> u64 {
        self.all().iter().map(|part| part.numbers).sum()
    }

    /// Bytes of the weights on a CPU beyond those that are stored.
    pub(crate) fn widened_weights(&self) -> u64 {
        self.all().iter().map(|part| part.widened(&self.storage)).sum()
    }

    /// The most that loading needs for a moment besides what is resident at the end: the parts of what is joined, next
    /// to it, and what they were widened from.
    pub(crate) fn loading(&self, backend: Backend) -> u64 {
        let storage = &self.storage;
        let layers = self.layers.iter().flat_map(|layer| self.layer_parts(layer));
        let transient = |part: Part| match backend {
            Backend::Cpu => part.stored(storage) + 2 * part.widened(storage),
            Backend::Metal | Backend::Cuda => part.stored(storage),
        };
        layers.map(transient).max().unwrap_or(0)
    }

    fn all(&self) -> Vec<Part> {
        let mut parts = vec![Part::matrix(self.vocabulary, self.hidden)];
        if !self.tied {
            parts.push(Part::matrix(self.vocabulary, self.hidden));
        }
        parts.extend((self.positions > 0).then(|| Part::matrix(self.positions, self.hidden)));
        for [rows, width] in &self.tables {
            parts.extend([Part::matrix(*rows, *width), Part::matrix(self.hidden, *width)]);
        }
        if let Some(inputs) = self.inputs {
            let all = inputs.width * self.layers.len() as u64;
            parts.extend([Part::matrix(inputs.tokens, all), Part::matrix(all, self.hidden)]);
        }
        // The projections from the first stream to the others, and back.
        parts.extend((1..self.streams).flat_map(|_| [(); 2].map(|()| Part::matrix(self.hidden, self.hidden))));
        parts.extend(self.layers.iter().flat_map(|layer| self.layer_parts(layer)));
        parts
    }

    fn layer_parts(&self, layer: &LayerCost) -> Vec<Part> {
        let hidden = self.hidden;
        let mut parts = layer.mixer.weights(hidden);
        parts.extend(&layer.beside);
        for feed_forward in &layer.feed_forwards {
            parts.extend(feed_forward.weights(hidden));
        }
        if let Some(inputs) = self.inputs {
            parts.extend([Part::matrix(inputs.width, hidden), Part::matrix(hidden, inputs.width)]);
        }
        parts
    }
}
