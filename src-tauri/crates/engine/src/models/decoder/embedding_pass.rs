//! Reading complete texts with a decoder that makes embeddings: no caches stay, and several texts may share a pass.

use std::cell::RefCell;

use checkpoint::config::decoder::{DecoderConfig, Mixer};
use mlx::ops::{ids_tensor, join};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;
use crate::layers::{MultimodalRope, ResidualStream, Rope};
use crate::models::decoder::positions::Positions;
use crate::models::decoder::step::{Step, StepTokens};
use crate::models::decoder::Decoder;
use crate::models::pass::{mask, Pass};

/// True if several texts may lie one after another: if every mixer is attention whose scores depend on nothing but the
/// distance of two positions.
pub(super) fn packs(config: &DecoderConfig) -> bool {
    let mixes = |mixer: &Mixer| match mixer {
        Mixer::Attention(attention) => {
            let chooses = attention.block_index.is_some() || attention.mean_index.is_some();
            attention.query_scaling.is_none() && !chooses && attention.stripes.is_none()
        }
        _ => false,
    };
    config.layers.iter().all(|layer| mixes(&layer.mixer)) && config.ropes.iter().all(|rope| rope.dynamic.is_none())
}

impl Decoder {
    /// The positions of image tokens, if they depend on more than the number of tokens before them.
    pub fn multimodal_rope(&self) -> Option<MultimodalRope> {
        self.ropes.iter().find_map(Rope::multimodal_rope)
    }

    /// The places `[rows]` of the next `length` positions of each sequence, if they are learned.
    pub(super) fn places(&self, length: usize, sequences: &[&mut [Cache]]) -> Result<Option<Tensor>> {
        let learned = self.embed_positions.as_ref();
        learned
            .map(|learned| learned.places(length, &self.offsets(sequences)))
            .transpose()
    }

    /// True if [`Decoder::begin`] takes several texts.
    pub fn packs(&self) -> bool {
        self.packs
    }

    /// True if attention looks both ways, so that a text has to be read at once.
    pub fn is_bidirectional(&self) -> bool {
        self.bidirectional
    }

    /// The number of its layers, each as often as the states go through it.
    pub fn layers(&self) -> usize {
        self.order.steps()
    }

    /// Begins to read texts of these lengths, whose tokens are `ids` one after another.
    pub fn begin(&self, ids: &[u32], lengths: &[usize]) -> Result<Pass> {
        if self.gains || self.loop_window || self.streams.is_some() || self.cycles.is_some() || self.ngrams.is_some() {
            let reason = "texts read at once by a model whose layers read something again";
            return Err(mlx::Error::Unsupported(reason.into()));
        }
        let masks = self
            .windows
            .iter()
            .map(|(window, _)| mask(lengths, *window, self.bidirectional));
        let places = |learned: &Positions| {
            let texts: Vec<Tensor> = lengths
                .iter()
                .map(|length| learned.places(*length, &[0]))
                .collect::<Result<_>>()?;
            join(&texts, 0)
        };
        let places = self.embed_positions.as_ref().map(places).transpose()?;
        let states = self.embed(&ids_tensor(ids), places.as_ref())?;
        let mut pass = Pass::new(lengths, states, masks.collect());
        if let Some(embedder) = &self.embedder {
            pass.layer_inputs = Some(embedder.inputs(&pass.states)?);
        }
        Ok(pass)
    }

    /// Takes a pass through the next `count` layers; nothing is evaluated.
    pub fn advance(&self, pass: &mut Pass, count: usize) -> Result<()> {
        let rows = pass.rows();
        let step = Step {
            sequences: 1,
            ropes: &self.ropes,
            next: vec![0],
            positions: None,
            rotations: self.ropes.iter().map(|rope| rope.at(0, rows)).collect(),
            masks: pass.masks.clone(),
            chunks: Vec::new(),
            query_scaling: vec![None],
            again: false,
            first_loop: RefCell::default(),
            chosen: RefCell::default(),
            kept: RefCell::default(),
            first_values: RefCell::default(),
            embedded: None,
            tokens: StepTokens::default(),
            layer_inputs: pass.layer_inputs.clone(),
            images: &[],
        };
        let mut stream = ResidualStream::new(pass.states.clone());
        for (index, layer) in self.order.run().skip(pass.layer).take(count) {
            if layer == 0 && index > 0 {
                self.begin_again(&mut stream)?;
            }
            let layer = &self.layers[layer];
            let mut caches = layer.caches(false);
            let caches = &mut caches.iter_mut().collect::<Vec<_>>();
            if layer.forward(&mut stream, &step, &self.residual_add, caches)?.is_some() {
                return Err(mlx::Error::Unsupported(
                    "embeddings of a model whose experts are added a layer later".into(),
                ));
            }
            pass.layer += 1;
        }
        pass.states = stream.sum()?.clone();
        Ok(())
    }

    /// States `[rows, width]` after the last layer, normed, of which embeddings are made.
    pub fn normed(&self, states: &Tensor) -> Result<Tensor> {
        let normed = self.norm.forward(states)?;
        match &self.embedder {
            Some(embedder) => embedder.project(&normed),
            None => Ok(normed),
        }
    }
}
