//! Search among the embeddings of passages: which vectors point the way a query does.
//!
//! [`Codes`] keeps every vector as it is stored, in halves, and one bit of each number beside it: on which side of the
//! mean it lies. A query walks through all bits, sums its own numbers over those that are set, and compares only the
//! vectors with the largest sums, at least one in a hundred, number by number. A million passages of 384 dimensions
//! have 48 MB of bits, and a query takes 45 ms of processor time, of two threads together, without special
//! instructions; so there is no index that has to be built, stored, or mended when a passage goes. The figures are
//! those of `examples/vectors.rs`.

mod blob;
mod codes;
mod scan;
mod signs;

#[cfg(test)]
mod tests;

pub use blob::{decode, encode};
pub use codes::Codes;

/// A passage's number: the row of SQLite that it is in.
pub type Id = i64;

/// An error of a vector, which is then not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Vectors of two models do not compare.
    #[error("a vector of {found} numbers came where vectors have {expected}")]
    Dimensions {
        /// Numbers of each vector here.
        expected: usize,
        /// Numbers of this one, or of what its bytes hold.
        found: usize,
    },
    /// An infinity or a NaN, which has no direction.
    #[error("a vector has numbers that are not finite")]
    NotFinite,
    /// Zeros alone, which have no direction.
    #[error("a vector has only zeros")]
    Zero,
    /// The passage has its vector already.
    #[error("passage {0} has a vector already")]
    Known(Id),
}
