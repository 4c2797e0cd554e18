use anyhow::Result;
use api::{FitVerdict, MemoryFit};
use clap::Args;
use hub::memory_fit::{size, Question};
use protocol::KvBits;
use serde_json::json;

use crate::input::kv_bits;
use crate::{app, output};

/// Contexts of the table, in tokens.
const CONTEXTS: [u32; 5] = [4096, 8192, 16_384, 32_768, 131_072];

/// `ponder fit`.
#[derive(Args)]
pub struct FitArgs {
    /// A folder, a hub id or `pebble`; of a model that is not here only its config and the headers of its weights are
    /// fetched
    #[arg(value_name = "REF")]
    reference: String,
    /// Tokens of prompt and answer together; 16384 if the model has so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    /// Keys and values in 4 or 8 bits
    #[arg(long, value_name = "N", value_parser = kv_bits)]
    kv_bits: Option<KvBits>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Estimates the memory of a model and compares it with that of this computer.
///
/// # Errors
/// When the model is neither here nor on the hub, or will not run.
pub async fn run(args: FitArgs) -> Result<()> {
    let models = app::models().await;
    let reference = app::reference_of(&models, &args.reference);
    let hub = app::hub_of(models)?;
    let question = Question {
        context: args.context,
        kv_bits: args.kv_bits,
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
        FitVerdict::Comfortable => "comfortable",
        FitVerdict::Tight => "tight",
        FitVerdict::WillNotFit => "will not fit",
    }
}

fn table(reference: &str, fit: &MemoryFit, rows: &[MemoryFit]) -> String {
    let mut table = format!("{reference}: {} at {} tokens of context\n\n", word(fit), fit.context);
    for (name, bytes) in [
        ("weights", fit.weights),
        ("keys and values", fit.kv),
        ("working space", fit.working),
        ("needed", fit.needed),
        ("free now", fit.free),
        ("for a model at most", fit.total),
    ] {
        table.push_str(&format!("{name:<22}{:>10}\n", size(bytes)));
    }
    if let Some(measured) = fit.measured {
        table.push_str(&format!("{:<22}{:>10}\n", "measured here, at most", size(measured)));
    }
    table.push_str(&format!("\n{:>8}  {:>10}  \n", "context", "needed"));
    for row in rows {
        let (needed, word) = (size(row.needed), word(row));
        table.push_str(&format!("{:>8}  {needed:>10}  {word}\n", row.context));
    }
    match fit.comfortable_context {
        Some(context) => table.push_str(&format!("\ncomfortable up to {context} tokens\n")),
        None => table.push_str("\ncomfortable at no context\n"),
    }
    table
}
