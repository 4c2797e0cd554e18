//! Kernels for the processor, as operations of MLX's graph: products with quantized matrices as they are stored, which
//! MLX would have to widen, and what a step of decoding does in one operation instead of many small ones.
//!
//! [`kernels`] are asked for through [`mlx::fused::FusedKernels`].
#![cfg(target_os = "linux")]

mod attend;
mod biased;
mod embedding;
mod file_tensors;
mod format;
mod fused;
mod gate;
mod gathered;
mod heads;
mod isa;
mod kv_dtype;
mod lanes;
mod layer_norm;
mod linear;
mod math;
mod norm;
mod pointwise;
mod pool;
mod primitive;
mod product;
mod shared;

pub use fused::{kernels, set_threads};
