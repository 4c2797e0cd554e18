use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use cli::input::{check_vision, read_messages, ImageArgs, Images, KvBitsArg, ModelArg};
use cli::output;
use protocol::Request;
use serde_json::json;

use crate::subject;

/// `ponder-bench logits`.
#[derive(Args)]
pub struct LogitsArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Token ids, separated by commas
    #[arg(long, value_delimiter = ',', required_unless_present_any = ["messages", "images"], conflicts_with_all = ["messages", "images"])]
    tokens: Vec<u32>,
    /// Conversation instead, as a JSON list of OpenAI messages
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    #[command(flatten)]
    images: ImageArgs,
    /// Print the logits of every position, not only the last
    #[arg(long)]
    all: bool,
    /// Process the tokens in chunks of N
    #[arg(long, value_name = "N")]
    chunk: Option<usize>,
    #[command(flatten)]
    kv_bits: KvBitsArg,
}

/// Prints logits.
///
/// # Errors
/// When a token id is outside the vocabulary, or the model cannot be loaded.
pub async fn run(args: LogitsArgs) -> Result<()> {
    let mut images = Images::default();
    let conversation = match &args.messages {
        Some(path) => read_messages(path, Some(&mut images))?,
        None => Vec::new(),
    };
    let (engine, model) = subject::open(&args.model).await?;
    let mut rows = if args.tokens.is_empty() {
        let mut request = Request::new(model, conversation);
        args.images.put_into(&mut request.messages, &mut images)?;
        request.image_detail = args.images.detail().await;
        request.images = images.0;
        request.kv_bits = args.kv_bits.kv_bits;
        check_vision(&engine, &request).await?;
        engine.prompt_logits(request, args.all, args.chunk)?
    } else {
        engine.kv_logits(model, args.tokens, args.all, args.chunk, args.kv_bits.kv_bits)?
    };
    let value = match args.all {
        true => json!(rows),
        false => json!(rows.pop().unwrap_or_default()),
    };
    Ok(output::line(&json!({ "logits": value }))?)
}
