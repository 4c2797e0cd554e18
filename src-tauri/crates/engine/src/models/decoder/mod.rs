//! The parametric decoder: builds the layers that a [`DecoderConfig`] describes and runs them. Names of tensors are
//! those of Llama's checkpoints; families with other names say so in [`DecoderConfig::renames`].
//!
//! A new kind of mixer or feed-forward is a file here with `load`, `forward` and `Parameters`, one variant of
//! [`Mixer`](mixer::Mixer) or [`FeedForward`](feed_forward::FeedForward), and one arm in each `match` of its file.

mod attention;
mod attention_index;
mod attention_weights;
mod block_index;
mod by_head;
mod cross_attention;
mod cycle_pass;
mod cycles;
mod delta_net;
mod embedder;
mod embedding_pass;
mod feed_forward;
mod gated_conv;
mod gated_streams;
mod hyper;
mod indexer;
mod joint;
mod key_conv;
mod layer;
mod layer_order;
mod layer_runs;
mod lightning;
mod load_context;
mod loop_attention;
mod mamba;
mod mamba2;
mod mean_index;
mod mixer;
mod mla;
mod mlp;
mod modal_moe;
pub mod mtp_head;
mod names;
mod ngrams;
mod norm;
mod output_gate;
mod plain_mlp;
mod pool;
mod pooled;
mod positions;
mod residual_add;
mod rg_lru;
mod router;
mod rwkv;
mod shared_keys;
mod shortcut;
mod sparse_moe;
mod step;
mod stored;
mod stripes;

use std::cell::RefCell;

use checkpoint::config::decoder::{self, DecoderConfig, EmbeddingNorm, HyperConfig, LmHead, NormConfig, QueryScaling};
use mlx::parameters::Parameters;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::{of_layer, Cache};
use crate::error::{self, Error};
use crate::layers::{ones, Embedding, Linear, ResidualStream, RmsNorm, Rope};
use crate::models::Input;
use crate::weights::Weights;
use cycles::Cycles;
use embedder::Embedder;
use hyper::Streams;
use layer::Layer;
use layer_order::LayerOrder;
use load_context::LoadContext;
use ngrams::Ngrams;
use norm::Norm;
use positions::Positions;
use residual_add::ResidualAdd;
use step::{query_scale, InChunk, Step, StepTokens};
use stored::{as_stored, is_original, turn_projections};

/// The model.
#[derive(Parameters)]
pub struct Decoder {
    hidden_size: u32,
    vocabulary: u32,
    /// Tokens that have an embedding, some of which are never written.
    readable: u32,
    embed_tokens: Embedding,
    /// The norm of embeddings.
    embedding_norm: Option<Norm>,
    /// Parts that only a model for embeddings has.
    embedder: Option<Embedder>,
    /// Tables of short runs of tokens.
    ngrams: Option<Ngrams>,
    /// A vector for each position, added to embeddings.
    embed_positions: Option<Positions>,
    embedding_multiplier: Option<Tensor>,
    residual_add: ResidualAdd,
    layers: Vec<Layer>,
    #[parameters(skip)]
    order: LayerOrder,
    cycles: Option<Cycles>,
    /// True if the last norm ends each of several loops.
    loops_normed: bool,
    ropes: Vec<Rope>,
    /// The windows, each with the place of a cache that tells its mask.
    #[parameters(skip)]
    windows: Vec<(Option<u32>, usize)>,
    /// Positions of a chunk, for layers that stay in theirs.
    chunk: Option<u32>,
    #[parameters(skip)]
    query_scaling: Option<QueryScaling>,
    norm: Norm,
    /// `None` if the model makes embeddings.
    lm_head: Option<Linear>,
    /// True if several texts may be read one after another in one pass.
    packs: bool,
    bidirectional: bool,
    /// Several streams between the layers.
    streams: Option<Streams>,
    /// True if the second loop reads the keys of the first one.
    loop_window: bool,
    /// True if every layer adds the embeddings.
    gains: bool,
    logits_factor: Option<Tensor>,
    softcap: Option<Tensor>,
    /// The summand of logits by which some tokens are never written, `[1, vocabulary]`.
    unwritten: Option<Tensor>,
}

