//! A model as far as its memory goes: a list of layers, and what they share.

use super::{Backend, CacheFormat, LayerCost, Prefill, Storage, Workload};

/// A model.
pub(crate) struct ModelCost {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Tokens of the vocabulary.
    pub vocabulary: u64,
    /// True if the output layer is the embedding.
    pub tied: bool,
    /// True if keys and values are cached; otherwise a text is read at once.
    pub cached: bool,
    pub layers: Vec<LayerCost>,
    /// A table that feeds every layer (Gemma 3n and 4).
    pub inputs: Option<LayerInputs>,
    /// Positions with a learned vector.
    pub positions: u64,
    /// The layers as a chunk goes through them again.
    pub again: Vec<LayerCost>,
    /// Streams that go through the layers.
    pub streams: u64,
    /// Rows and width of tables that are read beside the embeddings, each followed by a projection.
    pub tables: Vec<[u64; 2]>,
    /// Operations around each part of a layer that read the streams and write them back.
    pub stream_operations: u64,
    /// True if norms of the stream are of a kind that no kernel joins with what reads them.
    pub norms_apart: bool,
    /// True if no kernel adds to the stream, because none joins the sum with the norms that read it.
    pub adds_apart: bool,
    /// True if what a part of a layer gives is multiplied before it is added.
    pub parts_scaled: bool,
    /// True if the embeddings are added after every layer, times a number.
    pub skips: bool,
    pub storage: Storage,
}

/// A table with an input for every layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerInputs {
    pub tokens: u64,
    /// Width of one layer's input.
    pub width: u64,
}

impl ModelCost {
    /// Bytes of all caches once the context is full. While a prompt is read, the window of sliding layers is followed
    /// by a full chunk, which is more than they hold later.
    pub(crate) fn cache(&self, workload: &Workload) -> u64 {
        if !self.cached {
            return 0;
        }
        let format = CacheFormat::new(self.hidden, self.storage, workload);
        let layers = self
            .layers
            .iter()
            .chain(&self.again)
            .map(|layer| layer.mixer.cache(&format, workload.context.into()) + 4 * layer.carried);
        layers.fold(0, u64::saturating_add)
    }

    /// Bytes that reading a prompt takes at most beside the caches of all of it. The last chunk has the largest caches
    /// and often fewer rows than those before it; of the first one more is handed over at once, because no caches grow.
    pub(crate) fn prefill_peak(&self, workload: &Workload) -> u64 {
        let context = u64::from(workload.context);
        if !self.cached {
            return self.chunk_peak(workload, context);
        }
        let chunk = u64::from(workload.backend.prefill_chunk());
        if workload.backend != Backend::Cpu {
            // With fewer rows more operations are handed over at once, so that the last chunk is taken to be whole.
            return self.chunk_peak(workload, chunk.min(context));
        }
        let rest = match context % chunk {
            0 => chunk.min(context),
            rest => rest,
        };
        let all = self.cache(workload);
        let earlier = [chunk, context - rest]
            .into_iter()
            .filter(|end| (1..context).contains(end));
        let earlier = earlier.map(|end| {
            let before = Workload {
                context: end as u32,
                ..*workload
            };
            let missing = all.saturating_sub(self.cache(&before));
            self.chunk_peak(&before, chunk).saturating_sub(missing)
        });
        earlier.fold(self.chunk_peak(workload, rest), u64::max)
    }

    /// Bytes that reading the last `rows` tokens of the context takes at most.
    fn chunk_peak(&self, workload: &Workload, rows: u64) -> u64 {
        let cache = CacheFormat::new(self.hidden, self.storage, workload);
        let mut pass = Prefill::new(workload, cache, self.storage.packing, rows);
        self.read(&mut pass);
        pass.peak()
    }

