//! Limits on documents.

/// The largest file that is read, in bytes. Most of a PDF of this size is images, which are never decoded.
pub const MAX_BYTES: usize = 50_000_000;

/// The longest text that a document may have, in bytes: more than the context of any model holds.
pub const MAX_TEXT: usize = 10_000_000;
