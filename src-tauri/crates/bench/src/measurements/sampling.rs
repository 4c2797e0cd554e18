use clap::Args;
use protocol::Sampling;

/// How tokens are drawn.
#[derive(Args)]
pub struct SamplingArgs {
    /// Temperature; 0 for the likeliest token
    #[arg(long, value_name = "T", default_value = "0")]
    temperature: f32,
    /// Smallest set of tokens with this probability; 0 for all
    #[arg(long, value_name = "P", default_value = "0")]
    top_p: f32,
    /// Likeliest tokens that are kept; 0 for all
    #[arg(long, value_name = "K", default_value = "0")]
    top_k: u32,
}

impl SamplingArgs {
    /// As the engine takes it.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: Some(self.temperature),
            top_p: Some(self.top_p),
            top_k: Some(self.top_k),
            seed: Some(1),
            ..Sampling::default()
        }
    }
}
