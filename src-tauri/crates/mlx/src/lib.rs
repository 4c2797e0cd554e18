//! MLX as Ponder calls it: arrays and their operations, quantized matrices, the device and its memory. The only room
//! that knows mlx-rs and mlx-sys.
//!
//! [`device::connect`] binds a thread to MLX; only that thread may touch a [`tensor::Tensor`], which cannot be sent.

// `#[derive(Parameters)]` names this crate.
extern crate self as mlx;

pub mod blas;
pub mod compiled_kernels;
pub mod device;
mod error;
pub mod fused;
pub mod memory;
pub mod ops;
mod origin;
pub mod parameters;
pub mod quantized;
pub mod random;
pub mod recording;
pub mod tensor;

pub use error::{Error, Result};
pub use mlx_rs::Dtype;
/// MLX's C interface, for kernels that are launched through it.
pub use mlx_sys as sys;
