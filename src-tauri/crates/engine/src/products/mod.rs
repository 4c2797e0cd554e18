//! Products with quantized matrices: how they are computed, and the check that this device computes them rightly.

pub mod packed_product;
pub mod product_check;
