//! The tensors that a part of a model or of a cache holds.

pub use mlx_derive::Parameters;
use mlx_rs::Dtype;

use crate::tensor::Tensor;

/// Something that holds tensors. What is held must be visited: loading computes what is visited, and a test checks it.
pub trait Parameters {
    /// Shows every tensor. `#[derive(Parameters)]` visits all fields, so that none is forgotten.
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

impl<T: Parameters, const N: usize> Parameters for [T; N] {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        self.iter().for_each(|inner| inner.visit(visitor));
    }
}

impl<A: Parameters, B: Parameters> Parameters for (A, B) {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        self.0.visit(visitor);
        self.1.visit(visitor);
    }
}

impl<T: Parameters> Parameters for Box<T> {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        (**self).visit(visitor);
    }
}

/// Types that hold no tensor.
macro_rules! empty {
    ($($of:ty),*) => {
        $(impl Parameters for $of {
            fn visit<'a>(&'a self, _: &mut dyn FnMut(&'a Tensor)) {}
        })*
    };
}

empty!(bool, f32, i32, u32, usize, Dtype);
