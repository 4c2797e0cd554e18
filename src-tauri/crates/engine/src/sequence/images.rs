//! The images of a prompt: the places of their tokens, and their embeddings once they are encoded.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use checkpoint::VisionConfig;
use media::ViewPixels;
use mlx::tensor::Tensor;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::layers::Position;
use crate::models::vision::ImageEmbeddings;
use crate::models::{ChunkImage, Input, Model};
use crate::sequence::positions::ImagePositions;
use crate::sequence::prefix::ImageKey;
use crate::sequence::prompt_image::{ImageViews, PendingViews, PromptImage};

/// One of the images, and its features once they are there.
struct PlacedImage {
    image: PromptImage,
    /// Its views, while they are being prepared.
    pending: RefCell<Option<PendingViews>>,
    features: OnceCell<Rc<ImageEmbeddings>>,
}

impl From<PromptImage> for PlacedImage {
    fn from(image: PromptImage) -> Self {
        Self {
            image,
            pending: RefCell::default(),
            features: OnceCell::new(),
        }
    }
}

/// All images of a prompt, in order.
pub struct PromptImages {
    images: Vec<PlacedImage>,
    /// True if tokens of an image see each other, so that it is read at once.
    bidirectional: bool,
    /// True if the marks that open it take part.
    marks_look_ahead: bool,
    /// True if features are added to the embeddings of their tokens.
    added: bool,
    /// The tokens of the prompt, if all of them see each other.
    whole_prompt: Option<usize>,
    /// The position of each token; `None` if positions are plain numbers.
    positions: Option<ImagePositions>,
}

impl PromptImages {
    /// Images that `model` will read, in a prompt of so many tokens.
    ///
    /// # Errors
    /// If they do not lie one after another, or have other features than places.
    pub fn new(mut images: Vec<PromptImage>, model: &Model, vision: &VisionConfig, prompt: usize) -> Result<Self> {
        let marks = vision.marks_after();
        let mut end = 0;
        for image in &mut images {
            let inside = image.places.iter().all(|place| image.run.contains(place));
            let rising = image.places.is_sorted_by(|a, b| a < b);
            if image.run.start < end || !inside || !rising || image.places.len() != image.plan.tokens() {
                return Err(Error::BadRequest(format!(
                    "an image's {} features have {} places at tokens {:?}",
                    image.plan.tokens(),
                    image.places.len(),
                    image.run
                )));
            }
            end = image.run.end;
            let after = image.places.last().map_or(end, |last| last + 1);
            image.places.extend((after..end).take(marks));
        }
        let positions = model
            .multimodal_rope()
            .map(|kind| ImagePositions::new(kind, &images))
            .transpose()?;
        Ok(Self {
            images: images.into_iter().map(PlacedImage::from).collect(),
            bidirectional: vision.is_bidirectional(),
            marks_look_ahead: vision.marks_look_ahead(),
            added: vision.adds_to_tokens(),
            whole_prompt: vision.reads_whole_prompts().then_some(prompt),
            positions,
        })
    }

