//! The allocations of a prompt's chunk on its way through the layers.
//!
//! MLX describes a whole chunk first and computes it then. Memory of a result is taken when its operation is handed
//! over, and given back when the device has run what reads it. The device falls behind, so results live until the
//! handing over has to wait: MLX lets ten batches of operations run ahead (`MAX_ACTIVE_TASKS` in its `transforms.cpp`).
//! How many operations make a batch depends on the backend. The peak is therefore the largest sum over that number of
//! operations in a row, on top of what lives all the while.
//!
//! On a CPU, kernels of our own that follow each other become one operation. Its outputs, which are what others read,
//! are taken when it is handed over; all other results share memory that is taken when it is its turn, and of those
//! only what the next few read lives at once.

use super::{Backend, CacheFormat, Packing, Workload};

/// Batches whose results live at once: ten that run ahead, and the one that is handed over.
const BATCHES: usize = 11;

/// From this many rows on, CUDA multiplies dequantized matrices faster than packed ones: the first token of qwen3-4b (4
/// bits) on an H200 comes after 77 instead of 169 ms at 2,048 tokens of prompt, after 26 instead of 36 at 256.
const MIN_DEQUANTIZED_ROWS: u64 = 256;

/// Kernels in a row that become one operation at most.
const JOINED: usize = 48;

/// Results of joined kernels that live at once: a layer's stream, a summand, what was made of both, and what that
/// becomes.
const NEAR: usize = 4;

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
#[derive(Clone, Copy, Default)]
struct Step {
    bytes: u64,
    operations: u64,
    reads: u64,
    /// True if the thread waits for its result, so that nothing runs ahead.
    waits: bool,
    /// True for a kernel that is joined with those beside it.
    joins: bool,
    /// True if other operations than the kernels beside it read the result.
    leaves: bool,
    /// True if it needs nothing of the chunk, so that it parts no run of kernels.
    is_early: bool,
    /// True if it is the stream, which what follows later is added to.
    is_stream: bool,
    /// Bytes of results of joined kernels that live while it is computed.
    inside: u64,
    /// Bytes that caches hold more from then on.
    grows: u64,
}

impl Step {
    /// The operation that kernels become, or the only one.
    fn joined_or_single(run: &[Self]) -> Self {
        match run {
            [single] => *single,
            _ => Self::joined(run),
        }
    }

    /// The operation that kernels become.
    fn joined(run: &[Self]) -> Self {
        let last_stream = run.iter().rposition(|step| step.is_stream);
        let is_output = |index: usize| run[index].leaves || index + 1 == run.len() || Some(index) == last_stream;
        let (outputs, inner): (Vec<usize>, Vec<usize>) = (0..run.len()).partition(|index| is_output(*index));
        let sum = |steps: &[usize]| {
            steps
                .iter()
                .fold(0, |sum: u64, step| sum.saturating_add(run[*step].bytes))
        };
        Self {
            bytes: sum(&outputs),
            operations: 2,
            grows: run.iter().fold(0, |sum, step| sum.saturating_add(step.grows)),
            reads: run.iter().fold(0, |sum, step| sum.saturating_add(step.reads)),
            inside: inner.windows(NEAR.min(inner.len()).max(1)).map(sum).max().unwrap_or(0),
            ..Self::default()
        }
    }
}

