//! Errors of a schema.

use protocol::ErrorCode;

/// An error of this room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A schema that cannot be honored; the reason names the keyword.
    #[error("this JSON schema cannot be honoured: {0}")]
    Schema(String),
    /// The model has no token that ends an answer.
    #[error("this model has no token that ends an answer, so it cannot keep to a JSON schema")]
    NoStopToken,
    /// The text does not follow the schema, which the beginning of a continued answer need not.
    #[error("what was written does not follow the JSON schema, so the answer cannot go on; ask again")]
    NotFollowed,
    /// The grammar grew beyond its limits.
    #[error("the JSON schema became too complex in the middle of the answer: {0}; what was shown so far is kept, simplify the schema")]
    TooComplex(String),
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        protocol::Error::new(ErrorCode::BadRequest, error.to_string())
    }
}
