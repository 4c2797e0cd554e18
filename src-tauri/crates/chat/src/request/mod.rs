//! From a stored branch to the request that an engine is given.

pub(crate) mod ahead;
pub(crate) mod build;
pub(crate) mod compaction_mark;
mod conversation;
pub(crate) mod fit;
pub(crate) mod passages;
pub(crate) mod personal;
pub(crate) mod reading;
mod results;
pub(crate) mod tools;

pub(crate) use conversation::calls;
