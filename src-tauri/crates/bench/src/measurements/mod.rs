//! The measurements, a file each, and the scripts that measure the same of another engine. Both take turns, so that
//! other work on the computer meets both.

pub mod batch;
pub mod gaps;
pub mod lookup;
mod median;
mod numbers;
mod peer;
pub mod perplexity;
pub mod speed;
pub mod turns;
pub mod vision;
