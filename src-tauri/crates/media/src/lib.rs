//! Pictures: from the bytes of a file to the numbers that a model's tower takes. Pure: no MLX, network or database; every limit on hostile files stands
//! here, and is checked before anything is unfolded.

mod decode;
mod error;
mod measure;
mod metadata;
mod preprocess;
mod thumbnail;

pub use decode::{decode, Picture};
pub use error::{Error, Result};
pub use measure::{measure, Kind, Measured};
pub use metadata::strip_metadata;
pub use preprocess::{preprocess, ViewPixels};
pub use thumbnail::thumbnail;
