//! The tensors that a part of a model or of a cache holds.

use crate::tensor::Tensor;

/// Something that holds tensors. What is held must be visited: loading computes what is visited, and a test checks it.
pub trait Parameters {
    /// Shows every tensor. Structs get it from `parameters!`; what is written by hand destructures `self`, so that no
    /// field is forgotten.
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor));

    /// Every tensor in a list.
    fn tensors(&self) -> Vec<&Tensor> {
        let mut all = Vec::new();
        self.visit(&mut |tensor| all.push(tensor));
        all
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __parameters {
    ($of:ident { $($field:ident $(: $none:tt)?),* $(,)? }) => {
        impl $crate::parameters::Parameters for $of {
            fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a $crate::tensor::Tensor)) {
                let Self { $($field $(: $none)?),* } = self;
                $($crate::parameters::parameters!(@visit visitor $field $($none)?);)*
            }
        }
    };
    (@visit $visitor:ident $field:ident) => {
        $crate::parameters::Parameters::visit($field, $visitor)
    };
    (@visit $visitor:ident $field:ident _) => {};
}

/// Implements [`Parameters`] of a struct: its fields are visited in this order. All of them are named, those that hold
/// no tensor as `field: _`, so that a new one cannot be forgotten.
pub use __parameters as parameters;

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
