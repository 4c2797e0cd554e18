//! What a chunk of the prompt allocates on its way through the layers.
//!
//! MLX describes a whole chunk first and computes it then. Memory of a result is taken when its operation is handed over,
//! and given back when the device has run what reads it. The device falls behind, so results live until the handing over has
//! to wait: MLX lets ten batches of operations run ahead (`MAX_ACTIVE_TASKS` in its `transforms.cpp`). How many operations
//! make a batch depends on the backend. The peak is therefore the largest sum over so many operations in a row, on top of
//! what lives all the while.

use super::cache;
use super::shapes::{Mixer, Shapes};
use super::{Backend, Workload};
use crate::config::decoder::QkNorm;

/// Batches whose results live at once: ten that run ahead, and the one that is handed over.
const BATCHES: usize = 11;

/// From this many rows on, CUDA multiplies dequantised matrices faster than packed ones: the first token of qwen3-4b (4 bits) on an
/// H200 comes after 77 instead of 169 ms at 2,048 tokens of prompt, after 26 instead of 36 at 256.
const MIN_DEQUANTIZED_ROWS: u64 = 256;

/// After so many bytes of dequantised matrices the thread waits for the device, so that no more of them live at once.
pub const MAX_DEQUANTIZED_AHEAD: u64 = 1 << 30;

/// Whether CUDA multiplies so many rows with the numbers of a quantised matrix instead of its packed ones.
pub fn dequantises_rows(rows: u64) -> bool {
    rows >= MIN_DEQUANTIZED_ROWS
}

/// When a batch is full.
struct Batch {
    /// Operations.
    operations: u64,
    /// Numbers that the operations read, in mebi; MLX counts numbers and calls them bytes. What they read of caches is left out
    /// here: batches would be shorter for it, and more context must never seem to take less.
    reads: u64,
}

/// The limits of MLX's backends: `DISPATCHES_PER_TASK` in `backend/cpu/encoder.h`; for the larger Apple chips in
/// `backend/metal/device.cpp`; for data centre cards in `backend/cuda/device.cpp`.
fn batch(backend: Backend) -> Batch {
    match backend {
        Backend::Cpu => Batch {
            operations: 10,
            reads: u64::MAX,
        },
        Backend::Metal => Batch { operations: 50, reads: 50 },
        Backend::Cuda => Batch {
            operations: 100,
            reads: 1000,
        },
    }
}

/// A result.
#[derive(Clone, Copy)]
struct Step {
    bytes: u64,
    operations: u64,
    reads: u64,
    /// Whether the thread waits until it is computed, and nothing runs ahead.
    waits: bool,
}

/// The last chunk of a prompt that fills the context, as it goes through the layers.
pub(super) struct Prefill<'a> {
    pub(super) shapes: &'a Shapes,
    pub(super) workload: &'a Workload,
    /// Tokens of the chunk.
    pub(super) rows: u64,
    /// Positions that there are after it.
    pub(super) positions: u64,
    /// Bytes of a number.
    pub(super) element: u64,
    steps: Vec<Step>,
    /// What lives from the first layer to the last.
    held: u64,
    /// Bytes of matrices that were dequantised since the thread waited.
    dequantized: u64,
}

impl<'a> Prefill<'a> {
    pub(super) fn of(shapes: &'a Shapes, workload: &'a Workload) -> Self {
        let positions = u64::from(workload.context);
        let mut pass = Self {
            shapes,
            workload,
            rows: match shapes.cached {
                true => u64::from(workload.backend.prefill_chunk()).min(positions),
                false => positions,
            },
            positions,
            element: cache::element(shapes, workload.backend),
            steps: Vec::new(),
            held: 0,
            dequantized: 0,
        };
        pass.read();
        pass
    }

    /// The most that lives at once, in bytes.
    pub(super) fn peak(&self) -> u64 {
        let limit = batch(self.workload.backend);
        // The sum of each batch, and the largest sum of neighbours.
        let mut batches = vec![0u64];
        let (mut operations, mut reads) = (0, 0u64);
        for step in &self.steps {
            if let Some(last) = batches.last_mut() {
                *last = last.saturating_add(step.bytes);
            }
            operations += step.operations;
            reads = reads.saturating_add(step.reads);
            if step.waits {
                batches.extend([0; BATCHES]);
                (operations, reads) = (0, 0);
            } else if operations >= limit.operations || reads >> 20 > limit.reads {
                batches.push(0);
                (operations, reads) = (0, 0);
            }
        }
        let together = batches
            .windows(BATCHES.min(batches.len()))
            .map(|batches| batches.iter().fold(0, |sum: u64, batch| sum.saturating_add(*batch)));
        self.held.saturating_add(together.max().unwrap_or(0))
    }

