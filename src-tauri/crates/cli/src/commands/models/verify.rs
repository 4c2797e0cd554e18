use anyhow::Result;
use api::Verification;
use clap::Args;
use hub::{DownloadLimits, Hub};
use protocol::ErrorCode;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::progress::{until_stopped, FileProgress, WITHOUT_NETWORK};
use super::reference::absolute;
use super::size::size;
use crate::output::plural;
use crate::{app, output};

/// Examples below the help of `ponder verify`.
pub const VERIFY_EXAMPLES: &str = "Examples:
  ponder verify mlx-community/Qwen3-4B-4bit
  ponder verify ./models/Qwen3-4B-4bit --json";

/// Examples below the help of `ponder repair`.
pub const REPAIR_EXAMPLES: &str = "Examples:
  ponder repair mlx-community/Qwen3-4B-4bit
  ponder repair mlx-community/Qwen3-4B-4bit --json";

/// `ponder verify` and `ponder repair`.
#[derive(Args)]
pub struct VerifyArgs {
    /// Hugging Face ID, ID@COMMIT or model folder
    #[arg(value_name = "MODEL")]
    reference: String,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Reads all files of a model again and reports.
///
/// # Errors
/// When a file is wrong or missing, or the model is not here.
pub async fn verify(args: VerifyArgs) -> Result<()> {
    let (hub, reference) = hub_and_reference(&args.reference).await?;
    let (stop, progress) = (CancellationToken::new(), FileProgress::new(args.json));
    let work = hub.upkeep().verify(&reference, stop.clone(), progress.tell());
    let found = until_stopped(&stop, work).await;
    progress.clear();
    report(&found.map_err(protocol::Error::from)?, args.json)
}

/// Downloads damaged and missing files again and reports.
///
/// # Errors
/// When a file is still wrong or missing, or the model is not here.
pub async fn repair(args: VerifyArgs) -> Result<()> {
    let (hub, reference) = hub_and_reference(&args.reference).await?;
    let (stop, progress) = (CancellationToken::new(), FileProgress::new(args.json));
    hub.downloads().set_limits(DownloadLimits {
        without_network: WITHOUT_NETWORK,
        ..DownloadLimits::default()
    });
    let work = hub.upkeep().repair(&reference, stop.clone(), progress.tell());
    let found = tokio::select! {
        found = until_stopped(&stop, work) => found,
        never = progress.downloads(&hub) => never,
    };
    progress.clear();
    report(&found?, args.json)
}

/// The hub, and the reference of a model here that may be called as clients of the server call it.
async fn hub_and_reference(named: &str) -> Result<(Hub, String)> {
    let models = app::models().await;
    let reference = app::reference_of(&models, &absolute(named));
    Ok((app::hub_of(models)?, reference))
}

/// Prints the result; a wrong file is a failure.
fn report(found: &Verification, json: bool) -> Result<()> {
    if json {
        output::line(
            &json!({"type": "verified", "model": found.reference, "commit": found.commit, "files": found.files,
            "bytes": found.bytes, "wrong": found.wrong, "unknown": found.unknown}),
        )?;
    } else {
        for file in &found.wrong {
            output::text(&format!("{}: {}\n", file.path, file.message))?;
        }
        let verified = |files: u64| format!("{} verified", plural(files, "file"));
        let unknown = |files: u64| {
            format!(
                "{} well-formed, with no checksum to verify against",
                plural(files, "file")
            )
        };
        let right = match (u64::from(found.files), found.unknown.len() as u64) {
            (files, 0) => format!("{} ({})", verified(files), size(found.bytes)),
            (0, files) => unknown(files),
            (files, others) => format!("{}, {}", verified(files), unknown(others)),
        };
        if found.wrong.is_empty() {
            output::text(&format!("{}: {right}\n", found.reference))?;
        }
    }
    if found.wrong.is_empty() {
        return Ok(());
    }
    let (wrong, reference) = (found.wrong.len(), &found.reference);
    let files = plural(wrong as u64, "file");
    let are = if wrong == 1 { "is" } else { "are" };
    let message =
        format!("{files} of {reference} {are} damaged or missing. Run 'ponder repair {reference}' to fix this");
    Err(protocol::Error::new(ErrorCode::ModelBroken, message).into())
}
