//! An image of a prompt before it is encoded.

use std::ops::Range;
use std::sync::Arc;

use checkpoint::ImagePlan;
use media::ViewPixels;
use protocol::ImageDetail;
use tokio::sync::oneshot;

use crate::error::Result;

/// The source of the pixels of an image's views.
#[derive(Clone)]
pub enum ImageViews {
    /// They are there.
    #[cfg(feature = "bench")]
    Ready(Arc<Vec<ViewPixels>>),
    /// They are prepared on a thread that this starts, if the image has to be encoded: most images of a chat were read
    /// in an earlier turn.
    Prepare(Arc<dyn Fn() -> PendingViews + Send + Sync>),
}

/// Views that are being prepared on another thread.
pub type PendingViews = oneshot::Receiver<Result<Vec<ViewPixels>>>;

/// An image of a prompt, as it is handed to the engine's thread.
#[derive(Clone)]
pub struct PromptImage {
    /// All of its tokens, marks included.
    pub run: Range<usize>,
    /// The positions of tokens that take features, in order.
    pub places: Vec<usize>,
    /// How it goes through the vision encoder.
    pub plan: ImagePlan,
    /// The details that the user could choose instead, the closest first, with the patches of its largest view at each.
    pub less_detail: Vec<(ImageDetail, u64)>,
    /// The numbers of its views.
    pub views: ImageViews,
    /// A hash of its file, of what is done with it and of how: images with the same one give the same features.
    pub hash: [u8; 32],
}

impl PromptImage {
    /// True if the model attends to its embeddings next to the prompt, from its token on.
    pub fn beside(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
pub mod tests {
    use checkpoint::View;

    use super::*;

    pub fn image(start: usize, rows: u32, columns: u32) -> PromptImage {
        let features = rows * columns;
        let view = View {
            width: 1,
            height: 1,
            patches: (rows, columns),
            tokens: (rows, columns),
            features,
        };
        PromptImage {
            run: start - 1..start + features as usize + 1,
            places: (start..start + features as usize).collect(),
            plan: ImagePlan {
                steps: Vec::new(),
                resized: (1, 1),
                views: vec![view],
                tiles: None,
                whole: false,
                joined: None,
            },
            less_detail: Vec::new(),
            views: ImageViews::Ready(Arc::default()),
            hash: [0; 32],
        }
    }
}
