//! The input of a forward pass: tokens, and image embeddings in place of some of them.

use std::ops::Range;

use mlx::ops::concatenate;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::layers::Position;
use crate::models::vision::ImageEmbeddings;

/// The tokens of a pass. Those of images stand in chunks of one sequence alone; steps of several sequences read text.
pub struct Input<'a> {
    /// The tokens `[rows]`: the next ones of one sequence, or the next one of each of several.
    pub ids: &'a Tensor,
    /// Images of which tokens are read.
    pub images: &'a [ChunkImage],
    /// By how much the position of each sequence's next token differs from the number of tokens before it; empty if by
    /// nothing.
    pub deltas: &'a [i32],
    /// The position of each token, if that is more than a number (multimodal positions).
    pub positions: Option<&'a [Position]>,
    /// The rows of a prompt that all see each other (PaliGemma).
    pub prompt: Option<Range<usize>>,
    /// The rows of images, their marks included.
    pub of_images: &'a [Range<usize>],
}

/// The part of an image that is read in a chunk.
pub struct ChunkImage {
    /// The embeddings of the complete image.
    pub features: std::rc::Rc<ImageEmbeddings>,
    /// The first feature that is read, and the rows of the chunk that take it and those after it.
    pub first: usize,
    /// The rows, in rising order.
    pub rows: Vec<usize>,
    /// True if the features are added to the embeddings of their rows (Molmo).
    pub added: bool,
    /// From the first to after the last row of its features, if they see each other.
    pub sees: Option<Range<usize>>,
    /// The row from which on it is seen, if layers attend to its embeddings next to the tokens (Llama 3.2 Vision).
    pub beside: Option<usize>,
}

impl<'a> Input<'a> {
    /// Tokens of text, at positions that are as many as the tokens before them.
    pub fn text(ids: &'a Tensor) -> Self {
        Self {
            ids,
            images: &[],
            deltas: &[],
            positions: None,
            prompt: None,
            of_images: &[],
        }
    }

    /// The position of the next token of sequence `index`, which has read `offset` tokens.
    pub fn position(&self, index: usize, offset: usize) -> usize {
        match self.deltas.get(index) {
            Some(delta) => offset.saturating_add_signed(*delta as isize),
            None => offset,
        }
    }

    /// `h` `[rows, hidden]` with the features of images in the places that they take.
    pub fn place(&self, h: Tensor) -> Result<Tensor> {
        if self.images.iter().all(|image| image.rows.is_empty()) {
            return Ok(h);
        }
        if self.images.iter().any(|image| image.added) {
            let zeros = Tensor::zeros(&[1, h.dim(1)], h.dtype())?;
            let features = self.mix(&zeros, vec![0; self.ids.size()], |image| {
                Some(&image.features.embeddings)
            })?;
            return h.add(&features);
        }
        let own: Vec<i32> = (0..h.dim(0)).collect();
        self.mix(&h, own, |image| Some(&image.features.embeddings))
    }

    /// The summand for the states after layer `layer`: `[rows, hidden]`, zeros at rows of text. `None` if there is
    /// none.
    pub fn deep(&self, layer: usize) -> Result<Option<Tensor>> {
        let Some(like) = self.images.iter().find_map(|image| image.features.after(layer)) else {
            return Ok(None);
        };
        let zeros = Tensor::zeros(&[1, like.dim(1)], like.dtype())?;
        self.mix(&zeros, vec![0; self.ids.size()], |image| image.features.after(layer))
            .map(Some)
    }

    /// Rows of `base` by `rows`, but where an image has features, these.
    fn mix(&self, base: &Tensor, mut rows: Vec<i32>, of: impl Fn(&ChunkImage) -> Option<&Tensor>) -> Result<Tensor> {
        let (mut parts, mut end) = (vec![base.clone()], base.dim(0));
        for image in self.images {
            let Some(features) = of(image) else { continue };
            let (first, count) = (image.first as i32, image.rows.len() as i32);
            parts.push(features.slice(0, first, first + count)?.astype(base.dtype())?);
            for (index, row) in (end..).zip(&image.rows) {
                rows[*row] = index;
            }
            end += count;
        }
        let all = concatenate(&parts.iter().collect::<Vec<_>>(), 0)?;
        all.take(&Tensor::from_i32(&rows, &[rows.len() as i32]), 0)
    }

    /// 1 for rows of text and 0 for those of images, `[rows]`; `None` if all are text.
    pub fn is_text(&self) -> Option<Tensor> {
        if self.images.is_empty() {
            return None;
        }
        let mut text = vec![1; self.ids.size()];
        self.images
            .iter()
            .flat_map(|image| &image.rows)
            .for_each(|row| text[*row] = 0);
        Some(Tensor::from_i32(&text, &[text.len() as i32]))
    }

    /// For each row the last one of the chunk that it sees, if some see rows that come after them.
    pub fn last_seen(&self) -> Option<Vec<i32>> {
        let of_images = self.images.iter().filter_map(|image| image.sees.clone());
        let mut together = of_images.chain(self.prompt.clone()).peekable();
        together.peek()?;
        let mut last: Vec<i32> = (0..self.ids.size() as i32).collect();
        for rows in together {
            let end = rows.end as i32 - 1;
            last[rows].fill(end);
        }
        Some(last)
    }
}
