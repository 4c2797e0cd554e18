//! Feed-forward networks: dense ones and experts.

use super::{Backend, FeedForwardCost, Part, Prefill};

/// From this number of rows per expert on, CUDA multiplies dequantized experts faster: there MLX's gathered products
/// with quantized numbers are one product per row. On an H200, 2,048 tokens take 2.5 ms instead of 21 for a projection
/// of qwen3-30b-a3b, 256 tokens 2.2 instead of 2.8.
const MIN_DEQUANTIZED_ROWS: u64 = 16;

/// A stack of experts is dequantized for a product only if it takes no more bytes than this.
const MAX_DEQUANTIZED_STACK: u64 = 2 << 30;

/// True if CUDA multiplies `rows`, sorted by expert, with the `numbers` of a stack of `count` experts instead of its
/// quantized ones.
pub fn dequantises_experts(count: u64, numbers: u64, rows: u64) -> bool {
    rows >= MIN_DEQUANTIZED_ROWS * count && numbers * 2 <= MAX_DEQUANTIZED_STACK
}

/// An activation and the product of gate and up projection after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivationCost {
    /// Results in new memory.
    pub results: u64,
    /// Operations that write over their operands.
    pub in_place: u64,
    /// True if a kernel of our own does it all on CUDA, and on a CPU as a part of the product before it.
    pub kernel: bool,
    /// True if a CPU has a kernel for the activation without what it gates.
    pub pointwise: bool,
}

/// A network for all tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseCost {
    pub width: u64,
    /// True if the activation is multiplied by a second projection.
    pub gated: bool,
    pub activation: ActivationCost,
}

/// A network without a gate for all tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainCost {
    pub width: u64,
    pub activation: ActivationCost,
    pub bias: bool,
}

/// Many networks, of which each token uses `top_k`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpertsCost {
    pub count: u64,
    pub top_k: u64,
    /// Width of one expert.
    pub width: u64,
    pub activation: ActivationCost,
    pub bias: bool,
    /// True if the activation is multiplied by a second projection.
    pub gated: bool,
}

/// The same over vectors of this width, made of the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LatentCost {
    pub width: u64,
    pub experts: ExpertsCost,
}

impl FeedForwardCost for LatentCost {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let mut parts = self.experts.weights(self.width);
        parts[0] = Part::plain(self.experts.count, hidden);
        parts.extend([Part::matrix(self.width, hidden), Part::matrix(hidden, self.width)]);
        parts
    }

    fn prefill(&self, pass: &mut Prefill<'_>, normed_after: bool) {
        let hidden = pass.hidden;
        pass.product(hidden, self.width);
        pass.hidden = self.width;
        self.experts.prefill(pass, normed_after);
        pass.hidden = hidden;
        pass.product(self.width, hidden);
    }
}

impl FeedForwardCost for DenseCost {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        vec![Part::matrix(self.inner(), hidden), Part::matrix(hidden, self.width)]
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _normed_after: bool) {
        if pass.fuses_gate(self.gated, self.activation) {
            pass.product(pass.hidden, self.width);
        } else {
            pass.product(pass.hidden, self.inner());
            pass.gated(self.width, self.activation, pass.rows);
        }
        pass.product(self.width, pass.hidden);
    }
}

impl DenseCost {
    /// Numbers before the activation.
    fn inner(&self) -> u64 {
        if self.gated {
            2 * self.width
        } else {
            self.width
        }
    }
}

impl FeedForwardCost for PlainCost {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        vec![Part::matrix(self.width, hidden), Part::matrix(hidden, self.width)]
    }

    fn prefill(&self, pass: &mut Prefill<'_>, _normed_after: bool) {
        pass.product(pass.hidden, self.width);
        // On a CPU a product with a bias applies the activation.
        if !self.bias || !pass.fuses_gate(true, self.activation) {
            pass.gated(self.width, self.activation, pass.rows);
            if pass.workload.backend != Backend::Cpu {
                // The product's result lives until the activation was handed over.
                pass.hold_in_one_layer(pass.rows * self.width * pass.element);
            }
        }
        pass.product(self.width, pass.hidden);
    }
}

