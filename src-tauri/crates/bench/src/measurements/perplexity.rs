use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use cli::output;
use engine::Perplexity;
use prompt::ChatProcessor;
use protocol::{Error, ErrorCode};
use serde_json::json;

use super::numbers::at_least_two;
use crate::subject::SubjectArgs;

/// `ponder-bench perplexity`.
#[derive(Args)]
pub struct PerplexityArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Text that the model predicts
    #[arg(value_name = "FILE")]
    text: PathBuf,
    /// Read at most N tokens of the text
    #[arg(long, value_name = "N", default_value = "20000", value_parser = at_least_two())]
    tokens: usize,
    /// Tokens that are read together; the second half of each chunk is predicted
    #[arg(long, value_name = "N", default_value = "512", value_parser = at_least_two())]
    chunk: usize,
    /// Print one JSON object with the tokens, for another engine
    #[arg(long)]
    pub json: bool,
}

/// Prints how well a model predicts a text, in the way of llama.cpp's `llama-perplexity`: nothing is seen before a
/// chunk, and each token of its second half is predicted from all tokens of the chunk before it. A rest of the text
/// that fills no chunk is left out.
///
/// # Errors
/// When the text cannot be read or is shorter than a chunk, or the model cannot be loaded.
pub async fn run(args: PerplexityArgs) -> Result<()> {
    let text = std::fs::read_to_string(&args.text).with_context(|| format!("cannot read {}", args.text.display()))?;
    let (engine, model) = args.subject.open().await?;
    let processor = ChatProcessor::open(&model.path).map_err(Error::from)?;
    let mut tokens = processor.encode(&text).map_err(Error::from)?;
    tokens.truncate(args.tokens.min(tokens.len()) / args.chunk * args.chunk);
    if tokens.is_empty() {
        let reason = format!("the text has fewer than {} tokens", args.chunk);
        return Err(Error::new(ErrorCode::BadRequest, reason).into());
    }
    let measured = engine.perplexity(model.clone(), tokens.clone(), args.chunk)?;
    let Perplexity {
        perplexity,
        predictions,
    } = measured;
    if args.json {
        output::line(&json!({
            "model": model.reference, "chunk": args.chunk, "predictions": predictions, "perplexity": perplexity,
            "tokens": tokens,
        }))?;
    } else {
        output::text(&format!(
            "{}: perplexity {perplexity:.4}, {predictions} predictions in chunks of {} tokens\n",
            model.reference, args.chunk
        ))?;
    }
    Ok(())
}
