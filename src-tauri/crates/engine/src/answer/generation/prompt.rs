//! The prompt of an answer and how far it was prepared.

use std::rc::Rc;
use std::time::Instant;

use crate::sequence::prefix::ImageKey;
use crate::sequence::PromptImages;

/// The prompt of an answer, with the answer prefix that follows it.
pub struct PromptReading {
    /// The images of the prompt, if there are any, and their keys in the prefix cache.
    pub images: Option<(Rc<PromptImages>, Vec<ImageKey>)>,
    /// The image that is being encoded, or was last.
    pub encoding_image: Option<usize>,
    /// The number of tokens of the prompt alone.
    pub tokens: usize,
    /// The number of tokens of the prompt and of the answer prefix.
    pub prefilled: usize,
    /// The number of tokens that were in the prefix cache.
    pub cached: usize,
    /// The positions at which prefill stops for a copy, in rising order.
    pub boundaries: Vec<usize>,
    /// The time of the last chunk, or of admission.
    pub last_chunk: Instant,
}

impl PromptReading {
    /// The keys of its images.
    pub fn keys(&self) -> &[ImageKey] {
        self.images.as_ref().map_or(&[], |(_, keys)| keys)
    }
}
