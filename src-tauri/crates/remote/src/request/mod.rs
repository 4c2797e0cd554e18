//! Requests as endpoints take them, and which of their fields an endpoint refuses.

mod body;
mod count;
mod images;
mod model_quirks;

pub(crate) use body::{body, matters, refused_field, refuses_images};
pub(crate) use count::estimate;
pub(crate) use images::data_urls;
pub(crate) use model_quirks::ModelQuirks;
