use anyhow::Result;
use clap::Args;
use cli::input::ModelArg;
use cli::output;

use super::processor::open_chat_processor;

/// `ponder-bench stops`.
#[derive(Args)]
pub struct StopsArgs {
    #[command(flatten)]
    model: ModelArg,
}

/// Prints the stop set.
///
/// # Errors
/// When the model's files cannot be read.
pub async fn run(args: StopsArgs) -> Result<()> {
    let processor = open_chat_processor(&args.model).await?;
    output::line(&serde_json::to_value(processor.stops())?)?;
    Ok(())
}
