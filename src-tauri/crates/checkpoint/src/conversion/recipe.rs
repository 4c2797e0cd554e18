//! How a model is quantized: the format of most matrices, and those that get more bits, as mlx-lm's recipes have it.

use crate::config::{Mode, Quantization};
use crate::error::{Error, Result};

/// Bits of what mlx-lm's models keep finer, such as routers.
const FINER: Quantization = Quantization {
    group_size: 64,
    bits: 8,
    mode: Mode::Affine,
};

/// Bits of most matrices and of the sensitive ones in mlx-lm's mixed recipes.
const MIXTURES: [(u32, u32); 4] = [(2, 6), (3, 4), (3, 6), (4, 6)];

/// The format of a new quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The format of most matrices.
    pub most: Quantization,
    /// Bits of those that lose most: the output layer, and values and down projections of some layers.
    pub sensitive_bits: Option<u32>,
}

impl Recipe {
    /// A recipe of mlx-lm's: `bits` and `group_size` are 4 and 64 if not given, in formats that leave a choice.
    ///
    /// # Errors
    /// [`Error::Recipe`] if MLX has no such format, or mlx-lm no such mixture.
    pub fn new(mode: Mode, bits: Option<u32>, group_size: Option<u32>, sensitive_bits: Option<u32>) -> Result<Self> {
        let most = match mode.fixed() {
            Some((group, fixed)) => {
                if bits.is_some_and(|bits| bits != fixed) || group_size.is_some_and(|size| size != group) {
                    return refused(format!("{} has {fixed} bits and groups of {group} alone", mode.name()));
                }
                if sensitive_bits.is_some() {
                    return refused(format!("{} has no mixture; mixtures are affine", mode.name()));
                }
                Quantization {
                    group_size: group,
                    bits: fixed,
                    mode,
                }
            }
            None => Quantization {
                group_size: group_size.unwrap_or(64),
                bits: bits.unwrap_or(4),
                mode,
            },
        };
        if mode == Mode::Affine && !matches!((most.group_size, most.bits), (32 | 64 | 128, 2..=6 | 8)) {
            return refused(format!(
                "there are 2, 3, 4, 5, 6 and 8 bits in groups of 32, 64 and 128, not {} bits in groups of {}",
                most.bits, most.group_size
            ));
        }
        match sensitive_bits {
            Some(more) if !MIXTURES.contains(&(most.bits, more)) => refused(format!(
                "there are mixtures of 2 and 6, 3 and 4, 3 and 6, and 4 and 6 bits, not of {} and {more}",
                most.bits
            )),
            _ => Ok(Self { most, sensitive_bits }),
        }
    }

    /// A short name for folders, such as `4bit`, `mxfp4` or `mixed_3_4`, as conversions on the hub are called.
    pub fn name(&self) -> String {
        let Quantization { group_size, bits, mode } = self.most;
        let name = match (mode, self.sensitive_bits) {
            (Mode::Affine, None) => format!("{bits}bit"),
            (Mode::Affine, Some(more)) => format!("mixed_{bits}_{more}"),
            _ => mode.name().to_owned(),
        };
        match mode.fixed().is_none() && group_size != 64 {
            true => format!("{name}-gs{group_size}"),
            false => name,
        }
    }
}

fn refused<T>(reason: String) -> Result<T> {
    Err(Error::Recipe(reason))
}

/// A recipe for the matrices of one model.
pub(super) struct Decisions<'a> {
    pub recipe: &'a Recipe,
    /// Ends of the paths that the family keeps finer.
    pub finer: &'a [&'a str],
    pub layers: u64,
    /// The segment of a path that is the layer's number, by the first down projection.
    pub layer_segment: usize,
}

/// The format of one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    pub format: Quantization,
    /// True if config.json names the path.
    pub named: bool,
}

impl Decisions<'_> {
    /// The format of the matrix at a path with rows of `columns` numbers; `None` if no group fits.
    pub fn of(&self, path: &str, columns: u64) -> Option<Decision> {
        let most = self.recipe.most;
        let divides = |format: Quantization| columns > 0 && columns.is_multiple_of(u64::from(format.group_size));
        let decision = match self.recipe.sensitive_bits {
            Some(more) => Decision {
                format: Quantization {
                    bits: if self.is_sensitive(path) { more } else { most.bits },
                    ..most
                },
                named: true,
            },
            None if self.finer.iter().any(|end| path.ends_with(end)) => Decision {
                format: FINER,
                named: true,
            },
            None => Decision {
                format: most,
                named: false,
            },
        };
        (divides(most) && divides(decision.format)).then_some(decision)
    }

    /// mlx-lm's `mixed_quant_predicate`, which follows llama.cpp's choice of layers.
    fn is_sensitive(&self, path: &str) -> bool {
        let segment = path.split('.').nth(self.layer_segment);
        let index = segment.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        let eighth = self.layers / 8;
        let is_chosen = index < eighth
            || index >= 7 * self.layers / 8
            // Python's remainder is never negative, and an index below the first eighth was chosen already.
            || index.saturating_sub(eighth) % 3 == 2;
        let loses_most = ["v_proj", "v_a_proj", "v_b_proj", "down_proj"];
        path.contains("lm_head") || (is_chosen && loses_most.iter().any(|name| path.contains(name)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_mixtures_that_do_not_exist_are_refused() {
        let name = |mode, bits, group, more| Recipe::new(mode, bits, group, more).map(|recipe| recipe.name());
        assert_eq!(name(Mode::Affine, None, None, None).unwrap(), "4bit");
        assert_eq!(name(Mode::Affine, Some(8), Some(32), None).unwrap(), "8bit-gs32");
        assert_eq!(name(Mode::Affine, Some(3), None, Some(4)).unwrap(), "mixed_3_4");
        assert_eq!(name(Mode::Mxfp4, Some(4), Some(32), None).unwrap(), "mxfp4");
        assert_eq!(name(Mode::Nvfp4, None, None, None).unwrap(), "nvfp4");
        for (mode, bits, group, more) in [
            (Mode::Affine, Some(7), None, None),
            (Mode::Affine, None, Some(16), None),
            (Mode::Affine, Some(4), None, Some(8)),
            (Mode::Mxfp4, Some(8), None, None),
            (Mode::Mxfp8, None, Some(64), None),
            (Mode::Nvfp4, None, None, Some(6)),
        ] {
            assert!(matches!(name(mode, bits, group, more), Err(Error::Recipe(_))));
        }
    }

    #[test]
    fn a_mixture_gives_more_bits_to_the_first_and_last_eighth_and_every_third_between() {
        let recipe = Recipe::new(Mode::Affine, Some(4), None, Some(6)).unwrap();
        let decisions = Decisions {
            recipe: &recipe,
            finer: &[],
            layers: 16,
            layer_segment: 2,
        };
        let bits = |path: &str| decisions.of(path, 128).unwrap().format.bits;
        let sensitive: Vec<u64> = (0..16)
            .filter(|layer| bits(&format!("model.layers.{layer}.mlp.down_proj")) == 6)
            .collect();
        assert_eq!(sensitive, [0, 1, 4, 7, 10, 13, 14, 15]);
        assert_eq!((bits("lm_head"), bits("model.embed_tokens")), (6, 4));
        assert_eq!(bits("model.layers.0.mlp.up_proj"), 4);
        assert_eq!(decisions.of("lm_head", 96), None);
    }
}
