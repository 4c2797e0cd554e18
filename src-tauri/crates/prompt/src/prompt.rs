//! A rendered conversation.

use std::ops::Range;

/// A rendered conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The text as a user reads it; control tokens in it may have been typed by one.
    pub text: String,
    /// The token ids, in which typed text is never a control token.
    pub ids: Vec<u32>,
    /// The places of its images in the ids, in their order.
    pub images: Vec<ImageSpan>,
}

/// The place of an image in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpan {
    /// The full run of ids, the marks of the run included.
    pub range: Range<usize>,
    /// The ids in it that take features, in the order of the features. Empty if the model attends to the features
    /// separately.
    pub features: Vec<Range<usize>>,
    /// The index of the image in the conversation, from 0.
    pub image: usize,
}
