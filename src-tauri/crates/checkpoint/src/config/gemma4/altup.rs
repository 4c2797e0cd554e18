//! Several streams instead of one, of which each layer computes one and corrects the others by it (AltUp, Gemma 3n).
//! Names and defaults are those of transformers' `Gemma3nTextConfig`.

use crate::config::fields::Fields;
use crate::config::limits::{check_names, check_range, check_width};
use crate::error::{unusable, Error};

/// More streams than any model has.
const MOST_STREAMS: u32 = 16;

/// Several streams, and what a layer has beside attention and network.
#[derive(Debug, Clone, PartialEq)]
pub struct AltUpConfig {
    /// How many streams.
    pub streams: u32,
    /// The one that layers compute.
    pub active: u32,
    /// True if what a layer adds by its inputs is made of the scaled stream.
    pub scaled: bool,
    /// Width inside of the layers' shortcut of two projections (Laurel).
    pub laurel_rank: u32,
    /// Width of each layer's MLP.
    pub mlp_widths: Vec<u32>,
    /// The part of each layer's gate that is held at 0; all of it goes through if it is 0.
    pub sparsity: Vec<f32>,
}

impl AltUpConfig {
    pub(crate) fn parse(text: Fields<'_>, layers: usize) -> Result<Self, Error> {
        const WIDTHS: &str = "intermediate_size";
        const SPARSITY: &str = "activation_sparsity_pattern";
        let mlp_widths = match text.numbers(WIDTHS)?.as_deref() {
            Some([all]) => vec![*all as u32; layers],
            Some(each) => each.iter().map(|width| *width as u32).collect(),
            None => return Err(Error::MissingField(WIDTHS)),
        };
        check_names(WIDTHS, mlp_widths.len(), layers)?;
        // The first ten layers of published models have one, and their configs say so.
        let sparsity = text.numbers(SPARSITY)?.unwrap_or_else(|| vec![0.0; layers]);
        check_names(SPARSITY, sparsity.len(), layers)?;
        if let Some(part) = sparsity.iter().find(|part| !(0.0..1.0).contains(*part)) {
            return unusable(SPARSITY, format!("{part} is no part of a layer"));
        }
        for width in &mlp_widths {
            check_width(WIDTHS, 2 * u64::from(*width))?;
        }
        let altup = Self {
            streams: text.number("altup_num_inputs")?.unwrap_or(4),
            active: text.number("altup_active_idx")?.unwrap_or(0),
            scaled: text.flag("altup_correct_scale")?.unwrap_or(true),
            laurel_rank: text.number("laurel_rank")?.unwrap_or(64),
            mlp_widths,
            sparsity,
        };
        check_width("laurel_rank", altup.laurel_rank.into())?;
        let streams = check_range("altup_num_inputs", altup.streams, 2..=MOST_STREAMS)?;
        if altup.active >= streams {
            let reason = format!("there is no stream {} of {streams}", altup.active);
            return unusable("altup_active_idx", reason);
        }
        Ok(altup)
    }
}
