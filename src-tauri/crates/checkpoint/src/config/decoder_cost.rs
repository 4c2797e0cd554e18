//! The memory of a decoder, as a list of what its layers cost.

use crate::config::decoder::{
    DecoderConfig, FeedForward, LayerConfig, LayerRunsConfig, LmHead, Mixer, NormKind, NormPlacement,
};
use crate::memory::{
    AttentionCost, FeedForwardCost, LayerCost, LayerInputs, MixerCost, ModelCost, NoMixer, Part, Storage,
};

impl DecoderConfig {
    pub(crate) fn cost(&self, storage: Storage) -> ModelCost {
        let cost = |(number, layer): (u32, &LayerConfig)| LayerCost {
            beside: self.beside(number),
            carried: self.carried(number),
            ..layer.cost()
        };
        let layers: Vec<LayerCost> = (0..).zip(&self.layers).map(cost).collect();
        let count = self.layers.len();
        let steps = self
            .cycles
            .map_or(self.loops as usize * count, |cycles| cycles.order(count).len());
        let again = (count..steps).map(|step| self.again(&self.layers[step % count]));
        let again = again.collect();
        // No kernel joins a norm with two parts that read it.
        let norms_apart = self.norm.kind != NormKind::RootMeanSquare || layers.iter().any(|layer| layer.parallel);
        ModelCost {
            hidden: self.hidden_size.into(),
            vocabulary: self.vocab_size.into(),
            tied: self.lm_head != LmHead::Untied,
            cached: !self.bidirectional,
            layers,
            inputs: self.embedder.map(|embedder| LayerInputs {
                tokens: 0,
                width: embedder.layer_inputs.into(),
            }),
            streams: self.streams().into(),
            tables: self.ngrams.map_or_else(Vec::new, |ngrams| {
                let tables = (0..ngrams.tables()).map(|table| [ngrams.rows_of(table), ngrams.width.into()]);
                tables.collect()
            }),
            stream_operations: self.hyper.map_or(0, |_| 20),
            parts_scaled: self.residual_multiplier.is_some() || self.gains,
            skips: self.gains,
            positions: match self.learned_positions {
                true => self.most_positions.unwrap_or(0).into(),
                false => 0,
            },
            again,
            norms_apart,
            adds_apart: self.norm.kind != NormKind::RootMeanSquare,
            storage,
        }
    }
}

impl DecoderConfig {
    /// Matrices of a layer beside those of its mixer and its network.
    fn beside(&self, layer: u32) -> Vec<Part> {
        let (hidden, streams) = (self.hidden_size.into(), self.streams().into());
        let connections = self.hyper.map_or_else(Vec::new, |hyper| hyper.weights(hidden));
        let runs = self
            .runs_of(layer)
            .map(|(runs, place)| runs.weights(place, hidden, streams));
        connections.into_iter().chain(runs.into_iter().flatten()).collect()
    }

    /// Numbers of 32 bits that a layer carries beside the cache of its mixer.
    fn carried(&self, layer: u32) -> u64 {
        let runs = self.runs_of(layer);
        runs.map_or(0, |(runs, _)| {
            runs.carried(self.hidden_size.into(), self.streams().into())
        })
    }

    /// The tables of runs that a layer reads, and which of the layers that have some it is.
    fn runs_of(&self, layer: u32) -> Option<(&LayerRunsConfig, u32)> {
        let runs = self.layer_runs.as_ref()?;
        let place = runs.layers.iter().position(|other| *other == layer)?;
        Some((runs, place as u32))
    }

    /// A layer as it is from the second loop on.
    fn again(&self, layer: &LayerConfig) -> LayerCost {
        let cost = layer.cost();
        match (&layer.mixer, self.loop_window) {
            (Mixer::Attention(attention), Some(window)) => LayerCost {
                mixer: Box::new(AttentionCost {
                    window: Some(window.into()),
                    mixes_loops: true,
                    ..attention.cost()
                }),
                ..cost
            },
            _ => cost,
        }
    }
}

impl LayerConfig {
    fn cost(&self) -> LayerCost {
        LayerCost {
            mixer: self.mixer.cost(),
            feed_forwards: self.feed_forward.costs(),
            beside: Vec::new(),
            carried: 0,
            normed_after: matches!(self.norms, NormPlacement::Post | NormPlacement::Sandwich),
            parallel: matches!(self.norms, NormPlacement::Parallel | NormPlacement::ParallelPair),
        }
    }
}

impl Mixer {
    fn cost(&self) -> Box<dyn MixerCost> {
        match self {
            Self::Attention(attention) => Box::new(attention.cost()),
            Self::DeltaNet(delta_net) => Box::new(*delta_net),
            Self::Mla(latent) => Box::new(latent.clone()),
            Self::Pooled(pooled) => Box::new(*pooled),
            Self::GatedConv(conv) => Box::new(*conv),
            Self::KeyConv(conv) => Box::new(*conv),
            Self::Lightning(lightning) => Box::new(*lightning),
            Self::Mamba(mamba) => Box::new(*mamba),
            Self::Mamba2(mamba) => Box::new(*mamba),
            Self::Joint(joint) => Box::new(joint.clone()),
            Self::RgLru(unit) => Box::new(*unit),
            Self::Rwkv(part) => Box::new(*part),
            Self::CrossAttention(cross) => Box::new(*cross),
            Self::Linear(linear) => Box::new(*linear),
            Self::Absent => Box::new(NoMixer),
        }
    }
}

impl FeedForward {
    fn costs(&self) -> Vec<Box<dyn FeedForwardCost>> {
        match self {
            Self::Dense(dense) => vec![Box::new(dense.cost())],
            Self::Plain(plain) => vec![Box::new(plain.cost())],
            Self::Moe(experts) => experts.costs(),
            Self::Linear(linear) => vec![Box::new(*linear)],
            Self::LatentMoe(latent) => latent.costs(),
            Self::ModalMoe(modal) => modal.costs(),
            Self::Shortcut(shortcut) => {
                let mut costs = shortcut.experts.costs();
                costs.insert(0, Box::new(shortcut.dense.cost()));
                costs
            }
            Self::Absent => Vec::new(),
        }
    }
}
