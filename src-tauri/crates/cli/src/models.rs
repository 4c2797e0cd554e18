//! `ponder models`: what is on this computer.

use anyhow::Result;
use clap::Args;
use hub::ModelFolder;
use protocol::{LocalModel, ThinkingControl};
use serde_json::json;

use crate::output;

#[derive(Args)]
pub struct ModelsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Lists.
///
/// # Errors
/// When standard output is closed.
pub fn run(args: ModelsArgs) -> Result<()> {
    let models = ModelFolder::open().list();
    if args.json {
        output::line(&json!({"models": models}))?;
        return Ok(());
    }
    for model in &models {
        output::text(&row(model))?;
    }
    Ok(())
}

fn row(model: &LocalModel) -> String {
    let megabytes = model.bytes as f64 / 1e6;
    let size = if megabytes < 1000.0 {
        format!("{megabytes:.0} MB")
    } else {
        format!("{:.1} GB", megabytes / 1000.0)
    };
    let thinking = match &model.thinking {
        Some(ThinkingControl::Switch { .. }) => "thinking can be switched",
        Some(ThinkingControl::Levels { off: false, .. }) => "thinks in levels",
        Some(ThinkingControl::Levels { off: true, .. }) => "thinks in levels or not",
        Some(ThinkingControl::Always) => "always thinks",
        Some(ThinkingControl::Never) => "does not think",
        Some(ThinkingControl::ByRequest { default_on: true }) => "thinks, unless a system prompt asks for something else",
        Some(ThinkingControl::ByRequest { default_on: false }) => "thinks when a system prompt asks for it",
        None => "",
    };
    let context = model
        .context
        .map(|context| format!("{context} tokens of context"))
        .unwrap_or_default();
    let facts: Vec<&str> = [
        model.family.as_deref().unwrap_or(""),
        model.quantization.as_deref().unwrap_or(""),
        &context,
        thinking,
    ]
    .into_iter()
    .filter(|fact| !fact.is_empty())
    .collect();
    let mut row = format!("{:<44} {:>8}  {}\n", model.reference, size, facts.join(" · "));
    if let Some(problem) = &model.problem {
        row.push_str(&format!("{:<44} cannot be used: {problem}\n", ""));
    }
    row
}