    /// True if all tokens of the prompt see each other.
    pub fn reads_whole_prompt(&self) -> bool {
        self.whole_prompt.is_some()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// An image.
    pub fn image(&self, index: usize) -> &PromptImage {
        &self.images[index].image
    }

    /// The first image that the tokens from `from` up to `to` belong to and that is not encoded yet.
    pub fn unencoded(&self, from: usize, to: usize) -> Option<usize> {
        self.images.iter().position(|placed| {
            let needed = match placed.image.beside() {
                true => (from..to).contains(&placed.image.run.start),
                false => placed.image.places.iter().any(|place| (from..to).contains(place)),
            };
            needed && placed.features.get().is_none()
        })
    }

    /// The views of an image; `None` if they are still being prepared.
    ///
    /// # Errors
    /// If they cannot be prepared.
    pub fn views(&self, index: usize) -> Result<Option<Arc<Vec<ViewPixels>>>> {
        let PlacedImage { image, pending, .. } = &self.images[index];
        // One variant without the feature.
        #[cfg_attr(not(feature = "bench"), allow(clippy::infallible_destructuring_match))]
        let start = match &image.views {
            #[cfg(feature = "bench")]
            ImageViews::Ready(views) => return Ok(Some(views.clone())),
            ImageViews::Prepare(start) => start,
        };
        let mut pending = pending.borrow_mut();
        let made = pending.get_or_insert_with(|| start()).try_recv();
        if matches!(made, Err(oneshot::error::TryRecvError::Empty)) {
            return Ok(None);
        }
        *pending = None;
        // The thread that prepared them has ended.
        Ok(Some(Arc::new(made.unwrap_or(Err(Error::WorkerGone))?)))
    }

    /// Sets the embeddings of an image.
    pub fn set_embeddings(&self, index: usize, features: Rc<ImageEmbeddings>) {
        // Looked at twice, it is the same.
        let _ = self.images[index].features.set(features);
    }

    /// The tokens of all images, marks included, out of those of the prompt.
    pub fn tokens<'a>(&'a self, prompt: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let runs = self
            .images
            .iter()
            .filter_map(|placed| prompt.get(placed.image.run.clone()));
        runs.flatten().copied()
    }

    /// How far to read from `from` if `to` was meant: no image is cut whose tokens see each other, nor such a prompt.
    pub fn chunk_end(&self, from: usize, to: usize) -> usize {
        if let Some(prompt) = self.whole_prompt.filter(|prompt| from < *prompt) {
            return to.max(prompt);
        }
        let runs = self
            .images
            .iter()
            .filter(|_| self.bidirectional)
            .map(|placed| &placed.image.run);
        let mut cut = runs.filter(|run| run.start < to && to < run.end);
        match cut.next() {
            Some(run) if run.start > from => run.start,
            Some(run) => run.end,
            None => to,
        }
    }

    /// The keys that distinguish prompts with other images.
    pub fn keys(&self) -> Vec<ImageKey> {
        let key = |placed: &PlacedImage| ImageKey {
            run: placed.image.run.clone(),
            hash: placed.image.hash,
            whole: self.bidirectional,
        };
        // A prompt that sees itself is common as a whole or not at all.
        let whole = self.whole_prompt.map(|prompt| ImageKey {
            run: 0..prompt,
            hash: [0; 32],
            whole: true,
        });
        whole.into_iter().chain(self.images.iter().map(key)).collect()
    }

    /// By how much the position of the token after `read` others differs from that number.
    pub fn delta(&self, read: usize) -> i32 {
        self.positions.as_ref().map_or(0, |positions| positions.delta(read))
    }

    /// The images and positions of the tokens from `from` up to `to`.
    ///
    /// # Errors
    /// If one of the images is not encoded yet.
    fn chunk(&self, from: usize, to: usize) -> Result<Chunk> {
        let mut images = Vec::new();
        for PlacedImage { image, features, .. } in &self.images {
            let first = image.places.partition_point(|place| *place < from);
            let end = image.places.partition_point(|place| *place < to);
            let beside = (image.beside() && (from..to).contains(&image.run.start)).then(|| image.run.start - from);
            if first == end && beside.is_none() {
                continue;
            }
            let rows: Vec<usize> = image.places[first..end].iter().map(|place| place - from).collect();
            let sees = match (self.bidirectional, &rows[..]) {
                (true, [_, .., last]) if self.marks_look_ahead => Some(image.run.start.saturating_sub(from)..last + 1),
                (true, [first, .., last]) => Some(*first..last + 1),
                _ => None,
            };
            let features = features
                .get()
                .ok_or_else(|| Error::BadRequest("an image was read before it was looked at".into()))?;
            images.push(ChunkImage {
                features: features.clone(),
                first,
                rows,
                added: self.added,
                sees,
                beside,
            });
        }
        let positions = self.positions.as_ref().filter(|_| !images.is_empty());
        let runs = self.images.iter().map(|placed| &placed.image.run);
        let shared = runs.map(|run| run.start.max(from)..run.end.min(to));
        let inside = shared.filter(|rows| !rows.is_empty());
        Ok(Chunk {
            of_images: inside.map(|rows| rows.start - from..rows.end - from).collect(),
            images,
            delta: self.delta(from),
            prompt: self
                .whole_prompt
                .filter(|prompt| from < *prompt)
                .map(|prompt| 0..prompt.min(to) - from),
            positions: positions.map(|positions| positions.between(from, to)),
        })
    }
}

