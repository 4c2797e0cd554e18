//! The models on this computer: their places, their properties, their faults.

pub(crate) mod adapters;
mod draft_models;
pub(crate) mod hf_tree;
pub(crate) mod home;
pub(crate) mod inspect;
pub(crate) mod integrity;
pub(crate) mod json_file;
mod last_used;
pub(crate) mod model_folder;
pub(crate) mod other_programs;
pub(crate) mod scan;
