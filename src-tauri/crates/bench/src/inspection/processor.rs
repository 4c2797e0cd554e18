use std::path::PathBuf;

use anyhow::Result;
use cli::app;
use cli::input::ModelArg;
use prompt::ChatProcessor;

/// The tokenizer and template of a command's model, which needs no weights.
///
/// # Errors
/// When the model is not there or its files cannot be read.
pub async fn open_chat_processor(model: &ModelArg) -> Result<ChatProcessor> {
    Ok(ChatProcessor::open(&folder(model).await?).map_err(protocol::Error::from)?)
}

/// The folder of a command's model, which needs no weights.
///
/// # Errors
/// When the model is not there.
pub async fn folder(model: &ModelArg) -> Result<PathBuf> {
    let source = match &model.model {
        Some(reference) => app::models()
            .await
            .find_words(reference)
            .map_err(protocol::Error::from)?,
        None => app::model(None).await?,
    };
    Ok(source.path)
}
