//! The order in which the stream goes through the layers, and which cache each of them has then.

/// The layers in their order, several times if a model says so.
pub(super) struct LayerOrder {
    loops: usize,
    /// For each layer the number of those before it that keep anything; `None` if it keeps nothing itself.
    caches: Vec<Option<usize>>,
    /// The number of layers that keep anything.
    kept: usize,
}

impl LayerOrder {
    /// Layers that keep something or not, gone through so many times.
    pub(super) fn new(keep: impl Iterator<Item = bool>, loops: u32) -> Self {
        let mut kept = 0;
        let caches = keep.map(|keeps| {
            let cache = keeps.then_some(kept);
            kept += usize::from(keeps);
            cache
        });
        let caches = caches.collect();
        Self {
            loops: loops as usize,
            caches,
            kept,
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

    /// Each step and its layer.
    pub(super) fn run(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.steps()).map(|step| (step, self.layer(step)))
    }

    /// The place of a step's cache among those of a sequence, if its layer keeps anything.
    pub(super) fn cache(&self, step: usize) -> Option<usize> {
        Some(self.caches[self.layer(step)]? + step / self.caches.len() * self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::LayerOrder;

    #[test]
    fn each_time_has_caches_of_its_own_and_layers_without_any_take_no_place() {
        let order = LayerOrder::new([false, true, true].into_iter(), 2);
        let run: Vec<_> = order.run().map(|(step, layer)| (layer, order.cache(step))).collect();
        assert_eq!(
            run,
            [
                (0, None),
                (1, Some(0)),
                (2, Some(1)),
                (0, None),
                (1, Some(2)),
                (2, Some(3))
            ]
        );
    }
}
