//! Heads that draft what a model says next from the model's own states (multi-token prediction of Qwen 3.5). Their
//! layers are those of the decoder; embeddings and the output layer are the model's.

use std::cell::RefCell;

use checkpoint::DecoderConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{of_layer, Cache};
use crate::error;
use crate::layers::{Linear, ResidualStream, Rope};
use crate::models::decoder::layer::Layer;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::norm::Norm;
use crate::models::decoder::residual_add::ResidualAdd;
use crate::models::decoder::step::{Step, StepTokens};
use crate::models::decoder::{as_stored, is_original, ropes};
use crate::weights::Weights;

/// A head. What it gives for a position is read by the model's output layer, and by itself in place of the model's
/// state of the next one.
#[derive(Parameters)]
pub struct MtpHead {
    hidden_size: u32,
    vocabulary: u32,
    embedding_norm: Norm,
    state_norm: Norm,
    /// From both side by side to the width of the layers.
    joined: Linear,
    layers: Vec<Layer>,
    residual_add: ResidualAdd,
    ropes: Vec<Rope>,
    norm: Norm,
}

impl MtpHead {
    /// Builds the head; every tensor of it is computed when this returns.
    pub fn load(config: &DecoderConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        // In the files of the makers, its tensors stand beside those of the model.
        let offset = config
            .norm_offset_in_original
            .is_some_and(|mark| is_original(weights, mark));
        weights.rename_each(|name| name.strip_prefix("mtp.").map(str::to_owned));
        config.renames.iter().for_each(|table| weights.rename(table));
        let config = &as_stored(config, offset, weights);
        let (width, dtype) = (config.hidden_size as i32, weights.dtype("norm.weight"));
        let mut norm = |name: &str| Norm::load(weights, name, width, config.norm, dtype);
        let (embedding_norm, state_norm, norm) = (
            norm("pre_fc_norm_embedding")?,
            norm("pre_fc_norm_hidden")?,
            norm("norm")?,
        );
        let joined = Linear::load(weights, "fc", 2 * width, width)?;
        let ropes = ropes(config, dtype, weights)?;
        let mut loading = LoadContext {
            config,
            weights,
            dtype,
            ropes: &ropes,
            windows: &mut Vec::new(),
            caches: 0,
        };
        let layers = config.layers.iter().enumerate();
        let layers = layers.map(|(number, layer)| Layer::load(layer, number, &mut loading));
        let head = Self {
            hidden_size: config.hidden_size,
            vocabulary: config.vocab_size,
            layers: layers.collect::<error::Result<_>>()?,
            residual_add: ResidualAdd::new(config, dtype)?,
            embedding_norm,
            state_norm,
            joined,
            ropes,
            norm,
        };
        weights.materialize(head.tensors())?;
        Ok(head)
    }

    /// Width of the states that it reads and gives.
    pub fn hidden_size(&self) -> u32 {
        self.hidden_size
    }

    /// The number of tokens of the vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// Empty caches.
    pub fn caches(&self) -> Vec<Cache> {
        self.layers.iter().flat_map(|layer| layer.caches(false)).collect()
    }

    /// Its states `[rows, width]`, normed, for the next rows of a text: the model's normed states `[rows, width]`, and
    /// the embeddings `[rows, width]` of the tokens after them.
    pub fn forward(&self, states: &Tensor, embedded: &Tensor, caches: &mut [Cache]) -> Result<Tensor> {
        let (embedded, states) = (self.embedding_norm.forward(embedded)?, self.state_norm.forward(states)?);
        let mut stream = ResidualStream::new(self.joined.forward(&concatenate(&[&embedded, &states], -1)?)?);
        let (rows, offset) = (states.dim(0) as usize, caches[0].offset());
        let step = Step {
            sequences: 1,
            ropes: &self.ropes,
            next: Vec::new(),
            positions: None,
            rotations: self.ropes.iter().map(|rope| rope.at(offset, rows)).collect(),
            masks: vec![caches[0].mask(rows, None)?],
            chunks: Vec::new(),
            query_scaling: vec![None],
            again: false,
            first_loop: RefCell::default(),
            chosen: RefCell::default(),
            kept: RefCell::default(),
            first_values: RefCell::default(),
            embedded: None,
            layer_inputs: None,
            tokens: StepTokens::default(),
            images: &[],
        };
        for layer in &self.layers {
            let mut sequences = [&mut *caches];
            layer.forward(
                &mut stream,
                &step,
                &self.residual_add,
                &mut of_layer(&mut sequences, layer.caches.clone()),
            )?;
        }
        self.norm.of(&mut stream)
    }
}