/// The steps with one for each run of kernels, after what the run reads and no kernel makes.
fn join(steps: &[Step]) -> Vec<Step> {
    let mut joined = Vec::with_capacity(steps.len());
    for run in steps.chunk_by(|one, next| (one.joins || one.is_early) && (next.joins || next.is_early)) {
        let (early, kernels): (Vec<Step>, Vec<Step>) = run.iter().partition(|step| step.is_early);
        joined.extend(early);
        joined.extend(kernels.chunks(JOINED).map(Step::joined_or_single));
    }
    joined
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
    /// Bytes that live from the first layer to the last.
    held: u64,
    /// The most bytes that one layer holds for itself.
    held_in_one_layer: u64,
    /// True if norms of the stream are operations of their own.
    pub norms_apart: bool,
    /// True if no kernel adds to the stream.
    pub adds_apart: bool,
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
            held: 0,
            held_in_one_layer: 0,
            norms_apart: false,
            adds_apart: false,
            ahead: 0,
        }
    }

    /// Bytes that live from the first layer to the last.
    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
    }

    /// Bytes that live while one layer is computed, and not beside those of another.
    pub(crate) fn hold_in_one_layer(&mut self, bytes: u64) {
        self.held_in_one_layer = self.held_in_one_layer.max(bytes);
    }

    /// The most that lives at once, in bytes.
    pub(super) fn peak(&self) -> u64 {
        let limit = batch(self.workload.backend);
        let mut batches = vec![Step::default()];
        let (mut operations, mut reads) = (0, 0u64);
        for step in join(&self.steps) {
            if let Some(batch) = batches.last_mut() {
                batch.bytes = batch.bytes.saturating_add(step.bytes);
                batch.grows = batch.grows.saturating_add(step.grows);
                batch.inside = batch.inside.max(step.inside);
            }
            operations += step.operations;
            reads = reads.saturating_add(step.reads);
            if step.waits {
                batches.extend([Step::default(); BATCHES]);
                (operations, reads) = (0, 0);
            } else if operations >= limit.operations || reads >> 20 > limit.reads {
                batches.push(Step::default());
                (operations, reads) = (0, 0);
            }
        }
        let sum = |batches: &[Step], of: fn(&Step) -> u64| batches.iter().map(of).fold(0, u64::saturating_add);
        let held = self.held.saturating_add(self.held_in_one_layer);
        // The first of those in sight is computed, the others were handed over, and caches do not yet grow by the rest.
        let sums = (0..batches.len()).map(|first| {
            let (ahead, rest) = batches[first..].split_at(BATCHES.min(batches.len() - first));
            held.saturating_add(sum(ahead, |batch| batch.bytes))
                .saturating_add(batches[first].inside)
                .saturating_sub(sum(rest, |batch| batch.grows))
        });
        sums.max().unwrap_or(held)
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
            ..Step::default()
        });
    }

    /// Operations of the CPU that look at memory in another way: nothing but what gives back what they read.
    pub(crate) fn look(&mut self, operations: u64) {
        if self.workload.backend == Backend::Cpu {
            let step = Step {
                operations: 1,
                ..Step::default()
            };
            self.steps.extend((0..operations).map(|_| step));
        }
    }

    /// The last result is read by others than the kernels beside it.
    pub(crate) fn last_leaves(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.leaves = self.workload.backend == Backend::Cpu;
        }
    }

    /// A result of `numbers` for every token, by a kernel of our own where there is one.
    pub(crate) fn make_by_kernel(&mut self, numbers: u64) {
        self.make(numbers);
        self.last_joins();
    }

    /// From the last operation on caches hold this much more. Elsewhere than on a CPU they count as they are in the
    /// end.
    pub(super) fn last_grows(&mut self, bytes: u64) {
        if let Some(last) = self.steps.last_mut() {
            last.grows = if self.workload.backend == Backend::Cpu {
                bytes
            } else {
                0
            };
        }
    }

    /// The last operation needs nothing of the chunk.
    pub(super) fn last_is_early(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.is_early = self.workload.backend == Backend::Cpu;
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
            // Written over the summand.
            Backend::Cpu if self.adds_apart => {
                self.last_leaves();
                self.in_place(1);
            }
            // By the product that reads the sum.
            Backend::Cpu => self.steps.push(Step {
                bytes: self.rows * hidden * self.element,
                joins: true,
                is_stream: true,
                ..Step::default()
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
        self.last_leaves();
        match self.workload.backend {
            Backend::Cpu => {
                // The states that go on are cut from it at the end of all layers.
                self.hold(bytes);
                self.take(0, 0);
                // A product for each place of the filter, each added to the ones before.
                for _ in 0..kernel {
                    self.look(2);
                    self.take(bytes, 0);
                    self.in_place(1);
                }
            }
            Backend::Metal | Backend::Cuda => {
                self.take(bytes, 0);
                self.take(bytes, 0);
            }
        }
        self.in_place(1);
    }
}
