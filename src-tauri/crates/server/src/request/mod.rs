//! The parts that the requests of all surfaces have in common.

pub(crate) mod conversation;
pub(crate) mod fields;
pub(crate) mod images;
pub(crate) mod response_format;
pub(crate) mod sampling;
pub(crate) mod tools;
pub(crate) mod values;
