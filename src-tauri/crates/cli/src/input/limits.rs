use clap::builder::NonEmptyStringValueParser;
use clap::Args;
use protocol::limits::LEAST_CONTEXT;
use protocol::KvBits;

use super::number::at_least;

/// The limits of a response.
#[derive(Args, Clone)]
pub struct LimitArgs {
    /// Stop the response after N tokens, including thinking
    #[arg(long, value_name = "N", value_parser = at_least(1))]
    pub max_tokens: Option<u32>,
    /// Use at most N tokens of context to save memory
    #[arg(long, alias = "context", value_name = "N", value_parser = at_least(LEAST_CONTEXT))]
    pub context_length: Option<u32>,
    /// Stop the response at this text (repeatable)
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,
    #[command(flatten)]
    pub kv_bits: KvBitsArg,
}

/// `--kv-bits`.
#[derive(Args, Clone, Copy)]
pub struct KvBitsArg {
    /// Quantize the KV cache to 4 or 8 bits to save memory
    #[arg(long, value_name = "4|8", value_parser = kv_bits)]
    pub kv_bits: Option<KvBits>,
}

fn kv_bits(text: &str) -> Result<KvBits, String> {
    let bits = text.parse::<u8>().ok().and_then(|bits| KvBits::try_from(bits).ok());
    bits.ok_or_else(|| "it must be 4 or 8".to_owned())
}