/// The images and positions that are read with the tokens of a chunk.
#[derive(Default)]
pub struct Chunk {
    images: Vec<ChunkImage>,
    /// The rows of images, their marks included, of which there may be some without features.
    of_images: Vec<Range<usize>>,
    delta: i32,
    /// The rows of a prompt that sees itself.
    prompt: Option<Range<usize>>,
    positions: Option<Vec<Position>>,
}

impl Chunk {
    /// That of the tokens from `from` up to `to` of a sequence that may have images.
    pub fn of(images: Option<&PromptImages>, from: usize, to: usize) -> Result<Self> {
        images.map_or_else(|| Ok(Self::default()), |images| images.chunk(from, to))
    }

    /// All of it, with the tokens `[rows]`.
    pub fn input<'a>(&'a self, ids: &'a Tensor) -> Input<'a> {
        Input {
            ids,
            images: &self.images,
            deltas: match self.delta {
                0 => &[],
                _ => std::slice::from_ref(&self.delta),
            },
            positions: self.positions.as_deref(),
            prompt: self.prompt.clone(),
            of_images: &self.of_images,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sequence::prompt_image::tests::image;

    fn placed(bidirectional: bool) -> PromptImages {
        PromptImages {
            images: [image(2, 2, 3), image(10, 1, 4)].map(PlacedImage::from).into(),
            bidirectional,
            marks_look_ahead: false,
            added: false,
            whole_prompt: None,
            positions: None,
        }
    }

    #[test]
    fn an_image_that_sees_itself_is_not_cut() {
        let images = placed(true);
        assert_eq!(
            [(0, 1), (0, 5), (1, 5), (1, 9), (9, 12), (7, 12)].map(|(from, to)| images.chunk_end(from, to)),
            [1, 1, 9, 9, 15, 9]
        );
        assert_eq!(placed(false).chunk_end(1, 5), 5);
    }

    #[test]
    fn a_prompt_that_sees_itself_is_read_and_kept_as_a_whole() {
        let images = PromptImages {
            whole_prompt: Some(20),
            ..placed(false)
        };
        assert_eq!(
            [(0, 1), (0, 19), (0, 25), (20, 22)].map(|(from, to)| images.chunk_end(from, to)),
            [20, 20, 25, 22]
        );
        assert_eq!(
            images.keys().first().map(|key| (key.run.clone(), key.whole)),
            Some((0..20, true))
        );
        let chunk = PromptImages {
            images: Vec::new(),
            ..images
        };
        assert_eq!(chunk.chunk(0, 24).unwrap().prompt, Some(0..20));
        assert_eq!(chunk.chunk(20, 24).unwrap().prompt, None);
    }

    #[test]
    fn images_are_looked_at_before_their_first_token_is_read() {
        let images = placed(false);
        assert_eq!(
            (images.unencoded(0, 2), images.unencoded(0, 3), images.unencoded(8, 11)),
            (None, Some(0), Some(1))
        );
        assert!(images.chunk(0, 2).is_ok() && images.chunk(0, 3).is_err());
        // The marks before and after an image belong to it.
        let of_images = images.chunk(0, 2).unwrap().of_images;
        assert_eq!((of_images.len(), &of_images[0]), (1, &(1..2)));
        assert!(images.chunk(0, 1).unwrap().of_images.is_empty());
    }
}
