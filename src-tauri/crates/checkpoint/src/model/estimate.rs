//! The memory that a model takes.

use crate::config::{Family, Quantization};
use crate::families::VisionConfig;
use crate::memory::{Backend, MemoryEstimate, ModelCost, Storage, VisionCost, Workload};
use crate::model::config::ModelConfig;

impl ModelConfig {
    /// The memory of a model; `stored` are the bytes of its weight files that the text model reads.
    pub fn estimate_memory(&self, stored: u64, workload: &Workload) -> MemoryEstimate {
        let model = self.cost();
        let weights = match workload.backend {
            Backend::Cpu => stored.saturating_add(model.widened_weights()),
            Backend::Metal | Backend::Cuda => stored,
        };
        let vision = self.vision_cost();
        let vision =
            |of: fn(&VisionCost, Backend) -> u64| vision.as_ref().map_or(0, |vision| of(vision, workload.backend));
        MemoryEstimate {
            weights: weights.saturating_add(vision(VisionCost::weights)),
            kv: model
                .cache(workload)
                .saturating_mul(if workload.prefix_cached { 2 } else { 1 }),
            working: model
                .prefill_peak(workload)
                .max(model.loading(workload.backend))
                .max(vision(VisionCost::encoding)),
        }
    }

    /// The bytes that reading on from a position up to the context of the workload takes: what caches grow by and the
    /// working space.
    pub fn additional_memory(&self, from: u32, workload: &Workload) -> u64 {
        let working = self.cost().prefill_peak(workload);
        self.cache_growth(from, workload).saturating_add(working)
    }

    /// The bytes that caches grow by from a position up to the context of the workload.
    pub fn cache_growth(&self, from: u32, workload: &Workload) -> u64 {
        let model = self.cost();
        let kv = |context: u32| model.cache(&Workload { context, ..*workload });
        kv(workload.context).saturating_sub(kv(from))
    }

    /// The most tokens of context with which all that is needed stays within `bytes`, up to the model's own; `None` if
    /// none does.
    pub fn max_context(&self, stored: u64, workload: &Workload, bytes: u64) -> Option<u32> {
        /// Contexts are told in these steps.
        const STEP: u32 = 256;
        let fits = |context: u32| self.estimate_memory(stored, &Workload { context, ..*workload }).total() <= bytes;
        if fits(self.context) {
            return Some(self.context);
        }
        let (mut most, mut least) = (0, self.context.div_ceil(STEP));
        while most + 1 < least {
            let middle = most + (least - most) / 2;
            if fits(middle * STEP) {
                most = middle;
            } else {
                least = middle;
            }
        }
        (most > 0).then_some(most * STEP)
    }

    /// Bytes that encoding a view of `patches` takes next to the weights; 0 if the model reads no images.
    pub fn image_encoding_memory(&self, patches: u64, backend: Backend) -> u64 {
        self.vision_cost()
            .map_or(0, |vision| vision.encoding_patches(patches, backend))
    }

    /// How many numbers the weights are, those of a tower included.
    pub fn parameters(&self) -> u64 {
        self.cost().parameters() + self.vision_cost().map_or(0, |vision| vision.parameters())
    }

    fn cost(&self) -> ModelCost {
        let storage = Storage {
            element: match self.dtype.as_deref() {
                Some("float32") => 4,
                _ => 2,
            },
            packing: self.quantization.map(Quantization::packing),
        };
        match &self.family {
            Family::Gemma4(gemma4) => gemma4.cost(storage),
            Family::Decoder(decoder) => decoder.cost(storage),
            Family::Encoder(encoder) => encoder.cost(storage),
            Family::Head(head) => head.cost(storage),
        }
    }

    fn vision_cost(&self) -> Option<VisionCost> {
        self.vision.as_ref().map(VisionConfig::cost)
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
