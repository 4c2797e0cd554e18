//! The steps that kinds of attention have in common: norms and turns of heads, the growth of caches, and scores.

use super::{Backend, HeadNorms, MixerCost, Prefill, ScoreShape};

impl Prefill<'_> {
    /// Rotary positions.
    pub(crate) fn turn(&mut self, numbers: u64) {
        self.make(numbers);
    }

    /// A cache takes in the chunk: it is copied to a larger place, and the old one lives a while longer. The bytes that
    /// it holds in the end count elsewhere.
    pub(crate) fn grow(&mut self, mixer: &dyn MixerCost) {
        let before = self.positions - self.rows;
        let old = match before {
            0 => 0,
            _ => mixer.cache(&self.cache, before),
        };
        let new = mixer.cache(&self.cache, self.positions);
        let more = new.saturating_sub(old);
        match (mixer.window(), self.workload.backend) {
            (Some(_), Backend::Cpu) if old > 0 => {
                // Keys, then values: what the window sees of the old ones, and the new ones after them.
                self.last_leaves();
                for _ in 0..2 {
                    self.look(2);
                    self.take(old / 2, 0);
                    self.last_grows(more / 2);
                }
            }
            (Some(_), Backend::Cpu) => self.last_grows(more),
            (None, Backend::Cpu) => {
                // Keys, then values. New rows are zeros first, after the old ones in a larger place, and then written
                // over.
                for _ in 0..if more > 0 { 2 } else { 0 } {
                    self.look(1);
                    self.last_is_early();
                    self.take(if old > 0 { more / 2 } else { 0 }, 0);
                    self.last_is_early();
                    if old > 0 {
                        self.look(1);
                        self.last_is_early();
                        self.take(old / 2, 0);
                        self.last_is_early();
                    }
                    self.last_grows(more / 2);
                }
                for _ in 0..2 {
                    self.take(0, 0);
                    self.last_joins();
                }
            }
            (Some(_), Backend::Metal | Backend::Cuda) => {
                self.take(old, 0);
                self.in_place(3);
            }
            (None, Backend::Metal | Backend::Cuda) => {
                self.take(old, 0);
                self.take(more, 0);
                self.in_place(6);
            }
        }
    }

    /// Scaled dot product attention, and its result in the order of the tokens.
    pub(crate) fn attend(&mut self, shape: &ScoreShape) {
        let outputs = shape.heads * shape.value_width;
        if !self.fused(shape) {
            let scores = (shape.heads * self.rows)
                .saturating_mul(shape.seen)
                .saturating_mul(self.element);
            // Scaled queries, the mask, scores; the masked scores and the softmax are written over these.
            self.make(shape.heads * shape.width);
            self.take(self.rows.saturating_mul(shape.seen), 0);
            self.take(scores, 0);
            self.in_place(2);
            if shape.capped {
                // Those that are squeezed stay beside those that are masked.
                self.hold_in_one_layer(scores);
                self.in_place(2);
            }
            if shape.sinks {
                // The column of the sinks next to them.
                self.take(scores, 0);
            }
        }
        if self.workload.backend == Backend::Cpu {
            if self.fused(shape) {
                // In the order of the tokens at once.
                return self.make_by_kernel(outputs);
            }
            // Views of heads that share keys, and of the mask.
            self.in_place(8);
        }
        self.make(outputs);
        self.make(outputs);
    }

    /// True if there is a kernel for many queries that writes no scores to memory: MLX's, by
    /// `scaled_dot_product_attention.cpp` of the backend and measurements on an H200; our own on a CPU.
    fn fused(&self, shape: &ScoreShape) -> bool {
        let (width, value_width) = (shape.width, shape.value_width);
        if shape.capped || shape.striped {
            return false;
        }
        match self.workload.backend {
            Backend::Cpu => width.is_multiple_of(32) && value_width.is_multiple_of(32),
            // Widths that kernels were compiled for.
            Backend::Metal => width == value_width && matches!(width, 64 | 80 | 128),
            // cuDNN's, which takes no sinks together with a mask.
            Backend::Cuda => {
                width <= 128
                    && value_width <= 128
                    && width.is_multiple_of(8)
                    && value_width.is_multiple_of(8)
                    && !(shape.sinks && shape.masked)
            }
        }
    }

    /// Norms of `queries` and `keys` numbers of heads.
    pub(super) fn head_norms(&mut self, norms: HeadNorms, queries: u64, keys: u64) {
        match norms {
            HeadNorms::None => {}
            // The input is a part of a row, which GPUs copy first.
            HeadNorms::Together | HeadNorms::Turned => {
                if self.workload.backend != Backend::Cpu {
                    self.make(queries + keys);
                }
                self.norm(queries + keys, false);
            }
            HeadNorms::Separate => {
                for width in [queries, keys] {
                    if self.workload.backend != Backend::Cpu {
                        self.make(width);
                    }
                    self.norm(width, false);
                }
            }
        }
    }
}
