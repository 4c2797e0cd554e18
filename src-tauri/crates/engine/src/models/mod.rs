//! Models: the parametric decoder, the families that need more than it can describe, and encoders.

mod decoder;
mod draft_head;
pub mod embedding_head;
mod encoder;
mod gemma4;
mod input;
mod pass;
pub mod vision;

use checkpoint::{Family, ModelConfig};
use mlx::ops::ids_tensor;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::kernels::kernels;
use crate::layers::MultimodalRope;
use crate::weights::Weights;
pub use draft_head::DraftHead;
pub use embedding_head::EmbeddingHead;
pub use gemma4::assistant::LastKeys;
pub use input::{ChunkImage, Input};
pub use pass::{spans, Pass};

/// A model of any family.
#[derive(Parameters)]
pub enum Model {
    /// Gemma 4 and Gemma 3n, text.
    Gemma4(Box<gemma4::Gemma4>),
    /// Any family that the parametric decoder covers.
    Decoder(Box<decoder::Decoder>),
    /// BERT and its kin, which make embeddings.
    Encoder(Box<encoder::Encoder>),
    /// A head, which drafts for a model and does nothing alone.
    Head(DraftHead),
}

impl Model {
    /// Builds the model and makes every tensor of it resident.
    pub fn load(config: &ModelConfig, weights: &mut Weights<'_>) -> Result<Self> {
        match &config.family {
            Family::Gemma4(config) => Ok(Self::Gemma4(Box::new(gemma4::Gemma4::load(config, weights)?))),
            Family::Decoder(config) => Ok(Self::Decoder(Box::new(decoder::Decoder::load(config, weights)?))),
            Family::Encoder(config) => Ok(Self::Encoder(Box::new(encoder::Encoder::load(config, weights)?))),
            Family::Head(config) => Ok(Self::Head(DraftHead::load(config, weights)?)),
        }
    }

    /// Empty caches for one sequence.
    pub fn caches(&self) -> Vec<Cache> {
        match self {
            Self::Gemma4(model) => model.caches(),
            Self::Decoder(model) => model.caches(),
            Self::Encoder(_) => Vec::new(),
            Self::Head(head) => head.caches(),
        }
    }

    /// The head, if it is one.
    pub fn head(&self) -> Option<&DraftHead> {
        match self {
            Self::Head(head) => Some(head),
            Self::Gemma4(_) | Self::Decoder(_) | Self::Encoder(_) => None,
        }
    }

    /// Reads the tokens `[rows]` that come next: those of one sequence, or one of each of several, whose caches are
    /// given in order. The result are the states `[rows, width]` before the output layer.
    pub fn forward(&self, input: &Input<'_>, sequences: &mut [&mut [Cache]]) -> Result<Tensor> {
        debug_assert!(sequences.len() == 1 || sequences.len() == input.ids.size());
        // They may write the caches, and MLX does not know of them.
        kernels().wait_for_recorded();
        match self {
            Self::Gemma4(model) => Ok(model.forward(input, sequences)?),
            Self::Decoder(model) => Ok(model.forward(input, sequences)?),
            Self::Encoder(_) => Err(Error::NotForChat),
            Self::Head(_) => Err(Error::DraftsAlone),
        }
    }

