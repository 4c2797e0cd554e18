//! The size of passages.

/// The size of passages, in the unit of `count`.
#[derive(Clone, Copy)]
pub struct Size<'a> {
    /// The largest passage; at least 1.
    pub most: usize,
    /// How much a piece of a cut paragraph repeats of the one before; half of `most` at most.
    pub overlap: usize,
    /// The size of a text, such as its number of tokens. It grows with the text.
    pub count: &'a (dyn Fn(&str) -> usize + Sync),
}