    /// Number of layers, from the first, that a chunk of the prompt goes through. It is read for the caches alone, so
    /// layers after the last one with keys of its own are not computed.
    pub(super) fn read_layers(&self) -> usize {
        let layers = self.layers.iter().chain(&self.again);
        let kept = layers.zip(1..).filter(|(layer, _)| !layer.mixer.shares_keys());
        kept.last().map_or(0, |(_, number)| number)
    }

    /// Replays the last chunk of the prompt.
    fn read(&self, pass: &mut Prefill<'_>) {
        let hidden = self.hidden;
        pass.make(hidden);
        for [_, width] in &self.tables {
            pass.in_place(8);
            pass.make(*width);
            pass.product(*width, hidden);
            pass.in_place(1);
        }
        (pass.norms_apart, pass.adds_apart) = (self.norms_apart, self.adds_apart);
        self.hold_masks(pass);
        if self.streams > 1 {
            // Before a layer, predicted and corrected, in 32 bits.
            pass.hold(3 * pass.rows * self.streams * hidden * 4);
        }
        if let Some(inputs) = self.inputs {
            let all = inputs.width * self.layers.len() as u64;
            pass.hold(pass.rows * all * pass.element);
            pass.product(hidden, all);
            pass.norm(all, false);
        }
        if self.layers.iter().any(|layer| layer.parallel) {
            // The normed stream, which the second part reads, and what the first one gave.
            pass.hold(2 * pass.rows * hidden * pass.element);
        }
        if self.skips {
            // The embeddings.
            pass.hold(pass.rows * hidden * pass.element);
        }
        let last = self.read_layers();
        for (index, layer) in self.layers.iter().chain(&self.again).take(last).enumerate() {
            let ends = index + 1 == last;
            if !layer.mixer.is_absent() {
                pass.norm(hidden, !self.norms_apart);
                let beside = layer.parallel && !self.adds_apart;
                if beside {
                    // The network reads it too.
                    pass.last_leaves();
                }
                layer.mixer.prefill(pass, ends);
                if beside {
                    pass.last_leaves();
                }
                // Nothing reads what follows the last keys.
                if ends {
                    break;
                }
                pass.in_place(self.stream_operations);
                self.scale_part(pass, layer.normed_after);
                pass.add(layer.normed_after);
            }
            if !layer.feed_forwards.is_empty() {
                pass.norm(hidden, !self.norms_apart);
                for feed_forward in &layer.feed_forwards {
                    feed_forward.prefill(pass, layer.normed_after);
                }
                if layer.parallel && !self.adds_apart {
                    pass.last_leaves();
                    pass.in_place(1);
                }
                pass.in_place(self.stream_operations);
                self.scale_part(pass, layer.normed_after);
                pass.add(layer.normed_after);
            }
            if self.skips {
                pass.add(true);
            }
            if let Some(inputs) = self.inputs {
                pass.product(hidden, inputs.width);
                if pass.workload.backend != Backend::Cpu {
                    // By a kernel of the product on a CPU.
                    pass.make(inputs.width);
                }
                pass.product(inputs.width, hidden);
                pass.add(true);
            }
        }
    }

    /// The factor of what a part of a layer gives, written over that.
    fn scale_part(&self, pass: &mut Prefill<'_>, normed: bool) {
        if self.parts_scaled && pass.workload.backend == Backend::Cpu {
            if normed {
                pass.norm(self.hidden, false);
            }
            pass.last_leaves();
            pass.in_place(1);
        }
    }

    /// A mask for every window, with a mark for every position that the layer sees; and two results on the way to it.
    fn hold_masks(&self, pass: &mut Prefill<'_>) {
        let windows = self
            .layers
            .iter()
            .chain(&self.again)
            .filter_map(|layer| layer.mixer.window());
        let mut windows: Vec<u64> = windows.collect();
        windows.sort_unstable();
        windows.dedup();
        for window in windows {
            let seen = pass.seen(window);
            if seen > window {
                pass.hold(3 * pass.rows * seen);
            }
        }
    }
}
