//! The models that are served, and how long they stay loaded.

pub(crate) mod keep_alive;
pub(crate) mod served;
