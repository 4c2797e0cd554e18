//! The tensors that a part of a model or of a cache holds.

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
