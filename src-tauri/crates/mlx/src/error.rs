//! Errors of MLX.

/// An error of a computation or of the device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// MLX refused or failed; its own message.
    #[error("{0}")]
    Failed(String),
    /// The device or the system lacks this.
    #[error("{0} is not supported here")]
    Unsupported(String),
}

/// A result of MLX.
pub type Result<T> = std::result::Result<T, Error>;

impl From<mlx_rs::error::Exception> for Error {
    fn from(error: mlx_rs::error::Exception) -> Self {
        Self::Failed(error.what().to_owned())
    }
}
