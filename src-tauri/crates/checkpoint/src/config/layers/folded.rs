//! Factors that conversions multiply into matrices, and additions that they add.

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

/// An adapter of low rank among the weights, in PEFT's names: original files keep a matrix as `base_layer` beside
/// `lora_A` and `lora_B` of several adapters, and conversions have the sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergedAdapter {
    /// The name of the adapter, after which others are left out.
    pub name: &'static str,
    /// The factor of its products.
    pub scale: f32,
}

/// Factors of the rows of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub enum RowFactors {
    /// One for all.
    All(f32),
    /// For so many rows after those before them.
    Spans(Vec<(u64, f32)>),
}
