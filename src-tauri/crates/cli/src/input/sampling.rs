use clap::{Args, ValueEnum};
use protocol::{Sampling, Thinking};

use super::number::sampling_option;

/// The sampling parameters; an omitted value follows the model's generation_config.json.
#[derive(Args, Clone)]
pub struct SamplingArgs {
    /// Lower is more predictable, higher is more varied
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sampling_option("temperature"))]
    temperature: Option<f32>,
    /// Sample from the most likely tokens up to this total probability
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sampling_option("top_p"))]
    top_p: Option<f32>,
    /// Sample from only the N most likely tokens (0 turns it off)
    #[arg(long, value_name = "N")]
    top_k: Option<u32>,
    /// Drop tokens less likely than this share of the top token
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sampling_option("min_p"))]
    min_p: Option<f32>,
    /// Discourage repeated tokens (1 turns it off)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sampling_option("repetition_penalty"))]
    repetition_penalty: Option<f32>,
    /// Discourage tokens that already appeared (0 turns it off)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sampling_option("presence_penalty"))]
    presence_penalty: Option<f32>,
    /// Discourage tokens the more often they appeared (0 turns it off)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = sampling_option("frequency_penalty"))]
    frequency_penalty: Option<f32>,
    /// Same seed, same settings, same response
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// The sampling of a request.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            seed: self.seed,
            ..Sampling::default()
        }
    }
}

/// The value of `--thinking`.
#[derive(Clone, Copy, ValueEnum)]
pub enum ThinkingArg {
    /// Think, with the model's own effort
    On,
    /// Do not think
    Off,
    /// Think with low effort
    Low,
    /// Think with medium effort
    Medium,
    /// Think with high effort
    High,
}

impl From<ThinkingArg> for Thinking {
    fn from(arg: ThinkingArg) -> Self {
        match arg {
            ThinkingArg::On => Thinking::On,
            ThinkingArg::Off => Thinking::Off,
            ThinkingArg::Low => Thinking::Low,
            ThinkingArg::Medium => Thinking::Medium,
            ThinkingArg::High => Thinking::High,
        }
    }
}
