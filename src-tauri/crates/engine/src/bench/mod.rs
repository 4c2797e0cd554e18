//! Measurements of the engine, logits, and and views for tests. Compiled with the features `bench` and `test-support`
//! alone.

mod engine;
mod logits;
pub mod speed;
#[cfg(feature = "test-support")]
pub mod test_support;
