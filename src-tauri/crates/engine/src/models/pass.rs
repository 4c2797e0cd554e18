//! Texts that are read at once, one after another in the rows of one pass, so that nothing is padded; layer by layer,
//! so that a long text does not hold up who waits.

use mlx::ops::Mask;
use mlx::tensor::Tensor;

/// A pass that has gone through some of a model's layers.
pub struct Pass {
    /// How many tokens each text has.
    pub lengths: Vec<usize>,
    /// States `[rows, width]` after the layers so far.
    pub states: Tensor,
    /// The next layer.
    pub layer: usize,
    /// One for each window of the model, if it needs any.
    pub masks: Vec<Mask>,
    /// The inputs of layers beside the states, `[rows, layers, width]`, if they have any.
    pub layer_inputs: Option<Tensor>,
}

impl Pass {
    /// Before the first layer.
    pub fn new(lengths: &[usize], states: Tensor, masks: Vec<Mask>) -> Self {
        Self {
            lengths: lengths.to_vec(),
            states,
            layer: 0,
            masks,
            layer_inputs: None,
        }
    }

    /// Tokens of all texts.
    pub fn rows(&self) -> usize {
        self.lengths.iter().sum()
    }
}

/// The rows of each text, first to last.
pub fn spans(lengths: &[usize]) -> impl Iterator<Item = (i32, i32)> + '_ {
    lengths.iter().scan(0, |end, length| {
        let start = *end;
        *end += *length as i32;
        Some((start, *end))
    })
}

/// The mask of a pass: each row sees rows of its own text, those up to itself unless `bidirectional`, and of these the
/// ones less than `window` away.
pub fn mask(lengths: &[usize], window: Option<u32>, bidirectional: bool) -> Mask {
    let window = window.map_or(i32::MAX, |window| window as i32);
    if let [length] = lengths {
        match (bidirectional, *length as i32 <= window) {
            (true, true) => return Mask::None,
            (false, true) => return Mask::Causal,
            _ => {}
        }
    }
    let rows: usize = lengths.iter().sum();
    let mut sees = vec![false; rows * rows];
    for (start, end) in spans(lengths) {
        for row in start..end {
            let first = start.max(row.saturating_sub(window - 1));
            let last = if bidirectional {
                end.min(row.saturating_add(window))
            } else {
                row + 1
            };
            sees[row as usize * rows..][first as usize..last as usize].fill(true);
        }
    }
    Mask::Array(Tensor::from_bool(&sees, &[rows as i32, rows as i32]))
}
