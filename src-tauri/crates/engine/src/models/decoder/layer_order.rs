//! The order in which the stream goes through the layers, and which caches each of them has then.

use std::ops::Range;

/// The layers in their order, several times if a model says so.
pub(super) struct LayerOrder {
    loops: usize,
    /// The places of each layer's caches among those of all layers.
    caches: Vec<Range<usize>>,
    /// The number of caches of all layers.
    kept: usize,
}

impl LayerOrder {
    /// Layers with their caches, one after another, gone through so many times.
    pub(super) fn new(caches: impl Iterator<Item = Range<usize>>, loops: u32) -> Self {
        let caches: Vec<_> = caches.collect();
        Self {
            loops: loops as usize,
            kept: caches.last().map_or(0, |last| last.end),
            caches,
        }
    }

    /// How often the stream goes through a layer.
    pub(super) fn steps(&self) -> usize {
        self.loops * self.caches.len()
    }

    /// The layer of a step.
    pub(super) fn layer(&self, step: usize) -> usize {
        step % self.caches.len()
    }

    /// True from the second loop on.
    pub(super) fn is_again(&self, step: usize) -> bool {
        step >= self.caches.len()
    }

    /// Each step and its layer.
    pub(super) fn run(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.steps()).map(|step| (step, self.layer(step)))
    }

    /// The places of a step's caches among those of a sequence.
    pub(super) fn caches(&self, step: usize) -> Range<usize> {
        let (of_layer, before) = (&self.caches[self.layer(step)], step / self.caches.len() * self.kept);
        of_layer.start + before..of_layer.end + before
    }
}

#[cfg(test)]
mod tests {
    use super::LayerOrder;

    #[test]
    fn each_time_has_caches_of_its_own_and_layers_without_any_take_no_place() {
        let order = LayerOrder::new([0..0, 0..1, 1..3].into_iter(), 2);
        let run: Vec<_> = order.run().map(|(step, layer)| (layer, order.caches(step))).collect();
        assert_eq!(run, [(0, 0..0), (1, 0..1), (2, 1..3), (0, 3..3), (1, 3..4), (2, 4..6)]);
    }
}
