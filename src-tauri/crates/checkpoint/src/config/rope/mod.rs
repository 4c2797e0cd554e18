//! Rotary positions as configs describe them, reduced to a period per pair of numbers: the positions in which the pair
//! turns by one radian. Formulas and defaults are those of mlx-lm's `rope_utils.py`.

mod sections;

use std::f64::consts::PI;

use crate::config::fields::Fields;
use crate::config::limits::WIDEST_HEAD;
use crate::error::{unusable, Error};
pub use sections::{SectionOrder, Sections};

/// The rotary positions of one kind of layer.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    /// How many numbers of a head turn, from the first; even.
    pub dims: u32,
    /// True if neighbors turn against each other (`rope_traditional`, GLM 4); else the two halves of what turns.
    pub traditional: bool,
    /// The period of each pair, `dims / 2`; infinite for pairs that keep still, below 0 for those that turn backwards.
    pub periods: Vec<f32>,
    /// Factor of the numbers that turn, of queries and of keys (yarn's `mscale`, longrope).
    pub amplitude: f32,
    /// Periods that grow with the sequence.
    pub dynamic: Option<Dynamic>,
    /// Which pairs turn by the time, the row or the column of an image token (multimodal positions); text has the same
    /// number for all.
    pub sections: Option<Sections>,
    /// True if the pairs that keep still turn by the place of an image token in its image, in each head along
    /// directions of its own, which the weights hold (Falcon-OCR).
    pub golden: bool,
}

/// NTK scaling by the length of the sequence: beyond `context` the base grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dynamic {
    /// The base of the periods up to there.
    pub theta: f64,
    /// How much longer the context was made.
    pub factor: f64,
    /// The length the model was trained for, in positions.
    pub context: u32,
}

/// Defaults of a family, for fields that `config.json` leaves out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub theta: f32,
    pub traditional: bool,
    pub partial: f32,
    /// True if all of what is called a head here turns, because `partial_rotary_factor` is about a wider one.
    pub whole: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self::new(10_000.0)
    }
}

impl Defaults {
    pub fn new(theta: f32) -> Self {
        Self {
            theta,
            traditional: false,
            partial: 1.0,
            whole: false,
        }
    }
}

