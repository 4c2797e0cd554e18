use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::progress::{until_stopped, FileProgress};
use crate::{app, output};

/// Examples below the help of `ponder import`.
pub const EXAMPLES: &str = "Examples:
  ponder import ~/Downloads/Qwen3-4B-4bit
  ponder import ~/Downloads/Qwen3-4B-4bit --json";

/// `ponder import`.
#[derive(Args)]
pub struct ImportArgs {
    /// Folder with config.json, tokenizer.json and safetensors files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Copies a folder with a model into Ponder's own.
///
/// # Errors
/// When it is no model that runs here; nothing is copied then.
pub async fn import(args: ImportArgs) -> Result<()> {
    let (hub, stop) = (app::hub().await?, CancellationToken::new());
    let progress = FileProgress::new(args.json);
    let imported = until_stopped(&stop, hub.upkeep().import(&args.folder, stop.clone(), progress.tell())).await;
    progress.clear();
    let model = imported.map_err(protocol::Error::from)?;
    if args.json {
        output::line(&json!({"type": "imported", "model": model.reference, "path": model.path.display().to_string()}))?;
    } else {
        let folder = args.folder.display();
        output::text(&format!(
            "Imported {folder}. Use it with --model {:?}\n",
            model.reference
        ))?;
    }
    Ok(())
}
