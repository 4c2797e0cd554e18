//! The allocations of a prompt's chunk on its way through the layers.
//!
//! MLX describes a whole chunk first and computes it then. Memory of a result is taken when its operation is handed
//! over, and given back when the device has run what reads it. The device falls behind, so results live until the
//! handing over has to wait: MLX lets ten batches of operations run ahead (`MAX_ACTIVE_TASKS` in its `transforms.cpp`).
//! How many operations make a batch depends on the backend. The peak is therefore the largest sum over that number of
//! operations in a row, on top of what lives all the while.
//!
//! On a CPU, kernels of our own that follow each other become one operation, whose results share memory that is taken when
//! it is its turn: of those only what the next few read lives at once.

use super::{Backend, CacheFormat, Packing, Workload};

/// Batches whose results live at once: ten that run ahead, and the one that is handed over.
const BATCHES: usize = 11;

/// From this many rows on, CUDA multiplies dequantized matrices faster than packed ones: the first token of qwen3-4b (4
/// bits) on an H200 comes after 77 instead of 169 ms at 2,048 tokens of prompt, after 26 instead of 36 at 256.
const MIN_DEQUANTIZED_ROWS: u64 = 256;

/// Kernels in a row that become one operation at least, and at most.
const JOINED: std::ops::RangeInclusive<usize> = 4..=48;

/// Results of joined kernels that live at once: a layer's stream, what was made of it, and what that becomes.
const NEAR: usize = 6;

/// The most bytes of dequantized matrices and of what experts give alive at once: beyond them the thread waits for the
/// device.
pub const MAX_BYTES_AHEAD: u64 = 1 << 30;

/// True if CUDA multiplies this number of rows with a dequantized matrix instead of a quantized one.
pub fn dequantises_rows(rows: u64) -> bool {
    rows >= MIN_DEQUANTIZED_ROWS
}

/// When a batch is full.
struct Batch {
    /// Operations.
    operations: u64,
    /// Numbers that the operations read, in mebi; MLX counts numbers and calls them bytes. Reads of caches are left
    /// out: batches would be shorter for them, and more context must never seem to take less.
    reads: u64,
}

/// The limits of MLX's backends: `DISPATCHES_PER_TASK` in `backend/cpu/encoder.h`; for the larger Apple chips in
/// `backend/metal/device.cpp`; for data center cards in `backend/cuda/device.cpp`.
fn batch(backend: Backend) -> Batch {
    match backend {
        Backend::Cpu => Batch {
            operations: 10,
            reads: u64::MAX,
        },
        Backend::Metal => Batch {
            operations: 50,
            reads: 50,
        },
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
    /// True if the thread waits for its result, so that nothing runs ahead.
    waits: bool,
    /// True for a kernel that is joined with those beside it.
    joins: bool,
}

/// The most that lives at once of the results of joined kernels, and the steps with one for each run of those.
fn join(steps: &[Step]) -> (u64, Vec<Step>) {
    let (mut most, mut joined) = (0, Vec::with_capacity(steps.len()));
    for run in steps.chunk_by(|one, next| one.joins && next.joins) {
        if run.len() < *JOINED.start() || !run[0].joins {
            joined.extend_from_slice(run);
            continue;
        }
        for run in run.chunks(*JOINED.end()) {
            let near = run.windows(NEAR.min(run.len()));
            let sums = near.map(|near| near.iter().fold(0, |sum: u64, step| sum.saturating_add(step.bytes)));
            most = most.max(sums.max().unwrap_or(0));
            joined.extend(run.last().map(|last| Step {
                operations: run.len() as u64,
                ..*last
            }));
        }
    }
    (most, joined)
}

/// The last chunk of a prompt that fills the context, on its way through the layers.
pub(crate) struct Prefill<'a> {
    pub workload: &'a Workload,
    pub cache: CacheFormat,
    /// Width of the residual stream.
    pub hidden: u64,
    pub packing: Option<Packing>,
    /// Tokens of the chunk.
    pub rows: u64,
    /// Positions of the context after the chunk.
    pub positions: u64,
    /// Bytes of a number.
    pub element: u64,
    steps: Vec<Step>,
    /// Results that are made before all others.
    early: Vec<Step>,
    /// Bytes that live from the first layer to the last.
    held: u64,
    /// The most bytes that one layer holds for itself.
    held_in_one_layer: u64,
    /// True if norms of the stream are operations of their own.
    pub norms_apart: bool,
    /// Bytes of large results since the thread waited.
    ahead: u64,
}

impl<'a> Prefill<'a> {
    /// The last `rows` tokens of the workload's context, before anything is allocated.
    pub(super) fn new(workload: &'a Workload, cache: CacheFormat, packing: Option<Packing>, rows: u64) -> Self {
        Self {
            workload,
            cache,
            hidden: cache.hidden,
            packing,
            rows,
            positions: workload.context.into(),
            element: cache.element,
            steps: Vec::new(),
            early: Vec::new(),
            held: 0,
            held_in_one_layer: 0,
            norms_apart: false,
            ahead: 0,
        }
    }