    /// The logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gemma4(model) => Ok(model.logits(states)?),
            Self::Decoder(model) => model.logits(states),
            Self::Encoder(_) => Err(Error::NotForChat),
            Self::Head(_) => Err(Error::DraftsAlone),
        }
    }

    /// The stream before the first layer of tokens `[rows]`, for a head that drafts; `[rows, width]`.
    pub fn embedded(&self, ids: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gemma4(model) => Ok(model.embedded(ids)?),
            Self::Decoder(model) => Ok(model.embedded(ids)?),
            Self::Encoder(_) | Self::Head(_) => Err(Error::NoHead),
        }
    }

    /// States `[rows, width]` after the last layer, normed, for a head that drafts.
    pub fn normed(&self, states: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gemma4(model) => Ok(model.normed(states)?),
            Self::Decoder(model) => Ok(model.normed(states)?),
            Self::Encoder(_) | Self::Head(_) => Err(Error::NoHead),
        }
    }

    /// The keys and values of a sequence with these caches that an assistant attends to.
    pub fn last_keys(&self, caches: &[Cache]) -> Result<LastKeys> {
        match self {
            Self::Gemma4(model) => Ok(model.last_keys(caches)?),
            Self::Decoder(_) | Self::Encoder(_) | Self::Head(_) => Err(Error::NoHead),
        }
    }

    /// The logits `[length, vocabulary]` of normed states, for a head that drafts.
    pub fn output(&self, normed: &Tensor) -> Result<Tensor> {
        match self {
            Self::Decoder(model) => model.output(normed),
            Self::Gemma4(_) | Self::Encoder(_) | Self::Head(_) => Err(Error::NoHead),
        }
    }

    /// True if a position gives the same result however many come with it; false if the base of its rotary positions
    /// grows with the sequence.
    pub fn reads_chunks_alike(&self) -> bool {
        match self {
            Self::Gemma4(_) | Self::Encoder(_) | Self::Head(_) => true,
            Self::Decoder(model) => model.reads_chunks_alike(),
        }
    }

    /// Width of the states that it reads, and that a vision encoder makes.
    pub fn hidden_size(&self) -> u32 {
        match self {
            Self::Gemma4(model) => model.hidden_size(),
            Self::Decoder(model) => model.hidden_size(),
            Self::Encoder(_) => 0,
            Self::Head(head) => head.hidden_size(),
        }
    }

    /// The positions of an image's tokens, if they depend on more than the number of tokens before them (multimodal
    /// positions).
    pub fn multimodal_rope(&self) -> Option<MultimodalRope> {
        match self {
            Self::Gemma4(_) | Self::Encoder(_) | Self::Head(_) => None,
            Self::Decoder(model) => model.multimodal_rope(),
        }
    }

    /// How many tokens it reads: those of its vocabulary, and such as only stand for images.
    pub fn readable(&self) -> u32 {
        match self {
            Self::Decoder(model) => model.readable(),
            Self::Gemma4(_) | Self::Encoder(_) | Self::Head(_) => self.vocabulary(),
        }
    }

    /// Ids as a tensor `[ids]`: the one way of an id into a model. MLX checks no index, so a row that the embedding does
    /// not have would be read from whatever follows it in memory.
    ///
    /// # Errors
    /// [`Error::BrokenFile`] for an id beyond the embedding: only files of the model itself make one here, such as the
    /// tokens that end a thought.
    pub fn ids(&self, ids: &[u32]) -> Result<Tensor> {
        match self.unreadable(ids) {
            Some(id) => Err(Error::BrokenFile {
                file: "tokenizer.json".into(),
                reason: format!(
                    "it makes the token {id}, and the model knows {} tokens",
                    self.readable()
                ),
            }),
            None => Ok(ids_tensor(ids)),
        }
    }

    /// The first of these ids that the embedding has no row for.
    pub fn unreadable(&self, ids: &[u32]) -> Option<u32> {
        ids.iter().copied().find(|id| *id >= self.readable())
    }

    /// The number of tokens of its vocabulary.
    pub fn vocabulary(&self) -> u32 {
        match self {
            Self::Gemma4(model) => model.vocabulary(),
            Self::Decoder(model) => model.vocabulary(),
            Self::Encoder(model) => model.vocabulary(),
            Self::Head(head) => head.vocabulary(),
        }
    }

    /// True if a text has to be read at once, because its tokens see the tokens after them.
    pub fn is_bidirectional(&self) -> bool {
        match self {
            Self::Gemma4(_) | Self::Head(_) => false,
            Self::Decoder(model) => model.is_bidirectional(),
            Self::Encoder(_) => true,
        }
    }

    /// True if several texts may go through it in one pass.
    pub fn packs(&self) -> bool {
        match self {
            Self::Gemma4(_) | Self::Head(_) => false,
            Self::Decoder(model) => model.packs(),
            Self::Encoder(_) => true,
        }
    }

    /// How many layers a pass goes through.
    pub fn layers(&self) -> usize {
        match self {
            Self::Gemma4(_) | Self::Head(_) => 0,
            Self::Decoder(model) => model.layers(),
            Self::Encoder(model) => model.layers(),
        }
    }

    /// Begins to read texts of these lengths, whose tokens are `ids` one after another; several only if it
    /// [packs](Self::packs). `types` says of which text of a pair each token is, for encoders alone.
    pub fn begin_pass(&self, ids: &[u32], types: &[u32], lengths: &[usize]) -> Result<Pass> {
        match self {
            Self::Gemma4(_) | Self::Head(_) => Err(Error::NotForEmbeddings),
            Self::Decoder(model) => Ok(model.begin(ids, lengths)?),
            Self::Encoder(model) => Ok(model.begin(ids, types, lengths)?),
        }
    }

    /// Takes a pass through the next `count` layers; nothing is evaluated.
    pub fn advance_pass(&self, pass: &mut Pass, count: usize) -> Result<()> {
        match self {
            Self::Gemma4(_) | Self::Head(_) => Err(Error::NotForEmbeddings),
            Self::Decoder(model) => Ok(model.advance(pass, count)?),
            Self::Encoder(model) => Ok(model.advance(pass, count)?),
        }
    }

    /// The states `[rows, width]` that embeddings are made of, from those after the last layer.
    pub fn last_hidden_states(&self, states: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gemma4(_) | Self::Head(_) => Err(Error::NotForEmbeddings),
            Self::Decoder(model) => Ok(model.normed(states)?),
            Self::Encoder(_) => Ok(states.clone()),
        }
    }
}
