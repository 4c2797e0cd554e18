//! MLX: arrays and their operations, the device, its memory, and our own kernels.

pub mod blas;
pub mod device;
pub mod kernels;
pub mod memory;
pub mod ops;
pub mod packed_product;
pub mod parameters;
pub mod product_check;
pub mod quantized;
pub mod tensor;