/// Which layers of a model the positions are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// All of them.
    All,
    /// Those of this type in `layer_types`, which `rope_parameters` may have a part for.
    Type(&'static str),
    /// Those of this type, to which nothing applies but such a part: `rope_theta` and `rope_scaling` are meant for
    /// others.
    Only(&'static str),
}

impl RopeConfig {
    /// Reads `rope_theta`, `rope_scaling` and `rope_parameters`, the latter flat or with a part for each type of layer.
    pub(crate) fn parse(text: Fields<'_>, head_dim: u32, layers: For, default: Defaults) -> Result<Self, Error> {
        let parameters = text.object("rope_parameters")?;
        let own = match (parameters, layers) {
            (Some(all), For::Type(layer_type) | For::Only(layer_type)) => all.object(layer_type)?,
            _ => None,
        };
        let (table, places) = match layers {
            For::Only(_) => (own, [own, None, None]),
            For::All | For::Type(_) => {
                let table = own.or(text.object("rope_scaling")?).or(parameters);
                // `rope_theta` may stand in `rope_parameters` while `rope_scaling` holds the rest.
                (table, [table, parameters, Some(text)])
            }
        };
        let number = |field: &'static str| -> Result<Option<f32>, Error> {
            for fields in places.into_iter().flatten() {
                if let Some(number) = fields.number(field)? {
                    return Ok(Some(number));
                }
            }
            Ok(None)
        };
        let theta = number("rope_theta")?.unwrap_or(default.theta);
        let partial = match default.whole {
            true => 1.0,
            false => number("partial_rotary_factor")?.unwrap_or(default.partial),
        };
        let traditional = text.flag("rope_traditional")?.unwrap_or(default.traditional);
        if !(theta.is_finite() && theta > 1.0) {
            return unusable("rope_theta", format!("{theta} is not above 1"));
        }
        if !(partial > 0.0 && partial <= 1.0) {
            return unusable("partial_rotary_factor", format!("{partial} is not a part of 1"));
        }
        // Families call it by other names and refuse what is odd by those; here it only must not grow beyond memory.
        if head_dim > WIDEST_HEAD {
            return unusable("head_dim", format!("{head_dim} is more than {WIDEST_HEAD}"));
        }
        let kind = match table {
            Some(table) => table.text("type")?.or(table.text("rope_type")?),
            None => None,
        };
        let scaling = Scaling {
            table,
            text,
            theta: theta.into(),
            context: text.number("max_position_embeddings")?,
        };
        let turning = (f64::from(partial) * f64::from(head_dim)) as u32 / 2 * 2;
        let sections = match table {
            Some(table) => Sections::parse(table)?,
            None => None,
        };
        let plain = Self {
            sections,
            ..Self::plain(turning, theta.into(), traditional)
        };
        let rope = match kind.as_deref() {
            None | Some("default" | "mrope") => plain,
            Some("linear") => plain.stretched(scaling.factor()?),
            Some("xdrope") => scaling.widened(plain)?,
            // A factor of the base makes it no matter of the length (HunYuan).
            Some("dynamic") if scaling.number("alpha")?.is_some() => scaling.widened(plain)?,
            Some("dynamic") => scaling.dynamic(plain)?,
            Some("llama3") => scaling.llama3(plain)?,
            Some("yarn" | "deepseek_yarn" | "telechat3-yarn") => scaling.yarn(plain)?,
            Some("longrope" | "su") => scaling.longrope(plain)?,
            Some("proportional") => Self {
                traditional,
                ..Self::proportional(head_dim, theta, partial).stretched(scaling.number("factor")?.unwrap_or(1.0))
            },
            Some(other) => return Err(Error::Unsupported(format!("rotary positions of type `{other}`"))),
        };
        rope.check()
    }

    /// Periods that are powers of `theta` over the whole head, of which the first `partial` turns (Gemma 4's full
    /// layers); with `partial` 1 it is the ordinary rope.
    pub fn proportional(head_dim: u32, theta: f32, partial: f32) -> Self {
        let turning = (f64::from(partial) * f64::from(head_dim)) as usize / 2;
        let mut rope = Self::plain(head_dim, theta.into(), false);
        for period in rope.periods.iter_mut().skip(turning) {
            *period = f32::INFINITY;
        }
        rope
    }

    /// A half of a head whose neighbors turn by the place in the prompt, and another that turns by the place in a
    /// image (Falcon-OCR).
    pub(crate) fn golden(head_dim: u32, theta: f32) -> Result<Self, Error> {
        if !head_dim.is_multiple_of(4) || head_dim > WIDEST_HEAD || !(theta.is_finite() && theta > 1.0) {
            return unusable(
                "head_dim",
                format!("{head_dim} has no four quarters that turn by {theta}"),
            );
        }
        let mut rope = Self::plain(head_dim / 2, theta.into(), true);
        rope.dims = head_dim;
        rope.golden = true;
        rope.periods.resize(head_dim as usize / 2, f32::INFINITY);
        rope.check()
    }

    /// The same for heads of this width, of which the last numbers turn and none grows (DeepSeek V4).
    pub(crate) fn after_still(mut self, head_dim: u32) -> Self {
        let still = head_dim.saturating_sub(self.dims) as usize / 2;
        self.periods.splice(0..0, std::iter::repeat_n(f32::INFINITY, still));
        (self.dims, self.amplitude) = (head_dim, 1.0);
        self
    }

    /// The same by the number of each run of so many positions.
    pub(crate) fn by_number(self, positions: u32) -> Self {
        self.stretched(1.0 / f64::from(positions))
    }

    /// The same in the other direction; periods that grow with the sequence have no other.
    pub(crate) fn backwards(mut self) -> Result<Self, Error> {
        if self.dynamic.is_some() {
            return Err(Error::Unsupported(
                "dynamic rotary positions that turn backwards".into(),
            ));
        }
        self.periods.iter_mut().for_each(|period| *period = -*period);
        Ok(self)
    }

    fn plain(dims: u32, theta: f64, traditional: bool) -> Self {
        Self {
            dims,
            traditional,
            periods: powers(theta, dims).map(|period| period as f32).collect(),
            amplitude: 1.0,
            dynamic: None,
            sections: None,
            golden: false,
        }
    }

    /// Every period times `factor`, which is every position divided by it.
    fn stretched(mut self, factor: f64) -> Self {
        for period in &mut self.periods {
            *period = (f64::from(*period) * factor) as f32;
        }
        self
    }

    fn check(self) -> Result<Self, Error> {
        if self.dims == 0 {
            return unusable("partial_rotary_factor", "nothing of a head would turn");
        }
        let sound = |period: &f32| *period > 0.0;
        if !(self.periods.iter().all(sound) && self.amplitude > 0.0 && self.amplitude.is_finite()) {
            return unusable("rope_scaling", "it makes periods that are no numbers above 0");
        }
        Ok(self)
    }
}

