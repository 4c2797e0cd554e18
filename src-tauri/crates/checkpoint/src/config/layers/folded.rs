//! Factors that conversions multiply into matrices.

/// Factors that a conversion has multiplied into its matrices. An original file is recognized by its untransposed
/// convolutions.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldedFactors {
    /// Of embeddings.
    pub embedding: f32,
    /// Of logits. Conversions have it in `lm_head`, if there is one.
    pub logits: f32,
    /// Of other matrices, by the ends of their paths.
    pub matrices: Vec<(&'static str, RowFactors)>,
}

/// Factors of the rows of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub enum RowFactors {
    /// One for all.
    All(f32),
    /// For so many rows after those before them.
    Spans(Vec<(u64, f32)>),
}