impl FeedForwardCost for ExpertsCost {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let stack = || Part::matrix(self.count * self.width, hidden);
        let stacks = (0..if self.gated { 3 } else { 2 }).map(|_| stack());
        [Part::plain(self.count, hidden)].into_iter().chain(stacks).collect()
    }

    fn prefill(&self, pass: &mut Prefill<'_>, normed_after: bool) {
        // Next to a dense network they have norms of their own, before, after and in the router.
        if normed_after {
            for _ in 0..4 {
                pass.norm(pass.hidden, false);
            }
            pass.in_place(3);
        }
        self.experts(pass);
    }
}

impl ExpertsCost {
    /// True if our own kernels multiply rows with the experts as they are stored.
    fn is_by_kernel(&self, pass: &Prefill<'_>) -> bool {
        let packed = pass.packing.is_some_and(|packing| matches!(packing.bits, 4 | 8));
        pass.workload.backend == Backend::Cuda && packed && pass.element == 2 && self.activation.kernel
    }

    /// The products of every token with its experts, and their sum.
    fn experts_by_kernel(&self, pass: &mut Prefill<'_>) {
        let (rows, hidden, width) = (pass.rows * self.top_k, pass.hidden, self.width);
        pass.make(self.count);
        pass.in_place(3);
        let bits = pass.packing.map_or(0, |packing| packing.bits);
        for (inputs, products, outputs) in [(hidden, 2 * width, width), (width, hidden, hidden)] {
            let read = self.count * inputs * products * bits / 32;
            pass.in_place(1);
            pass.take(rows * outputs * pass.element, rows * inputs + read);
        }
        pass.make(hidden);
        pass.runs_ahead(rows * (width + hidden) * pass.element);
    }

    /// The rows of every token are brought into the order of its experts, and back, but on a CPU.
    fn experts(&self, pass: &mut Prefill<'_>) {
        let (hidden, width) = (pass.hidden, self.width);
        if self.is_by_kernel(pass) {
            return self.experts_by_kernel(pass);
        }
        let sorts = pass.workload.backend != Backend::Cpu;
        // The router: its scores, their order, the shares.
        for _ in 0..3 {
            pass.make(self.count);
        }
        pass.in_place(8);
        let rows = pass.rows * self.top_k;
        let of_rows = |pass: &mut Prefill<'_>, numbers: u64, weights: u64| {
            pass.take(rows * numbers * pass.element, rows * numbers + weights);
        };
        let product = |pass: &mut Prefill<'_>, inputs: u64, outputs: u64| {
            let numbers = self.count * inputs * outputs;
            let read = pass.packing.map_or(numbers, |packing| numbers * packing.bits / 32);
            let quantized = pass.workload.backend == Backend::Cuda && pass.packing.is_some();
            let dequantizes = quantized && dequantises_experts(self.count, numbers, rows);
            if dequantizes {
                pass.take(numbers * pass.element, numbers);
            }
            of_rows(pass, outputs, read);
            if dequantizes {
                pass.wait();
            }
        };
        if sorts {
            of_rows(pass, hidden, 0);
        }
        if !self.bias && pass.fuses_gate(self.gated, self.activation) {
            product(pass, hidden, width);
        } else {
            let inner = if self.gated { 2 * width } else { width };
            product(pass, hidden, inner);
            if self.bias {
                of_rows(pass, inner, 0);
            }
            pass.gated(width, self.activation, rows);
        }
        product(pass, width, hidden);
        if self.bias {
            of_rows(pass, hidden, 0);
        }
        if sorts {
            of_rows(pass, hidden, 0);
        }
        pass.make(hidden);
    }
}

impl Prefill<'_> {
    /// True if the product with gate and up writes `activation(gate) · up` alone.
    fn fuses_gate(&self, gated: bool, activation: ActivationCost) -> bool {
        self.workload.backend == Backend::Cpu && gated && activation.kernel
    }

    /// `activation(gate) · up`, with gate and up next to each other.
    fn gated(&mut self, width: u64, activation: ActivationCost, rows: u64) {
        self.last_leaves();
        if self.workload.backend == Backend::Cpu && activation.pointwise {
            self.take(rows * width * self.element, rows * width);
            self.last_joins();
            self.last_leaves();
            self.look(1);
            return self.take(rows * width * self.element, rows * width);
        }
        for _ in 0..activation.results {
            self.take(rows * width * self.element, rows * width);
        }
        if self.workload.backend != Backend::Cuda || !activation.kernel {
            self.in_place(activation.in_place);
        }
    }
}
