//! The parts that model families are built of. Activations are `[length, width]`: one sequence at a time, no batch axis, so
//! that no step spends operations on reshaping it away.

mod activation;
mod attention;
mod delta_rule;
mod embedding;
mod experts;
mod heads;
mod linear;
mod norm;
mod residual;
mod rope;
mod short_conv;

pub use activation::{Activation, Gelu};
pub use attention::scaled_dot_product_attention;
pub use delta_rule::{DeltaRule, DeltaRuleInputs};
pub use embedding::Embedding;
pub use experts::{top_k_indices, Experts};
pub use heads::{split_heads, Heads};
pub use linear::{Linear, Projection};
pub use norm::{norm_weight, RmsNorm};
pub use residual::ResidualStream;
pub use rope::{Rope, Rotation};
pub use short_conv::ShortConv;

use crate::tensor::Tensor;

/// Something that holds tensors. What is held must be visited: loading computes what is visited, and a test checks it.
pub trait Parameters {
    /// Shows every tensor. Implementations take `self` apart field by field, so that a new field cannot be forgotten.
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor));

    /// Every tensor in a list.
    fn tensors(&self) -> Vec<&Tensor> {
        let mut all = Vec::new();
        self.visit(&mut |tensor| all.push(tensor));
        all
    }
}

impl Parameters for Tensor {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        visitor(self);
    }
}

impl<T: Parameters> Parameters for Option<T> {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        if let Some(inner) = self {
            inner.visit(visitor);
        }
    }
}

impl<T: Parameters> Parameters for Vec<T> {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        self.iter().for_each(|inner| inner.visit(visitor));
    }
}
