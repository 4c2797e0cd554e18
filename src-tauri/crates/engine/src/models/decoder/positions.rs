//! Learned positions: a table with a vector for each, which is added to embeddings (GPT-2).

use checkpoint::config::decoder::DecoderConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::kernels::kernels;
use crate::layers::Embedding;
use crate::weights::Weights;

/// The table `[positions, hidden]`.
#[derive(Parameters)]
pub(super) struct Positions {
    count: usize,
    table: Embedding,
}

impl Positions {
    /// Loads `embed_positions`, if the model has such a table.
    pub(super) fn load(config: &DecoderConfig, weights: &mut Weights<'_>) -> error::Result<Option<Self>> {
        let Some(count) = config.most_positions.filter(|_| config.learned_positions) else {
            return Ok(None);
        };
        let table = Embedding::load(weights, "embed_positions", count as i32, config.hidden_size as i32)?;
        Ok(Some(Self {
            count: count as usize,
            table,
        }))
    }

    /// The places `[rows]` of the next `length` positions of sequences that have read `offsets`; in a step that is
    /// being recorded those of every step to come.
    ///
    /// # Errors
    /// If one of them is not in the table.
    pub(super) fn places(&self, length: usize, offsets: &[usize]) -> Result<Tensor> {
        if let Some(recorded) = kernels().recorded_positions() {
            return Ok(recorded);
        }
        let places = offsets.iter().flat_map(|offset| *offset..offset + length);
        let places: Vec<i32> = places.map(|place| place as i32).collect();
        if places.iter().any(|place| *place as usize >= self.count) {
            let reason = format!("a position beyond the {} that the model knows", self.count);
            return Err(mlx::Error::Unsupported(reason));
        }
        Ok(Tensor::from_i32(&places, &[places.len() as i32]))
    }

    /// Their vectors `[rows, hidden]`.
    pub(super) fn at(&self, places: &Tensor) -> Result<Tensor> {
        self.table.forward(places)
    }
}
