use anyhow::Result;
use clap::Args;
use protocol::{EmbeddingInput, EmbeddingRequest, Engine, Error, ErrorCode, Priority};
use serde_json::json;

use crate::app;
use crate::input::piped_text;
use crate::output;

/// `ponder embed`.
#[derive(Args)]
pub struct EmbedArgs {
    /// An embedding model: a folder, a hub id, or the name that `ponder serve` lists
    #[arg(long, short, value_name = "REF")]
    model: String,
    /// Use the first N dimensions of each vector; only for models that were trained for it
    #[arg(long, value_name = "N")]
    dimensions: Option<u32>,
    /// Print one JSON object for each text, with its tokens; without it a list of numbers
    #[arg(long)]
    pub json: bool,
    /// The texts; without any, each line of standard input is one
    texts: Vec<String>,
}

/// Prints a vector for each text, a line each.
///
/// # Errors
/// When there is no text, or the model makes no vectors.
pub async fn run(args: EmbedArgs) -> Result<()> {
    let mut texts = args.texts;
    if texts.is_empty() {
        texts.extend(piped_text()?.iter().flat_map(|text| text.lines().map(str::to_owned)));
    }
    if texts.is_empty() {
        let message = "there is no text; pass some, or lines on standard input";
        return Err(Error::new(ErrorCode::BadRequest, message).into());
    }
    let request = EmbeddingRequest {
        model: app::model(Some(&args.model)).await?.into(),
        inputs: texts.iter().cloned().map(EmbeddingInput::Text).collect(),
        dimensions: args.dimensions,
        priority: Priority::default(),
        keep_alive: None,
    };
    let made = app::shared_engine()?.embed(request).await?;
    for (text, vector) in texts.iter().zip(&made.vectors) {
        let line = match args.json {
            true => json!({"text": text, "embedding": vector}),
            false => json!(vector),
        };
        output::line(&line)?;
    }
    Ok(())
}
