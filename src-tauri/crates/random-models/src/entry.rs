//! The tensors of a checkpoint, and the size of its vocabulary.

/// The end of the tokenizer's words, and the start of the control tokens of images.
pub(crate) const WORDS: u32 = 1100;

/// A tensor of a checkpoint.
pub(crate) struct Entry {
    pub name: String,
    pub shape: Vec<u64>,
    pub kind: Kind,
}

/// The contents of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Projections and tables, quantized if the shape is: the last axis are the inputs.
    Matrix,
    /// A matrix that checkpoints keep in 16 bits.
    Wide,
    /// Factors around 1.
    Factors,
    /// Small numbers around 0.
    Offsets,
    /// This number.
    Constant(f32),
}
