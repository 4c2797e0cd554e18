//! The parts of a model as its `config.json` describes them: layers, positions and quantization, each with its checks.

pub(crate) mod activation;
pub mod decoder;
mod decoder_cost;
pub mod encoder;
mod fields;
pub mod gemma4;
pub mod head;
mod layers;
pub(crate) mod limits;
mod quantization;
pub mod rope;

pub use decoder::DecoderConfig;
pub use encoder::EncoderConfig;
pub(crate) use fields::Fields;
pub use gemma4::Gemma4Config;
pub use head::HeadConfig;
pub use layers::{mla, moe};
pub use quantization::{Mode, Quantization};

/// The shapes of a model by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Family {
    /// Gemma 4, its text part.
    Gemma4(Gemma4Config),
    /// Any family that the parametric decoder covers.
    Decoder(Box<DecoderConfig>),
    /// BERT and its kin, which make embeddings.
    Encoder(Box<EncoderConfig>),
    /// A head that drafts for another model.
    Head(Box<HeadConfig>),
}

impl Family {
    /// The tokens that the context holds if the config says `written`: ropes that grow with the sequence are written
    /// down with the context they start from.
    pub(crate) fn context(&self, written: u32) -> u32 {
        let factor = match self {
            Self::Encoder(encoder) => return encoder.context(),
            Self::Gemma4(_) | Self::Head(_) => None,
            Self::Decoder(decoder) => decoder
                .ropes
                .iter()
                .find_map(|rope| rope.dynamic.map(|dynamic| dynamic.factor)),
        };
        let stretched = (f64::from(written) * factor.unwrap_or(1.0)) as u32;
        match self {
            Self::Decoder(decoder) => stretched.min(decoder.most_positions.unwrap_or(stretched)),
            Self::Gemma4(_) | Self::Encoder(_) | Self::Head(_) => stretched,
        }
    }

    /// True if a position sees what comes after it, so that the model can only make embeddings.
    pub(crate) fn is_bidirectional(&self) -> bool {
        match self {
            Self::Gemma4(_) | Self::Head(_) => false,
            Self::Decoder(decoder) => decoder.bidirectional,
            Self::Encoder(_) => true,
        }
    }

    /// A window that nothing can fall out of is none, and its cache need not be kept as a ring.
    pub(crate) fn drop_windows(&mut self, context: u32) {
        if let Self::Decoder(decoder) = self {
            for attention in decoder.attention() {
                attention.window = attention.window.filter(|window| *window < context);
            }
        }
    }
}
