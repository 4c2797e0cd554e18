//! The models on this computer: their places, their properties, their faults.

pub(crate) mod home;
pub(crate) mod inspect;
pub(crate) mod json_file;
mod last_used;
pub(crate) mod model_folder;
pub(crate) mod scan;
pub(crate) mod structure;
pub(crate) mod tree;