    fn read(&mut self) {
        let shapes = self.shapes;
        self.make(shapes.hidden);
        self.hold_masks();
        if shapes.streams > 1 {
            // Before a layer, predicted and corrected, in 32 bits.
            self.held += 3 * self.rows * shapes.streams * shapes.hidden * 4;
        }
        if let Some((_, width)) = shapes.inputs {
            let all = width * shapes.layers.len() as u64;
            self.held += self.rows * all * self.element;
            self.product(shapes.hidden, all);
            self.norm(all, false);
        }
        let last = shapes.read_layers();
        for (index, layer) in shapes.layers[..last].iter().enumerate() {
            let ends = index + 1 == last;
            self.norm(shapes.hidden, true);
            self.mixer(layer, ends);
            // Nobody looks at what follows the last keys.
            if ends {
                break;
            }
            self.add(layer.normed_after);
            self.feed_forwards(layer);
            self.add(layer.normed_after);
            if let Some((_, width)) = shapes.inputs {
                self.product(shapes.hidden, width);
                self.make(width);
                self.product(width, shapes.hidden);
                self.add(true);
            }
        }
    }

    /// A mark for every position that a sliding layer sees, for every kind of window once; and two of what they are made of.
    fn hold_masks(&mut self) {
        let windows = self.shapes.layers.iter().filter_map(|layer| match &layer.mixer {
            Mixer::Attention(attention) => attention.window,
            _ => None,
        });
        let mut windows: Vec<u64> = windows.collect();
        windows.sort_unstable();
        windows.dedup();
        for window in windows {
            let seen = self.seen(window);
            if seen > window {
                self.held += 3 * self.rows * seen;
            }
        }
    }

    /// Positions that a chunk has before it when a window slides.
    pub(super) fn seen(&self, window: u64) -> u64 {
        (self.positions - self.rows).min(window.saturating_sub(1)) + self.rows
    }

    /// A result of so many numbers for every token.
    pub(super) fn make(&mut self, numbers: u64) {
        self.take(self.rows * numbers * self.element, self.rows * numbers);
    }

    /// A result of so many bytes, by an operation that reads so many numbers.
    pub(super) fn take(&mut self, bytes: u64, reads: u64) {
        self.steps.push(Step {
            bytes,
            // On the CPU an operation is followed by another one that gives back what it read.
            operations: if self.workload.backend == Backend::Cpu { 2 } else { 1 },
            reads,
            waits: false,
        });
    }

    /// Waits until what was made so far is computed.
    pub(super) fn wait(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.waits = true;
        }
    }

    /// Operations that write where an operand lay, or that only look at it in another way.
    pub(super) fn in_place(&mut self, operations: u64) {
        for _ in 0..operations {
            self.take(0, 0);
        }
    }

    /// A product with a matrix of the weights.
    pub(super) fn product(&mut self, inputs: u64, outputs: u64) {
        let weights = match (self.shapes.quantization, self.workload.backend) {
            (Some(format), Backend::Metal | Backend::Cuda) => {
                inputs * outputs * u64::from(format.bits) / 32 + 2 * inputs * outputs / u64::from(format.group_size.max(1))
            }
            _ => inputs * outputs,
        };
        let packed = self.workload.backend == Backend::Cuda && self.shapes.quantization.is_some();
        if !packed || !dequantises_rows(self.rows) {
            return self.take(self.rows * outputs * self.element, self.rows * inputs + weights);
        }
        let bytes = inputs * outputs * self.element;
        self.take(bytes, weights);
        self.take(self.rows * outputs * self.element, self.rows * inputs + inputs * outputs);
        self.dequantized += bytes;
        if self.dequantized >= MAX_DEQUANTIZED_AHEAD {
            self.dequantized = 0;
            self.wait();
        }
    }

    /// A norm of so many numbers for every token. Kernels of our own make those of the stream with the sum before them.
    pub(super) fn norm(&mut self, numbers: u64, of_stream: bool) {
        match self.workload.backend {
            Backend::Cpu => {
                self.make(numbers);
                self.in_place(3);
                self.make(numbers);
                self.in_place(1);
            }
            Backend::Cuda if of_stream => self.take(self.rows * numbers * self.element, 0),
            Backend::Cuda | Backend::Metal => self.make(numbers),
        }
    }

    /// What a part gave is added to the stream: written where the part lay, or, by kernels of our own, anew.
    fn add(&mut self, normed: bool) {
        let hidden = self.shapes.hidden;
        match self.workload.backend {
            Backend::Cuda => self.make(hidden),
            Backend::Cpu | Backend::Metal => {
                if normed {
                    self.norm(hidden, false);
                }
                self.in_place(1);
            }
        }
    }

    /// Norms of heads, of which there are so many, each so wide.
    pub(super) fn head_norms(&mut self, kind: QkNorm, queries: u64, keys: u64) {
        match kind {
            QkNorm::None => {}
            // What is normed is a part of a row, which GPUs copy first.
            QkNorm::PerHead | QkNorm::PerHeadTurned => {
                if self.workload.backend != Backend::Cpu {
                    self.make(queries + keys);
                }
                self.norm(queries + keys, false);
            }
            QkNorm::Whole => {
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
