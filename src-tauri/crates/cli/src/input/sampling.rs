use clap::{Args, ValueEnum};
use protocol::{KvBits, Sampling, Thinking};

/// How tokens are chosen; an omitted value follows the model's generation_config.json.
#[derive(Args, Clone)]
pub struct SamplingArgs {
    /// 0 always takes the likeliest token
    #[arg(long, allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Keep the smallest set of tokens with this much probability
    #[arg(long, allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Keep the N likeliest tokens
    #[arg(long, value_name = "N")]
    top_k: Option<u32>,
    /// Keep tokens at least this likely relative to the likeliest
    #[arg(long, allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Make tokens of the last few words less likely; 1 changes nothing
    #[arg(long, allow_negative_numbers = true)]
    repetition_penalty: Option<f32>,
    /// Make the answer repeatable
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
    /// Think a little
    Low,
    /// Think
    Medium,
    /// Think hard
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

/// Parses the value of `--kv-bits`.
///
/// # Errors
/// When it is neither 4 nor 8.
pub fn kv_bits(text: &str) -> Result<KvBits, String> {
    let bits: u8 = text.parse().map_err(|_| "it is 4 or 8".to_owned())?;
    KvBits::try_from(bits).map_err(|error| error.message)
}
