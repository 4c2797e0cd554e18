//! Norms of the residual stream, and how checkpoints store their factors.

/// Norms. Those of queries and keys are root mean square norms in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormConfig {
    /// The kind of those of the stream.
    pub kind: NormKind,
    /// Added to the mean square or the variance.
    pub eps: f32,
    /// True if the factors are stored as their difference from 1 (Gemma 3).
    pub offset: bool,
    /// True if only the last one has factors (Falcon-OCR).
    pub bare: bool,
    /// True if not even that one has, where the others have none (OLMo 1, nanochat).
    pub bare_end: bool,
    /// The numbers that factors after a mixer and after a network are stored as their difference from, if they are not
    /// those of the others (PLaMo 3).
    pub after_offsets: Option<[f32; 2]>,
    /// The epsilon of those after the parts of a layer, if it is another one (Muse Glimmer).
    pub eps_after: Option<f32>,
    /// True if the factors of the last one are stored as they are, whatever those of the others (Muse Glimmer).
    pub last_as_is: bool,
}

/// The mark by which an original checkpoint is told from one that mlx-lm converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginalMark {
    /// Convolutions that are not transposed (Qwen 3.5).
    Convolutions,
    /// A segment in names of tensors (Step 3.5).
    Segment(&'static str),
}

/// Kinds of norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// By the root of the mean square.
    RootMeanSquare,
    /// By mean and variance (StarCoder 2); before the parts of a layer and after the last one.
    Layer {
        /// True if a bias is added.
        bias: bool,
    },
}

/// The norm of embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingNorm {
    /// By the root of their mean square, without factors (nanochat).
    Bare,
    /// That of the stream, `embed_norm` (RWKV 7).
    OfStream,
}
