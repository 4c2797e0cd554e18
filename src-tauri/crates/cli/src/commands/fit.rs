use anyhow::Result;
use api::{FitVerdict, MemoryFit};
use clap::Args;
use hub::memory_fit::{size, Question};
use serde_json::json;

use crate::input::{at_least, KvBitsArg};
use crate::{app, output};

/// Contexts of the table, in tokens.
const CONTEXTS: [u32; 5] = [4096, 8192, 16_384, 32_768, 131_072];

/// Examples below the help of `ponder fit`.
pub const EXAMPLES: &str = "Examples:
  ponder fit mlx-community/Qwen3-4B-4bit
  ponder fit mlx-community/Qwen3-4B-4bit --context-length 32768 --kv-bits 8";

/// `ponder fit`.
#[derive(Args)]
pub struct FitArgs {
    /// Model folder, Hugging Face ID or pebble
    #[arg(value_name = "MODEL")]
    reference: String,
    /// Tokens of context (default: 16384, or the model's maximum)
    #[arg(long, alias = "context", value_name = "N", value_parser = at_least(1))]
    context_length: Option<u32>,
    #[command(flatten)]
    kv_bits: KvBitsArg,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Estimates the memory of a model and compares it with that of this computer.
///
/// # Errors
/// When the model is neither here nor on Hugging Face, or will not run.
pub async fn run(args: FitArgs) -> Result<()> {
    let models = app::models().await;
    let reference = app::reference_of(&models, &args.reference);
    let hub = app::hub_of(models)?;
    let question = Question {
        context: args.context_length,
        kv_bits: args.kv_bits.kv_bits,
        ..Question::new()
    };
    let of = |question: Question| {
        let (hub, reference) = (&hub, &reference);
        async move {
            hub.memory()
                .fit(reference, &question, 0)
                .await
                .map_err(protocol::Error::from)
        }
    };
    let fit = of(question).await?;
    let contexts = CONTEXTS.into_iter().filter(|context| *context < fit.most_context);
    let mut rows = Vec::new();
    for context in contexts.chain([fit.most_context]) {
        let context = Some(context);
        rows.push(of(Question { context, ..question }).await?);
    }
    match args.json {
        true => output::line(&json!({"model": args.reference, "fit": fit, "contexts": rows}))?,
        false => output::text(&table(&args.reference, &fit, &rows))?,
    }
    Ok(())
}

fn word(fit: &MemoryFit) -> &'static str {
    match fit.word {
        FitVerdict::Comfortable => "Fits",
        FitVerdict::Tight => "Tight",
        FitVerdict::WillNotFit => "Too large",
    }
}

fn table(reference: &str, fit: &MemoryFit, rows: &[MemoryFit]) -> String {
    let mut table = format!(
        "{reference}: {} at {} context\n\n",
        word(fit),
        output::context_length(fit.context)
    );
    for (name, bytes) in [
        ("Weights", fit.weights),
        ("KV cache", fit.kv),
        ("Working memory", fit.working),
        ("Needed", fit.needed),
        ("Free now", fit.free),
        ("Memory limit", fit.total),
    ] {
        table.push_str(&format!("{name:<22}{:>10}\n", size(bytes)));
    }
    if let Some(measured) = fit.measured {
        table.push_str(&format!("{:<22}{:>10}\n", "Measured peak", size(measured)));
    }
    table.push_str(&format!("\n{:>8}  {:>10}\n", "Context", "Needed"));
    for row in rows {
        let (needed, word) = (size(row.needed), word(row));
        let context = output::context_length(row.context);
        table.push_str(&format!("{context:>8}  {needed:>10}  {word}\n"));
    }
    let is_tight = |row: &MemoryFit| row.word == FitVerdict::Tight;
    let summary = match fit.comfortable_context {
        Some(context) => format!("Fits up to {} context", output::context_length(context)),
        None if rows.iter().any(is_tight) => "Tight at every context length that fits".to_owned(),
        None => "Too large at any context length".to_owned(),
    };
    table.push_str(&format!("\n{summary}\n"));
    table
}