impl Decoder {
    /// Builds the model; every tensor of it is computed when this returns.
    pub fn load(config: &DecoderConfig, weights: &mut Weights<'_>) -> error::Result<Self> {
        // By the names of the checkpoint.
        let offset = config
            .norm_offset_in_original
            .is_some_and(|mark| is_original(weights, mark));
        names::rename(config, weights);
        if let Some(adapter) = config.merged {
            weights.merge_adapter(adapter)?;
        }
        // Molmo has a table of its own for tokens that were added later.
        weights.join_rows(
            &["embed_tokens.embedding", "embed_tokens.new_embedding"],
            "embed_tokens.weight",
        )?;
        let config = &as_stored(config, offset, weights);
        turn_projections(config, weights)?;
        if config.unit_lm_head {
            weights.unit_rows("lm_head")?;
        }
        let (hidden, vocabulary) = (config.hidden_size as i32, config.vocab_size as i32);
        let dtype = weights
            .dtype_of_matrix("embed_tokens")
            .unwrap_or_else(|| weights.dtype("norm.weight"));
        let last = NormConfig {
            bare: config.norm.bare_end,
            offset: config.norm.offset && !config.norm.last_as_is,
            ..config.norm
        };
        let norm = match config.hyper.is_some_and(|hyper| hyper.ends_normed()) {
            true => Norm::Absent,
            false => Norm::load(weights, "norm", hidden, last, dtype)?,
        };
        let scalar = |value: Option<f32>| value.map(|value| Tensor::scalar(value, dtype)).transpose();
        let embeddings = vocabulary + config.read_only_tokens as i32;
        let embed_tokens = Embedding::load(weights, "embed_tokens", embeddings, hidden)?;
        let embed_positions = Positions::load(config, weights)?;
        let embedding_norm = |kind: EmbeddingNorm| match kind {
            EmbeddingNorm::Bare => Ok(Norm::Rms(RmsNorm::new(ones(hidden, dtype)?, config.norm.eps))),
            EmbeddingNorm::OfStream => Norm::load(weights, "embed_norm", hidden, config.norm, dtype),
        };
        let embedding_norm = config.embedding_norm.map(embedding_norm).transpose()?;
        // Before the layers, because dequantizing and transposing it takes the most memory of all, which is free while
        // little else is loaded.
        let lm_head = match config.lm_head {
            LmHead::Absent => None,
            LmHead::Untied => Some(Linear::load(weights, "lm_head", hidden, vocabulary)?),
            LmHead::UntiedIfPresent if weights.has("lm_head.weight") => {
                Some(Linear::load(weights, "lm_head", hidden, vocabulary)?)
            }
            LmHead::Tied | LmHead::UntiedIfPresent => Some(embed_tokens.as_linear(weights)?),
        };
        weights.materialize(lm_head.tensors())?;
        let ropes = ropes(config, dtype, weights)?;
        let mut windows = Vec::new();
        let mut loading = LoadContext {
            config,
            weights,
            dtype,
            ropes: &ropes,
            windows: &mut windows,
            caches: 0,
        };
        let streams = |hyper: HyperConfig| Streams::load(&hyper, &mut loading);
        let streams = config.hyper.map(streams).transpose()?;
        let numbers = (0..).filter(|number| !config.absent_layers.contains(number));
        let layers: Vec<Layer> = numbers
            .zip(&config.layers)
            .map(|(number, layer)| Layer::load(layer, number as usize, &mut loading))
            .collect::<error::Result<_>>()?;
        let kept = loading.caches;
        let order = LayerOrder::new(
            layers.iter().map(|layer| layer.caches.clone()),
            config.loops,
            config.cycles,
        );
        let model = Self {
            hidden_size: config.hidden_size,
            vocabulary: config.vocab_size,
            readable: config.vocab_size + config.read_only_tokens,
            packs: embedding_pass::packs(config),
            bidirectional: config.bidirectional,
            lm_head,
            embed_tokens,
            embedder: Embedder::load(config, dtype, weights)?,
            ngrams: Ngrams::load(config, kept, weights)?,
            embedding_norm,
            embed_positions,
            embedding_multiplier: scalar(config.embedding_multiplier)?,
            residual_add: ResidualAdd::new(config, dtype)?,
            windows: windows
                .into_iter()
                .enumerate()
                .filter_map(|(index, window)| {
                    let has =
                        |(step, layer): &(usize, usize)| layers[*layer].mask(order.is_again(*step)) == Some(index);
                    let (step, _) = order.run().find(has)?;
                    Some((window, order.caches(step).start))
                })
                .collect(),
            layers,
            order,
            cycles: Cycles::load(config, dtype, weights)?,
            loops_normed: config.loops_normed,
            ropes,
            chunk: config.layers.iter().find_map(|layer| layer.mixer.attention()?.chunk),
            query_scaling: config.layers.iter().find_map(|layer| match &layer.mixer {
                decoder::Mixer::Mla(latent) => latent.query_scaling,
                mixer => mixer.attention()?.query_scaling,
            }),
            norm,
            gains: config.gains,
            loop_window: config.loop_window.is_some(),
            streams,
            logits_factor: match config.gains {
                true => Some(weights.take("lm_head_gain.w_g", &[1])?),
                false => scalar(config.logits_divisor.map(f32::recip))?,
            },
            softcap: scalar(config.logits_softcap)?,
            unwritten: names::unwritten(config.unwritten, config.vocab_size, dtype)?,
        };
        weights.materialize(model.tensors())?;
        Ok(model)
    }

