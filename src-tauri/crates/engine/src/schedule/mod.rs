//! All answers: the worker's thread, the models that are loaded, and when each of them takes a step.

pub mod command;
pub mod embeddings;
pub mod limits;
pub mod loaded_models;
pub mod pace;
pub mod prefetch;
pub mod queue;
pub mod scheduler;
pub mod step;
pub mod worker;
