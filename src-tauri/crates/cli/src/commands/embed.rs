use anyhow::Result;
use clap::Args;
use protocol::{EmbeddingInput, EmbeddingRequest, Engine, Error, ErrorCode, Priority};
use serde_json::json;

use crate::app;
use crate::input::{piped_text, DeviceArg};
use crate::output;

/// Examples below the help of `ponder embed`.
pub const EXAMPLES: &str = r#"Examples:
  ponder embed -m mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ "A cup of tea"
  ponder embed -m mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ --json < lines.txt"#;

/// `ponder embed`.
#[derive(Args)]
pub struct EmbedArgs {
    /// Embedding model: a folder or Hugging Face ID
    #[arg(long, short, value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    device: DeviceArg,
    /// Keep only the first N dimensions, if the model supports it
    #[arg(long, value_name = "N")]
    dimensions: Option<u32>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Texts to embed (default: each line of standard input)
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
}

/// Prints a vector for each text, a line each.
///
/// # Errors
/// When there is no text, or the model makes no vectors.
pub async fn run(args: EmbedArgs) -> Result<()> {
    args.device.apply();
    let mut texts = args.texts;
    if texts.is_empty() {
        texts.extend(piped_text()?.iter().flat_map(|text| text.lines().map(str::to_owned)));
    }
    if texts.is_empty() {
        let message = "there is no text. Pass some, or lines on standard input";
        return Err(Error::new(ErrorCode::BadRequest, message).into());
    }
    let request = EmbeddingRequest {
        model: app::model(Some(&args.model)).await?.into(),
        inputs: texts.iter().cloned().map(EmbeddingInput::Text).collect(),
        dimensions: args.dimensions,
        priority: Priority::default(),
        keep_alive: None,
    };
    let made = app::shared_engine().await?.embed(request).await?;
    for (text, vector) in texts.iter().zip(&made.vectors) {
        let line = match args.json {
            true => json!({"text": text, "embedding": vector}),
            false => json!(vector),
        };
        output::line(&line)?;
    }
    Ok(())
}