    /// True if a position gives the same result however many come with it.
    pub fn reads_chunks_alike(&self) -> bool {
        self.ropes.iter().all(|rope| !rope.is_dynamic())
    }

    /// Width of its states.
    pub fn hidden_size(&self) -> u32 {
        self.hidden_size
    }

    /// The number of tokens that it reads.
    pub fn readable(&self) -> u32 {
        self.readable
    }

    /// The number of tokens of its vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// The empty caches of all layers, as often as the stream goes through them.
    pub fn caches(&self) -> Vec<Cache> {
        let run = self.order.run();
        run.flat_map(|(step, layer)| self.layers[layer].caches(self.order.is_again(step)))
            .chain(self.ngrams.as_ref().map(|_| Ngrams::cache()))
            .collect()
    }

    /// States `[rows, hidden]` of the tokens `[rows]` of `input`, which come next in the sequence of these caches; or
    /// one of them in each sequence.
    pub fn forward(&self, input: &Input<'_>, sequences: &mut [&mut [Cache]]) -> Result<Tensor> {
        let length = input.ids.size() / sequences.len();
        let mut step = self.step(input, length, sequences)?;
        let places = self.places(length, sequences)?;
        let embedded = self.embed(input.ids, places.as_ref())?;
        let embedded = match &self.ngrams {
            Some(ngrams) => {
                let caches = &mut of_layer(sequences, ngrams.place()..ngrams.place() + 1);
                ngrams.add(&embedded, input.ids, caches)?
            }
            None => embedded,
        };
        let embedded = input.place(embedded)?;
        step.embedded = self.gains.then(|| embedded.clone());
        if let Some(streams) = &self.streams {
            let mut between = streams.begin(&embedded)?;
            for (index, layer) in self.order.run() {
                let caches = &mut of_layer(sequences, self.order.caches(index));
                between = self.layers[layer].forward_streams(between, &step, caches)?;
            }
            return streams.end(&between);
        }
        if let Some(cycles) = &self.cycles {
            return self.forward_cycles(cycles, embedded, &step, sequences);
        }
        let mut stream = ResidualStream::new(embedded);
        let mut waiting = None;
        for (index, layer) in self.order.run() {
            step.again = self.order.is_again(index);
            if layer == 0 && step.again {
                self.begin_again(&mut stream)?;
            }
            let caches = &mut of_layer(sequences, self.order.caches(index));
            let later = self.layers[layer].forward(&mut stream, &step, &self.residual_add, caches)?;
            if let Some(part) = std::mem::replace(&mut waiting, later) {
                self.residual_add.add(&mut stream, part, None)?;
            }
            if let Some(deep) = input.deep(index)? {
                stream.add(deep, None, None)?;
            }
        }
        Ok(stream.sum()?.clone())
    }

    /// Ends a loop before another one.
    fn begin_again(&self, stream: &mut ResidualStream<'_>) -> Result<()> {
        if self.loops_normed {
            *stream = ResidualStream::new(self.norm.of(stream)?);
        }
        Ok(())
    }

    /// The stream `[rows, hidden]` before the first layer, at these places `[rows]` if positions are learned.
    fn embed(&self, ids: &Tensor, places: Option<&Tensor>) -> Result<Tensor> {
        let h = self.embed_tokens.forward(ids)?;
        let h = match (&self.embed_positions, places) {
            (Some(positions), Some(places)) => h.add(&positions.at(places)?)?,
            _ => h,
        };
        let h = match &self.embedding_norm {
            Some(norm) => norm.forward(&h)?,
            None => h,
        };
        match &self.embedding_multiplier {
            Some(factor) => h.mul(factor),
            None => Ok(h),
        }
    }

    /// The positions that each sequence has read.
    fn offsets(&self, sequences: &[&mut [Cache]]) -> Vec<usize> {
        let offset = |caches: &&mut [Cache]| self.windows.first().map_or(0, |(_, cache)| caches[*cache].offset());
        sequences.iter().map(offset).collect()
    }

