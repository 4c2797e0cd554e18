//! The measurements, a file each, and the scripts that measure the same of another engine. Both take turns, so that
//! other work on the computer meets both.

pub mod batch;
pub mod draft;
pub mod gaps;
pub mod lookup;
mod median;
mod noisy_copy;
mod numbers;
mod peer;
pub mod perplexity;
mod sampling;
pub mod speed;
pub mod turns;
pub mod vision;