    /// Bytes that live from the first layer to the last.
    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
    }

    /// Operations on `numbers` for every token that kernels are not joined with, one after each part of a layer: each
    /// ends a run of kernels, and what is near its end lives beside the next run.
    pub(super) fn hold_ends_of_runs(&mut self, numbers: u64) {
        if self.workload.backend == Backend::Cpu {
            self.hold(2 * NEAR as u64 * self.rows * numbers * self.element);
        }
    }

    /// Bytes that live while one layer is computed, and not beside those of another.
    pub(crate) fn hold_in_one_layer(&mut self, bytes: u64) {
        self.held_in_one_layer = self.held_in_one_layer.max(bytes);
    }

    /// The most that lives at once, in bytes.
    pub(super) fn peak(&self) -> u64 {
        let limit = batch(self.workload.backend);
        let (joined, steps) = join(&self.steps);
        // The sum of each batch, and the largest sum of neighbors.
        let mut batches = vec![0u64];
        let (mut operations, mut reads) = (0, 0u64);
        for step in self.early.iter().chain(&steps) {
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
        // A joined operation takes its memory when those before it are done.
        let held = self.held.saturating_add(self.held_in_one_layer);
        held.saturating_add(joined.max(together.max().unwrap_or(0)))
    }

    /// Positions that a chunk has before it when a window slides.
    pub(crate) fn seen(&self, window: u64) -> u64 {
        (self.positions - self.rows).min(window.saturating_sub(1)) + self.rows
    }

    /// A result of `numbers` for every token.
    pub(crate) fn make(&mut self, numbers: u64) {
        self.take(self.rows * numbers * self.element, self.rows * numbers);
    }

    /// A result of `bytes`, by an operation that reads `reads` numbers.
    pub(crate) fn take(&mut self, bytes: u64, reads: u64) {
        self.steps.push(Step {
            bytes,
            // On the CPU an operation is followed by another one that gives back what it read.
            operations: if self.workload.backend == Backend::Cpu { 2 } else { 1 },
            reads,
            waits: false,
            joins: false,
        });
    }

    /// A result of `numbers` for every token, by a kernel of our own where there is one.
    pub(crate) fn make_by_kernel(&mut self, numbers: u64) {
        self.make(numbers);
        self.last_joins();
    }

    /// A result of `bytes` that needs nothing of the chunk, and comes before all of it where kernels are joined.
    pub(super) fn take_early(&mut self, bytes: u64) {
        self.take(bytes, 0);
        if self.workload.backend == Backend::Cpu {
            self.early.extend(self.steps.pop());
        }
    }

    /// The last operation is a kernel that is joined with those beside it.
    pub(super) fn last_joins(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.joins = self.workload.backend == Backend::Cpu;
        }
    }

    /// Waits until what was made so far is computed.
    pub(crate) fn wait(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.waits = true;
        }
    }

    /// Operations that write where an operand lay, or that only look at it in another way.
    pub(crate) fn in_place(&mut self, operations: u64) {
        for _ in 0..operations {
            self.take(0, 0);
        }
    }

    /// A product with a matrix of the weights.
    pub(crate) fn product(&mut self, inputs: u64, outputs: u64) {
        let weights = match (self.packing, self.workload.backend) {
            (Some(packing), Backend::Metal | Backend::Cuda) => {
                inputs * outputs * packing.bits / 32 + 2 * inputs * outputs / packing.group_size.max(1)
            }
            _ => inputs * outputs,
        };
        let quantized = self.workload.backend == Backend::Cuda && self.packing.is_some();
        if !quantized || !dequantises_rows(self.rows) {
            self.take(self.rows * outputs * self.element, self.rows * inputs + weights);
            return self.last_joins();
        }
        let bytes = inputs * outputs * self.element;
        self.take(bytes, weights);
        self.take(
            self.rows * outputs * self.element,
            self.rows * inputs + inputs * outputs,
        );
        self.runs_ahead(bytes);
    }

    /// The thread waits for the device once it is this many bytes ahead.
    pub(crate) fn runs_ahead(&mut self, bytes: u64) {
        self.ahead += bytes;
        if self.ahead >= MAX_BYTES_AHEAD {
            self.ahead = 0;
            self.wait();
        }
    }

    /// A norm of `numbers` for every token. Kernels of our own fuse those of the stream with the sum before them.
    pub(crate) fn norm(&mut self, numbers: u64, of_stream: bool) {
        match self.workload.backend {
            // A part of the product after it.
            Backend::Cpu if of_stream => {}
            Backend::Cuda if of_stream => self.take(self.rows * numbers * self.element, 0),
            Backend::Cuda | Backend::Cpu | Backend::Metal => self.make_by_kernel(numbers),
        }
    }

    /// Adds the output of a part to the stream: in place, or, by kernels of our own, in new memory.
    pub(super) fn add(&mut self, normed: bool) {
        let hidden = self.hidden;
        match self.workload.backend {
            // By the product that reads the sum.
            Backend::Cpu => self.steps.push(Step {
                bytes: self.rows * hidden * self.element,
                operations: 0,
                reads: 0,
                waits: false,
                joins: true,
            }),
            Backend::Cuda => self.make(hidden),
            Backend::Metal => {
                if normed {
                    self.norm(hidden, false);
                }
                self.in_place(1);
            }
        }
    }

    /// A short convolution over the chunk and what came before: joined, then filtered.
    pub(crate) fn short_conv(&mut self, channels: u64, kernel: u64, element: u64) {
        let bytes = self.rows * channels * element;
        self.take(bytes, 0);
        match self.workload.backend {
            Backend::Cpu => {
                // A product for each place of the filter, each added to the ones before.
                for _ in 0..kernel {
                    self.take(bytes, 0);
                    self.in_place(1);
                }
            }
            Backend::Metal | Backend::Cuda => self.take(bytes, 0),
        }
        self.in_place(1);
    }
}
