//! Operations on [`Tensor`]s, fallible, each one call into MLX on the thread's own stream. mlx-rs looks up
//! the stream and guards every single call, and lacks a few operations, so this layer calls mlx-sys itself.
#![allow(unsafe_code)]

use std::ffi::CStr;

use mlx_rs::Dtype;
use mlx_sys::{mlx_array, mlx_optional_dtype, mlx_optional_float, mlx_optional_int};

use crate::device::stream;
use crate::error::Result;
use crate::recording::{self, Elementwise, Origin};
use crate::tensor::{Handles, Tensor};

/// Calls one function of MLX that writes an array and takes the stream last.
macro_rules! op {
    ($function:ident, $($argument:expr),* $(,)?) => { op!(@bind $function [] $($argument,)*) };
    // Arguments are evaluated outside `unsafe`, one binding each; what they borrow lives until the call is made.
    (@bind $function:ident [$($bound:ident)*] $argument:expr, $($rest:expr,)*) => {
        match $argument {
            argument => op!(@bind $function [$($bound)* argument] $($rest,)*),
        }
    };
    (@bind $function:ident [$($bound:ident)*]) => {
        // SAFETY: every handle among the arguments is borrowed from a living tensor, every pointer from a living slice
        // whose length is passed with it, and MLX checks shapes and types. It checks no indices: callers of `take` and
        // its kin do.
        Tensor::make(|result| unsafe { mlx_sys::$function(result, $($bound,)* stream()) })
    };
}
pub(crate) use op;

/// Methods that MLX has under the same name: `name => function (tensors) (numbers)`.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident => $function:ident ($($tensor:ident),*) ($($number:ident: $kind:ty),*);)*) => {
        impl Tensor {
            $($(#[$doc])*
            pub fn $name(&self, $($tensor: &Tensor,)* $($number: $kind),*) -> Result<Tensor> {
                op!($function, self.raw(), $($tensor.raw(),)* $($number),*)
            })*
        }
    };
}

