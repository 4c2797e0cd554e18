//! Images: from the bytes of a file to the numbers that a model's tower takes. Pure: no MLX, network or database;
//! every limit on hostile files stands here, and is checked before anything is unfolded.

mod decode;
mod decoded_image;
mod error;
mod gif;
mod heic;
mod kind;
mod metadata;
mod pixels;
mod preprocess;
mod raster;
mod resize;
mod svg;
mod svg_cost;
mod svg_references;
mod thumbnail;

pub use decode::{decode, measure, Measured, TASKS};
pub use decoded_image::DecodedImage;
pub use error::{Error, Result};
pub use kind::Kind;
pub use metadata::strip_metadata;
pub use preprocess::{preprocess, ViewPixels};
pub use raster::MAX_BYTES;
pub use resize::resize;
pub use thumbnail::thumbnail;
