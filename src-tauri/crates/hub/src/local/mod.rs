//! The models on this computer: where they lie, what they are, and what is wrong with them.

pub(crate) mod home;
pub(crate) mod inspect;
pub(crate) mod json_file;
pub(crate) mod model_folder;
pub(crate) mod scan;
pub(crate) mod structure;
pub(crate) mod tree;
