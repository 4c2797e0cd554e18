//! From a described step to one that is repeated.

use mlx::recording::{self, RecordedStep, StepRows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Error, Result};

use crate::elementwise::elementwise;
use crate::ends::choice;
use crate::graph::Graph;
use crate::recorder::{numbers, Recording, TOKENS};

/// Records the step that `describe` describes; `None` if it cannot be.
pub fn record(
    rows: StepRows,
    describe: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Option<Box<dyn RecordedStep>>> {
    let recording = Recording::begin(rows);
    let described = recording::on(elementwise, || {
        let made = describe(&numbers(TOKENS, rows.count(), Dtype::Uint32)?)?;
        Ok(match rows {
            StepRows::OfSequences(sequences) => {
                choice(&made, sequences)?;
                Some(made)
            }
            StepRows::OfOne(_) => None,
        })
    });
    let recorder = recording.end();
    match (described, recorder) {
        (Ok(logits), Some(recorder)) => Ok(Some(Box::new(Graph::new(recorder, logits.as_ref())?))),
        (Err(error @ Error::Unsupported(_)), _) => {
            tracing::debug!(%error, ?rows, "steps of this model are not recorded");
            Ok(None)
        }
        (Err(error), _) => Err(error),
        (Ok(_), None) => Ok(None),
    }
}