impl Dynamic {
    /// The base for a sequence of `length` positions, in heads of which `dims` numbers turn.
    pub fn base(&self, dims: u32, length: usize) -> f64 {
        let (dims, context) = (f64::from(dims), f64::from(self.context));
        let length = context.max(length as f64);
        self.theta * (self.factor * length / context - (self.factor - 1.0)).powf(dims / (dims - 2.0))
    }
}

/// The fields that the kinds of scaling read.
struct Scaling<'a> {
    table: Option<Fields<'a>>,
    text: Fields<'a>,
    theta: f64,
    context: Option<u32>,
}

impl Scaling<'_> {
    fn number(&self, field: &'static str) -> Result<Option<f64>, Error> {
        let Some(table) = self.table else { return Ok(None) };
        Ok(table.number::<f32>(field)?.map(f64::from))
    }

    fn factor(&self) -> Result<f64, Error> {
        match self.number("factor")? {
            Some(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
            Some(factor) => unusable("rope_scaling", format!("its factor {factor} is not above 0")),
            None => unusable("rope_scaling", "it has no factor"),
        }
    }

    /// Stands in the table, or beside it (Phi 3).
    fn original_context(&self) -> Result<Option<f64>, Error> {
        const FIELD: &str = "original_max_position_embeddings";
        let found = match self.number(FIELD)? {
            Some(context) => Some(context),
            None => self.text.number::<f32>(FIELD)?.map(f64::from),
        };
        match found {
            Some(context) if context <= 1.0 || context.is_nan() => unusable(FIELD, format!("{context} is not above 1")),
            found => Ok(found),
        }
    }

    fn dynamic(&self, plain: RopeConfig) -> Result<RopeConfig, Error> {
        let context = match self.context {
            Some(context) if context > 0 => context,
            _ => return Err(Error::MissingField("max_position_embeddings")),
        };
        if plain.dims <= 2 {
            return unusable("head_dim", "dynamic rotary positions need more than 2 turning numbers");
        }
        let dynamic = Dynamic {
            theta: self.theta,
            factor: self.factor()?,
            context,
        };
        Ok(RopeConfig {
            dynamic: Some(dynamic),
            ..plain
        })
    }

    /// NTK scaling by a fixed `alpha`, whatever the length of the sequence (HunYuan).
    fn widened(&self, plain: RopeConfig) -> Result<RopeConfig, Error> {
        let dims = f64::from(plain.dims);
        let alpha = self.number("alpha")?.unwrap_or(1.0);
        if plain.dims <= 2 || !alpha.is_finite() || alpha <= 0.0 {
            return unusable("rope_scaling", format!("its alpha {alpha} widens nothing"));
        }
        let theta = self.theta * alpha.powf(dims / (dims - 2.0));
        Ok(RopeConfig {
            sections: plain.sections,
            ..RopeConfig::plain(plain.dims, theta, plain.traditional)
        })
    }

    /// Llama 3.1: long periods are stretched, short ones kept, those between mixed.
    fn llama3(&self, plain: RopeConfig) -> Result<RopeConfig, Error> {
        let factor = self.factor()?;
        let low = self.number("low_freq_factor")?.unwrap_or(1.0);
        let high = self.number("high_freq_factor")?.unwrap_or(4.0);
        let original = self.number("original_max_position_embeddings")?.unwrap_or(8192.0);
        let periods = powers(self.theta, plain.dims).map(|period| {
            let length = 2.0 * PI * period;
            let stretched = if length > original / low {
                period * factor
            } else {
                period
            };
            if length > original / high && length < original / low {
                let smooth = (original / length - low) / (high - low);
                return (stretched / ((1.0 - smooth) / factor + smooth)) as f32;
            }
            stretched as f32
        });
        Ok(RopeConfig {
            periods: periods.collect(),
            ..plain
        })
    }

    /// YaRN (Peng et al. 2023): periods between `beta_fast` and `beta_slow` turns of the original context go over from
    /// kept to stretched.
    fn yarn(&self, plain: RopeConfig) -> Result<RopeConfig, Error> {
        let factor = self.factor()?;
        let original = self.original_context()?.unwrap_or(4096.0);
        let dims = f64::from(plain.dims);
        let place = |turns: f64| dims * (original / (turns * 2.0 * PI)).ln() / (2.0 * self.theta.ln());
        let low = place(self.number("beta_fast")?.unwrap_or(32.0)).floor().max(0.0);
        let high = place(self.number("beta_slow")?.unwrap_or(1.0)).ceil().min(dims - 1.0);
        let high = if high == low { high + 0.001 } else { high };
        let periods = powers(self.theta, plain.dims).enumerate().map(|(pair, kept)| {
            let share = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
            let stretched = factor * kept;
            (stretched * kept / (stretched * (1.0 - share) + kept * share)) as f32
        });
        let loudness = |scale: f64| {
            if factor <= 1.0 {
                1.0
            } else {
                0.1 * scale * factor.ln() + 1.0
            }
        };
        let amplitude = match self.number("attention_factor")? {
            Some(amplitude) => amplitude,
            None => {
                loudness(self.number("mscale")?.unwrap_or(1.0))
                    / loudness(self.number("mscale_all_dim")?.unwrap_or(0.0))
            }
        };
        Ok(RopeConfig {
            periods: periods.collect(),
            amplitude: amplitude as f32,
            ..plain
        })
    }

    /// LongRoPE (Ding et al. 2024), of whose two tables the long one is always used: one cache cannot hold keys of
    /// both.
    fn longrope(&self, plain: RopeConfig) -> Result<RopeConfig, Error> {
        let original = self.original_context()?.unwrap_or(4096.0);
        let context = f64::from(self.context.unwrap_or(131_072));
        let factors = match self.table {
            Some(table) => table.numbers("long_factor")?,
            None => None,
        };
        let factors = factors.ok_or_else(|| Error::invalid("rope_scaling", "it has no long_factor"))?;
        let factor_of = |pair: usize| match factors[..] {
            [one] => Some(one),
            _ => factors.get(pair).copied(),
        };
        if factors.len() != 1 && factors.len() != plain.periods.len() {
            let reason = format!(
                "long_factor has {} entries for {} pairs",
                factors.len(),
                plain.periods.len()
            );
            return unusable("rope_scaling", reason);
        }
        let periods = powers(self.theta, plain.dims).enumerate();
        let periods = periods.map(|(pair, period)| (f64::from(factor_of(pair).unwrap_or(1.0)) * period) as f32);
        let growth = context / original;
        let amplitude = match self.number("long_mscale")?.filter(|amplitude| *amplitude != 0.0) {
            Some(amplitude) => amplitude,
            None if growth <= 1.0 => 1.0,
            None => (1.0 + growth.ln() / original.ln()).sqrt(),
        };
        Ok(RopeConfig {
            periods: periods.collect(),
            amplitude: amplitude as f32,
            ..plain
        })
    }
}

/// The periods of the ordinary rope: `theta^(2·pair/dims)`.
fn powers(theta: f64, dims: u32) -> impl Iterator<Item = f64> {
    (0..dims / 2).map(move |pair| theta.powf(2.0 * f64::from(pair) / f64::from(dims)))
}
