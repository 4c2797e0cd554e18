//! The order in which the stream goes through the layers, and which caches each of them has then.

use std::ops::Range;

use checkpoint::config::decoder::CyclesConfig;

/// The layers in their order, several times if a model says so.
pub(super) struct LayerOrder {
    /// How many layers there are.
    layers: usize,
    /// The layer of each step, and the places of its caches among those of a sequence.
    steps: Vec<(usize, Range<usize>)>,
}

impl LayerOrder {
    /// Layers with their caches, gone through so many times one after another, or in cycles.
    pub(super) fn new(caches: impl Iterator<Item = Range<usize>>, loops: u32, cycles: Option<CyclesConfig>) -> Self {
        let counts: Vec<usize> = caches.map(|caches| caches.len()).collect();
        let layers = counts.len();
        let order = match cycles {
            Some(cycles) => cycles.order(layers),
            None => (0..loops).flat_map(|_| 0..layers).collect(),
        };
        let mut kept = 0;
        let step = |layer: usize| {
            let first = kept;
            kept += counts[layer];
            (layer, first..kept)
        };
        Self {
            layers,
            steps: order.into_iter().map(step).collect(),
        }
    }

    /// How often the stream goes through a layer.
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// True from the second loop on.
    pub(super) fn is_again(&self, step: usize) -> bool {
        step >= self.layers
    }

    /// Each step and its layer.
    pub(super) fn run(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.steps.iter().enumerate().map(|(step, (layer, _))| (step, *layer))
    }

    /// The places of a step's caches among those of a sequence.
    pub(super) fn caches(&self, step: usize) -> Range<usize> {
        self.steps[step].1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::LayerOrder;

    #[test]
    fn each_time_has_caches_of_its_own_and_layers_without_any_take_no_place() {
        let order = LayerOrder::new([0..0, 0..1, 1..3].into_iter(), 2, None);
        let run: Vec<_> = order.run().map(|(step, layer)| (layer, order.caches(step))).collect();
        assert_eq!(run, [(0, 0..0), (1, 0..1), (2, 1..3), (0, 3..3), (1, 3..4), (2, 4..6)]);
    }
}