    /// For sequences whose next `length` positions come.
    fn step<'a>(&'a self, input: &Input<'a>, length: usize, sequences: &[&mut [Cache]]) -> Result<Step<'a>> {
        let offsets = self.offsets(sequences);
        let next: Vec<usize> = (0..)
            .zip(&offsets)
            .map(|(index, offset)| input.position(index, *offset))
            .collect();
        let rotation = |rope: &Rope| match (input.positions, &next[..]) {
            (Some(positions), _) => rope.at_positions(positions),
            (None, [place]) => Ok(rope.at(*place, length)),
            (None, _) => Ok(rope.at_each(&next)),
        };
        if self.query_scaling.is_some() && recording::is_on() {
            return Err(mlx::Error::Unsupported(
                "a recorded step whose queries grow with their positions".into(),
            ));
        }
        let last_seen = input.last_seen();
        let scale = |offset: &usize| {
            self.query_scaling
                .and_then(|query_scaling| query_scale(query_scaling, *offset, length))
        };
        Ok(Step {
            sequences: sequences.len(),
            ropes: &self.ropes,
            rotations: self.ropes.iter().map(rotation).collect::<Result<_>>()?,
            positions: input.positions,
            masks: self
                .windows
                .iter()
                .map(|(_, place)| sequences[0][*place].mask(length, last_seen.as_deref()))
                .collect::<Result<_>>()?,
            chunks: match self.chunk {
                Some(chunk) => {
                    let chunks = offsets.iter().map(|offset| InChunk::new(chunk, *offset, length));
                    chunks.collect::<Result<_>>()?
                }
                None => Vec::new(),
            },
            query_scaling: offsets.iter().map(scale).collect(),
            next,
            again: false,
            first_loop: RefCell::default(),
            chosen: RefCell::default(),
            kept: RefCell::default(),
            first_values: RefCell::default(),
            embedded: None,
            layer_inputs: None,
            tokens: StepTokens {
                ids: Some(input.ids),
                of_images: input.of_images,
            },
            images: input.images,
        })
    }

    /// The stream `[rows, hidden]` before the first layer, of tokens `[rows]`.
    pub fn embedded(&self, ids: &Tensor) -> Result<Tensor> {
        self.embed(ids, None)
    }

    /// Logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> error::Result<Tensor> {
        self.output(&self.norm.forward(states)?)
    }

    /// Logits `[length, vocabulary]` of normed states.
    pub fn output(&self, normed: &Tensor) -> error::Result<Tensor> {
        let lm_head = self.lm_head.as_ref().ok_or(Error::NotForChat)?;
        let mut logits = lm_head.forward(normed)?;
        if let Some(factor) = &self.logits_factor {
            logits = logits.mul(factor)?;
        }
        if let Some(cap) = &self.softcap {
            logits = logits.div(cap)?.tanh()?.mul(cap)?;
        }
        Ok(match &self.unwritten {
            Some(unwritten) => logits.add(unwritten)?,
            None => logits,
        })
    }
}

/// The ropes for the heads of the layers that use them.
fn ropes(config: &DecoderConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Vec<Rope>> {
    let heads = config
        .layers
        .iter()
        .find_map(|layer| layer.mixer.attention().map(|attention| attention.heads as i32));
    let width = |index: usize| {
        config.layers.iter().find_map(|layer| match &layer.mixer {
            decoder::Mixer::Mla(latent) if latent.rope == Some(index) => Some(latent.qk_rope_head_dim),
            decoder::Mixer::Mla(latent) => {
                let indexer = latent.indexer.filter(|indexer| indexer.rope == index);
                indexer.map(|indexer| indexer.head_dim)
            }
            decoder::Mixer::Lightning(lightning) if lightning.rope == index => Some(lightning.width),
            mixer => mixer.attention().and_then(|attention| {
                let own = (attention.rope == Some(index)).then_some(attention.head_dim);
                let blocks = attention.block_index.filter(|blocks| blocks.rope == index);
                let means = attention.mean_index.filter(|means| means.rope == index);
                let of_index = blocks.map(|blocks| blocks.head_dim);
                own.or(of_index).or(means.map(|means| means.head_dim))
            }),
        })
    };
    config
        .ropes
        .iter()
        .enumerate()
        .map(|(index, config)| {
            let rope = Rope::new(config, width(index).unwrap_or(config.dims), dtype)?;
            if !config.golden {
                return Ok(rope);
            }
            let directions = weights.take("freqs_cis_golden", &[heads.unwrap_or(0), config.dims as i32 / 4, 2])?;
            Ok(rope.with_directions(directions.astype(Dtype::Float32)?.to_f32()?))
        })
        .collect()
}
