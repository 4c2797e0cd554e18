//! One answer: its request, its prompt, what limits its tokens, and what is sent of it.

pub mod constraint;
pub mod count;
pub mod generation;
pub mod images;
pub mod job;
pub mod output_stream;
pub mod prefix;
pub mod repetition_detector;
pub mod request;
pub mod thinking_budget;
