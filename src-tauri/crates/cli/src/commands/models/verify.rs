use anyhow::Result;
use api::Verification;
use clap::Args;
use hub::DownloadLimits;
use protocol::ErrorCode;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::progress::{until_stopped, FileProgress, WITHOUT_NETWORK};
use super::reference::absolute;
use crate::{app, output};

/// `ponder verify` and `ponder repair`.
#[derive(Args)]
pub struct VerifyArgs {
    /// A folder, a hub id, or a hub id with `@` and a commit
    #[arg(value_name = "REF")]
    reference: String,
    /// Print JSON lines
    #[arg(long)]
    pub json: bool,
}

/// Reads all files of a model again and reports.
///
/// # Errors
/// When a file is wrong or missing, or the model is not here.
pub async fn verify(args: VerifyArgs) -> Result<()> {
    let (hub, stop) = (app::hub().await?, CancellationToken::new());
    let progress = FileProgress::new(args.json);
    let found = until_stopped(
        &stop,
        hub.upkeep()
            .verify(&absolute(&args.reference), stop.clone(), progress.tell()),
    )
    .await;
    progress.clear();
    report(&found.map_err(protocol::Error::from)?, args.json)
}

/// Fetches wrong and missing files again and reports.
///
/// # Errors
/// When a file is still wrong or missing, or the model is not here.
pub async fn repair(args: VerifyArgs) -> Result<()> {
    let (hub, stop) = (app::hub().await?, CancellationToken::new());
    let progress = FileProgress::new(args.json);
    hub.downloads().set_limits(DownloadLimits {
        without_network: WITHOUT_NETWORK,
        ..DownloadLimits::default()
    });
    let reference = absolute(&args.reference);
    let work = hub.upkeep().repair(&reference, stop.clone(), progress.tell());
    let found = tokio::select! {
        found = until_stopped(&stop, work) => found,
        never = progress.downloads(&hub) => never,
    };
    progress.clear();
    report(&found?, args.json)
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
            output::text(&format!("{}: {}\n", file.path, file.reason))?;
        }
        let right = match (found.files, found.unknown.len()) {
            (files, 0) => format!("all {files} files are right"),
            (0, unknown) => {
                format!("its {unknown} files are well-formed; nothing is known that they could be compared with")
            }
            (files, unknown) => format!("{files} files are right; {unknown} are well-formed and compared with nothing"),
        };
        if found.wrong.is_empty() {
            output::text(&format!("{}: {right}\n", found.reference))?;
        }
    }
    if found.wrong.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} of the files of {} are wrong or missing; `ponder repair` fetches them again, the others are right",
        found.wrong.len(),
        found.reference
    );
    Err(protocol::Error::new(ErrorCode::ModelBroken, message).into())
}
