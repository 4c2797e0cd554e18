//! Faster ways of the layers, each beside the plain one that it stands for: one launch instead of several where a
//! kernel fuses them. A way that does not fit returns `None`, and the layer computes plainly.

pub mod activation;
pub mod attention;
pub mod heads;
pub mod linear;
pub mod residual;
mod rope;
#[cfg(test)]
mod tests;