/// Methods of single numbers, which a recording repeats: `name => (how it does) function (tensors)`.
macro_rules! elementwise_methods {
    ($($(#[$doc:meta])* $name:ident => $operation:ident $function:ident ($($tensor:ident)?);)*) => {
        impl Tensor {
            $($(#[$doc])*
            pub fn $name(&self, $($tensor: &Tensor)?) -> Result<Tensor> {
                let second = elementwise_methods!(@second self $($tensor)?);
                let recorded = recording::elementwise(Elementwise::$operation, self, second)?;
                match recorded {
                    Some(recorded) => Ok(recorded),
                    None => op!($function, self.raw(), $($tensor.raw())?),
                }
            })*
        }
    };
    (@second $first:ident $second:ident) => { $second };
    (@second $first:ident) => { $first };
}

elementwise_methods! {
    /// Sum of two tensors.
    add => Add mlx_add (other);
    /// Difference of two tensors.
    sub => Subtract mlx_subtract (other);
    /// Product, element by element.
    mul => Multiply mlx_multiply (other);
    /// Quotient, element by element.
    div => Divide mlx_divide (other);
    /// The square of every element.
    square => Square mlx_square ();
    /// The logistic function.
    sigmoid => Sigmoid mlx_sigmoid ();
    /// The hyperbolic tangent.
    tanh => Tanh mlx_tanh ();
}

methods! {
    /// Matrix product over the last two axes.
    matmul => mlx_matmul (other) ();
    /// One over the square root of every element.
    rsqrt => mlx_rsqrt () ();
    /// e to every element.
    exp => mlx_exp () ();
    /// e to every element, minus 1, without losing what is left of small ones.
    expm1 => mlx_expm1 () ();
    /// The error function.
    erf => mlx_erf () ();
    /// Its inverse.
    erfinv => mlx_erfinv () ();
    /// Minus every element.
    negative => mlx_negative () ();
    /// Marks the elements that are smaller.
    less => mlx_less (other) ();
    /// Marks the elements that are greater.
    greater => mlx_greater (other) ();
    /// Marks the elements that are not smaller.
    greater_equal => mlx_greater_equal (other) ();
    /// Rows (entries of one axis) by index.
    take => mlx_take_axis (indices) (axis: i32);
    /// Entries along an axis by index, one index per result.
    take_along => mlx_take_along_axis (indices) (axis: i32);
    /// Writes values along an axis at the indices.
    put_along => mlx_put_along_axis (indices, values) (axis: i32);
    /// Adds values along an axis at the indices, once for every time an index occurs.
    add_along => mlx_scatter_add_axis (indices, values) (axis: i32);
    /// The indices that split an axis at its k-th smallest element.
    argpartition => mlx_argpartition_axis () (kth: i32, axis: i32);
    /// An axis in rising order.
    sort => mlx_sort_axis () (axis: i32);
    /// The indices that put an axis in rising order.
    argsort => mlx_argsort_axis () (axis: i32);
    /// The smaller of two, element by element.
    minimum => mlx_minimum (other) ();
    /// The greater of two, element by element.
    maximum => mlx_maximum (other) ();
    /// Elements that leave the range between the two are moved to its ends.
    clip => mlx_clip (low, high) ();
    /// Whole quotients, element by element.
    floor_divide => mlx_floor_divide (other) ();
    /// Sums over an axis.
    sum => mlx_sum_axis () (axis: i32, keep: bool);
    /// Greatest elements of an axis.
    max => mlx_max_axis () (axis: i32, keep: bool);
    /// Smallest elements of an axis.
    min => mlx_min_axis () (axis: i32, keep: bool);
    /// Index of the greatest element of an axis, as unsigned 32 bit.
    argmax => mlx_argmax_axis () (axis: i32, keep: bool);
    /// Logarithm of the sum of the exponentials of two tensors.
    logaddexp => mlx_logaddexp (other) ();
    /// Logarithm of the sum of exponentials over an axis.
    logsumexp => mlx_logsumexp_axis () (axis: i32, keep: bool);
    /// Softmax over an axis; `precise` sums in 32 bit.
    softmax => mlx_softmax_axis () (axis: i32, precise: bool);
    /// Convolves `[batch, positions, channels]` with `[outputs, kernel, channels per group]`.
    conv1d => mlx_conv1d (weight) (stride: i32, padding: i32, dilation: i32, groups: i32);
}

impl Tensor {
    /// One number of a type.
    pub fn scalar(value: f32, dtype: Dtype) -> Result<Tensor> {
        Tensor::from_f32(&[value], &[]).astype(dtype)
    }

    /// The same, if there is a number.
    pub fn optional_scalar(value: Option<f32>, dtype: Dtype) -> Result<Option<Tensor>> {
        value.map(|value| Tensor::scalar(value, dtype)).transpose()
    }

    /// Nothing but zeros.
    pub fn zeros(shape: &[i32], dtype: Dtype) -> Result<Tensor> {
        op!(mlx_zeros, shape.as_ptr(), shape.len(), dtype.into())
    }

    /// The same elements as another type.
    pub fn astype(&self, dtype: Dtype) -> Result<Tensor> {
        if recording::is_on() && dtype == self.dtype() {
            return Ok(self.clone());
        }
        op!(mlx_astype, self.raw(), dtype.into())
    }

    /// The same bytes read as another type; the last axis grows or shrinks with the type's width.
    pub fn view(&self, dtype: Dtype) -> Result<Tensor> {
        op!(mlx_view, self.raw(), dtype.into())
    }

    /// The same elements, row after row without gaps.
    pub fn contiguous(&self) -> Result<Tensor> {
        op!(mlx_contiguous, self.raw(), false)
    }

    /// The same elements in another shape; one axis may be -1.
    pub fn reshape(&self, shape: &[i32]) -> Result<Tensor> {
        let made = op!(mlx_reshape, self.raw(), shape.as_ptr(), shape.len())?;
        Ok(match self.origin() {
            Origin::Launch(launched) => match launched.reshaped(self.shape(), made.shape()) {
                Some(launched) => made.from_launch(launched),
                None => made,
            },
            Origin::Memory | Origin::Described => made,
        })
    }

    /// The same elements again and again along axes of length 1; a view.
    pub fn broadcast(&self, shape: &[i32]) -> Result<Tensor> {
        op!(mlx_broadcast_to, self.raw(), shape.as_ptr(), shape.len())
    }

    /// Exchanges two axes; a view.
    pub fn swapaxes(&self, first: i32, second: i32) -> Result<Tensor> {
        let made = op!(mlx_swapaxes, self.raw(), first, second)?;
        Ok(match self.origin() {
            // Of weights, which do not change from step to step.
            Origin::Memory => made.from_memory(),
            Origin::Launch(_) | Origin::Described => made,
        })
    }

    /// The axes in another order; a view.
    pub fn transpose(&self, axes: &[i32]) -> Result<Tensor> {
        op!(mlx_transpose_axes, self.raw(), axes.as_ptr(), axes.len())
    }

    /// `self · b + c`.
    pub fn addmm(&self, b: &Tensor, c: &Tensor) -> Result<Tensor> {
        op!(mlx_addmm, c.raw(), self.raw(), b.raw(), 1.0, 1.0)
    }

    /// Convolves `[batch, rows, columns, channels]` with `[outputs, rows, columns, channels per group]`, with `before`
    /// and `after` zeros around both axes.
    pub fn conv2d(&self, kernel: &Tensor, stride: i32, (before, after): (i32, i32), groups: i32) -> Result<Tensor> {
        let ([stride, before, after, dilation], flip) = ([stride, before, after, 1].map(|of_both| [of_both; 2]), false);
        op!(
            mlx_conv_general,
            self.raw(),
            kernel.raw(),
            stride.as_ptr(),
            stride.len(),
            before.as_ptr(),
            before.len(),
            after.as_ptr(),
            after.len(),
            dilation.as_ptr(),
            dilation.len(),
            dilation.as_ptr(),
            dilation.len(),
            groups,
            flip,
        )
    }

    /// From `start` up to `stop` along one axis; a view.
    pub fn slice(&self, axis: usize, start: i32, stop: i32) -> Result<Tensor> {
        let (mut from, mut to) = ([0; MAX_AXES], [0; MAX_AXES]);
        let axes = self.shape().len();
        to[..axes].copy_from_slice(self.shape());
        (from[axis], to[axis]) = (start, stop);
        let made = op!(
            mlx_slice,
            self.raw(),
            from.as_ptr(),
            axes,
            to.as_ptr(),
            axes,
            ONES.as_ptr(),
            axes
        )?;
        Ok(match self.origin() {
            Origin::Launch(launched) => made.from_launch(launched.sliced(axis, start)),
            Origin::Memory | Origin::Described => made,
        })
    }

    /// This tensor with `update` written from `start` on along one axis. Done in place if this is the only handle.
    pub fn slice_update(&self, update: &Tensor, axis: usize, start: i32) -> Result<Tensor> {
        let (mut from, mut to) = ([0; MAX_AXES], [0; MAX_AXES]);
        let axes = self.shape().len();
        to[..axes].copy_from_slice(self.shape());
        (from[axis], to[axis]) = (start, start + update.shape()[axis]);
        op!(
            mlx_slice_update,
            self.raw(),
            update.raw(),
            from.as_ptr(),
            axes,
            to.as_ptr(),
            axes,
            ONES.as_ptr(),
            axes
        )
    }

    /// Sums of the elements from each one to the end of the axis, that one left out.
    pub fn reverse_cumsum(&self, axis: i32) -> Result<Tensor> {
        op!(mlx_cumsum_axis, self.raw(), axis, true, false, AUTOMATIC)
    }

    /// Sums of the elements of an axis up to each one, that one included.
    pub fn cumsum(&self, axis: i32) -> Result<Tensor> {
        op!(mlx_cumsum_axis, self.raw(), axis, false, true, AUTOMATIC)
    }

    /// Elements of `yes` where `self` is true, of `no` elsewhere.
    pub fn select(&self, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        op!(mlx_where, self.raw(), yes.raw(), no.raw())
    }

    /// Root mean square norm over the last axis in one kernel.
    pub fn fast_rms_norm(&self, weight: Option<&Tensor>, eps: f32) -> Result<Tensor> {
        op!(mlx_fast_rms_norm, self.raw(), maybe(weight), eps)
    }

    /// Norm by mean and variance over the last axis in one kernel.
    pub fn fast_layer_norm(&self, weight: &Tensor, bias: &Tensor, eps: f32) -> Result<Tensor> {
        op!(mlx_fast_layer_norm, self.raw(), weight.raw(), bias.raw(), eps)
    }

    /// Rotary positions in one kernel: of the last axis the first `dims` numbers turn, halves against each other, or
    /// neighbors if `traditional`. Either a base or periods.
    pub fn fast_rope(
        &self,
        dims: i32,
        traditional: bool,
        base: Option<f32>,
        periods: Option<&Tensor>,
        offset: i32,
    ) -> Result<Tensor> {
        let base = mlx_optional_float {
            value: base.unwrap_or(0.0),
            has_value: base.is_some(),
        };
        op!(
            mlx_fast_rope,
            self.raw(),
            dims,
            traditional,
            base,
            1.0,
            offset,
            maybe(periods)
        )
    }

    /// The same for sequences `[sequences, heads, 1, width]` that each are at a position of their own, `offsets`
    /// `[sequences]`.
    pub fn fast_rope_each(&self, dims: i32, traditional: bool, periods: &Tensor, offsets: &Tensor) -> Result<Tensor> {
        let base = mlx_optional_float {
            value: 0.0,
            has_value: false,
        };
        op!(
            mlx_fast_rope_dynamic,
            self.raw(),
            dims,
            traditional,
            base,
            1.0,
            offsets.raw(),
            periods.raw()
        )
    }

    /// Attention, in one kernel if the device has one. `self` are queries `[1, heads, length, width]`.
    pub fn fast_attention(
        &self,
        keys: &Tensor,
        values: &Tensor,
        scale: f32,
        mask: &Mask,
        sinks: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (mode, array): (&CStr, _) = match mask {
            Mask::None => (c"", None),
            Mask::Causal => (c"causal", None),
            Mask::Array(array) => (c"array", Some(array)),
        };
        op!(
            mlx_fast_scaled_dot_product_attention,
            self.raw(),
            keys.raw(),
            values.raw(),
            scale,
            mode.as_ptr(),
            maybe(array),
            maybe(sinks),
            false
        )
    }

    /// Matrices `[…, rows, inputs]` times matrices of a stack `[count, inputs, outputs]`: `indices`, spread together
    /// with the leading axes of `self`, choose which. `sorted` says that they rise, which lets a device read each
    /// matrix once.
    pub fn gather_mm(&self, stack: &Tensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        op!(
            mlx_gather_mm,
            self.raw(),
            stack.raw(),
            maybe(None),
            indices.raw(),
            sorted
        )
    }
}

/// Which keys a query may see.
#[derive(Debug, Clone)]
pub enum Mask {
    /// All of them.
    None,
    /// Those up to its own position; queries are the last positions.
    Causal,
    /// Those marked true, `[queries, keys]`.
    Array(Tensor),
}

/// Joins tensors along an axis.
pub fn concatenate(tensors: &[&Tensor], axis: i32) -> Result<Tensor> {
    let handles = Handles::new(tensors.iter().copied());
    op!(mlx_concatenate_axis, handles.0, axis)
}

/// The same, at no cost if there is one tensor.
pub fn join<'a>(tensors: impl IntoIterator<Item = &'a Tensor>, axis: i32) -> Result<Tensor> {
    match &tensors.into_iter().collect::<Vec<_>>()[..] {
        [one] => Ok((*one).clone()),
        several => concatenate(several, axis),
    }
}

/// Stacks tensors of one shape along a new axis.
pub fn stack(tensors: &[&Tensor], axis: i32) -> Result<Tensor> {
    let handles = Handles::new(tensors.iter().copied());
    op!(mlx_stack_axis, handles.0, axis)
}

/// Token ids as the model takes them.
pub fn ids_tensor(ids: &[u32]) -> Tensor {
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    Tensor::from_i32(&ids, &[ids.len() as i32])
}

/// An index drawn from unnormalised log-probabilities over the last axis, as unsigned 32 bit.
pub fn random_categorical(logits: &Tensor, key: &Tensor) -> Result<Tensor> {
    op!(mlx_random_categorical, logits.raw(), -1, key.raw())
}

/// Numbers between 0 and 1; one with the empty shape.
pub fn random_uniform(key: &Tensor, shape: &[i32]) -> Result<Tensor> {
    let (low, high) = (Tensor::from_f32(&[0.0], &[]), Tensor::from_f32(&[1.0], &[]));
    op!(
        mlx_random_uniform,
        low.raw(),
        high.raw(),
        shape.as_ptr(),
        shape.len(),
        Dtype::Float32.into(),
        key.raw()
    )
}

const MAX_AXES: usize = 5;
/// Leaves the type of a result to MLX.
pub(crate) const AUTOMATIC: mlx_optional_dtype = mlx_optional_dtype {
    value: 0,
    has_value: false,
};
const ONES: [i32; MAX_AXES] = [1; MAX_AXES];

pub(crate) fn maybe(tensor: Option<&Tensor>) -> mlx_array {
    tensor.map_or(
        mlx_array {
            ctx: std::ptr::null_mut(),
        },
        Tensor::raw,
    )
}

pub(crate) fn some(value: i32) -> mlx_optional_int {
    mlx_optional_int { value, has_value: true }
}
