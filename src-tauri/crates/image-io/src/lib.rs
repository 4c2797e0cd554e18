//! Images decoded by macOS (ImageIO): HEIC and AVIF, upright and over white. On other systems there is nothing here.

#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "macos")]
pub use macos::{decode, size, Decoded};
