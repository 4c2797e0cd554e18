//! Several streams instead of one, of which each layer computes one and corrects the others by it (AltUp, Gemma 3n).
//! Names and defaults are those of transformers' `Gemma3nTextConfig`.

use crate::config::fields::Fields;
use crate::config::limits::check_width;
use crate::error::Error;

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
        let unusable = |field, reason: String| Err(Error::InvalidField { field, reason });
        let mlp_widths = match text.numbers(WIDTHS)?.as_deref() {
            Some([all]) => vec![*all as u32; layers],
            Some(each) if each.len() == layers => each.iter().map(|width| *width as u32).collect(),
            Some(each) => return unusable(WIDTHS, format!("it names {} of {layers} layers", each.len())),
            None => return Err(Error::MissingField(WIDTHS)),
        };
        let sparsity = match text.numbers(SPARSITY)? {
            Some(each) if each.len() == layers => each,
            Some(each) => return unusable(SPARSITY, format!("it names {} of {layers} layers", each.len())),
            // The first ten layers of published models, whose configs say so.
            None => vec![0.0; layers],
        };
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
        if !(2..=MOST_STREAMS).contains(&altup.streams) {
            return unusable(
                "altup_num_inputs",
                format!("{} is not from 2 to {MOST_STREAMS}", altup.streams),
            );
        }
        if altup.active >= altup.streams {
            return unusable(
                "altup_active_idx",
                format!("there is no stream {} of {}", altup.active, altup.streams),
            );
        }
        Ok(altup)
    }
}
