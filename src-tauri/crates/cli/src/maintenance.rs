//! `ponder verify`, `repair`, `remove` and `import`: looking after the models that are here.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use api::{Removal, Verification, VerifyProgress};
use clap::Args;
use hub::{Hub, TransferLimits};
use indicatif::{ProgressBar, ProgressStyle};
use protocol::ErrorCode;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::models::size;
use crate::{app, output, pull};

#[derive(Args)]
pub struct VerifyArgs {
    /// A folder, a hub id, or a hub id with `@` and a commit
    #[arg(value_name = "REF")]
    reference: String,
    /// Print JSON lines
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RemoveArgs {
    /// A hub id (all commits of it), a hub id with `@` and a commit (that one), or a folder
    #[arg(value_name = "REF")]
    reference: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Delete the model's files in a folder of your own too, instead of only taking it off the list
    #[arg(long)]
    own_files_too: bool,
    /// Print JSON lines; needs --yes
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ImportArgs {
    /// A folder with config.json, tokenizer.json and safetensors files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print JSON lines
    #[arg(long)]
    pub json: bool,
}

/// Reads all files of a model again.
///
/// # Errors
/// When something is wrong with them, or the model is not here.
pub async fn verify(args: VerifyArgs) -> Result<()> {
    let (hub, stop) = (app::hub().await?, CancellationToken::new());
    let reporter = Reporter::new(args.json);
    let found = until_stopped(
        &stop,
        hub.verify(&reference(&args.reference), stop.clone(), reporter.tell()),
    )
    .await;
    reporter.clear();
    report(&found.map_err(protocol::Error::from)?, args.json)
}

/// Fetches again what is wrong.
///
/// # Errors
/// When something is wrong afterwards, or the model is not here.
pub async fn repair(args: VerifyArgs) -> Result<()> {
    let (hub, stop) = (app::hub().await?, CancellationToken::new());
    let reporter = Reporter::new(args.json);
    hub.set_limits(TransferLimits {
        without_network: pull::WITHOUT_NETWORK,
        ..TransferLimits::default()
    });
    let reference = reference(&args.reference);
    let work = hub.repair(&reference, stop.clone(), reporter.tell());
    let found = tokio::select! {
        found = until_stopped(&stop, work) => found,
        never = reporter.downloads(&hub) => never,
    };
    reporter.clear();
    report(&found?, args.json)
}

/// Prints what was found; anything wrong is a failure.
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

/// Removes a model, after asking.
///
/// # Errors
/// When it stays.
pub async fn remove(args: RemoveArgs) -> Result<()> {
    let app = App::open().await?;
    let hub = app::hub_of(app.models.clone())?;
    let reference = reference(&args.reference);
    let told = hub.plan_removal(&reference, app.chat.models()).await?;
    if let Some(reason) = told.refused.as_ref().filter(|_| !args.own_files_too) {
        return Err(protocol::Error::new(ErrorCode::BadRequest, reason.clone()).into());
    }
    if !args.yes {
        let asked = !args.json && std::io::stdin().is_terminal();
        if !asked {
            let message = format!(
                "removing {reference} frees {}; say --yes to do it",
                size(told.bytes_freed)
            );
            return Err(protocol::Error::new(ErrorCode::BadRequest, message).into());
        }
        if !confirmed(&question(&told))? {
            return Err(protocol::Error::new(ErrorCode::Stopped, "nothing was removed").into());
        }
    }
    let done = hub
        .remove_model(&reference, args.own_files_too, app.chat.models())
        .await?;
    if args.json {
        output::line(
            &json!({"type": "removed", "model": reference, "bytes_freed": done.bytes_freed, "shared_bytes": done.shared_bytes,
            "chats": told.chats, "chat_titles": told.chat_titles}),
        )?;
    } else {
        let chats = users(&told).map_or(String::new(), |chats| {
            format!("; it answered last in {chats}, which stay readable")
        });
        output::text(&format!(
            "{reference} is removed; {} are free again{chats}\n",
            size(done.bytes_freed)
        ))?;
    }
    Ok(())
}

fn question(told: &Removal) -> String {
    let shared = match told.shared_bytes {
        0 => String::new(),
        bytes => format!(" ({} stay, because other versions use them)", size(bytes)),
    };
    let chats = users(told).map_or_else(
        || "No chat was last answered by it.".to_owned(),
        |chats| format!("It answered last in {chats}, which stay readable."),
    );
    format!(
        "Remove {}? That frees {}{shared}. {chats} [y/N] ",
        told.reference,
        size(told.bytes_freed)
    )
}

/// The chats that a model was the last to answer, such as `2 chats (“Boats”, “Names”)`; `None` if there are none.
fn users(told: &Removal) -> Option<String> {
    const NAMED: usize = 5;
    if told.chats == 0 {
        return None;
    }
    let named = told.chat_titles.iter().filter(|title| !title.is_empty()).take(NAMED);
    let mut titles: Vec<String> = named
        .map(|title| format!("“{}”", title.replace(char::is_control, " ")))
        .collect();
    let more = (told.chats as usize).saturating_sub(titles.len());
    if more > 0 && !titles.is_empty() {
        titles.push(format!("{more} more"));
    }
    let count = if told.chats == 1 {
        "1 chat".to_owned()
    } else {
        format!("{} chats", told.chats)
    };
    Some(match titles.is_empty() {
        true => count,
        false => format!("{count} ({})", titles.join(", ")),
    })
}

fn confirmed(question: &str) -> Result<bool> {
    eprint!("{question}");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Copies a folder with a model into Ponder's own.
///
/// # Errors
/// When it is no model that runs here, with the reason; nothing is copied then.
pub async fn import(args: ImportArgs) -> Result<()> {
    let (hub, stop) = (app::hub().await?, CancellationToken::new());
    let reporter = Reporter::new(args.json);
    let imported = until_stopped(&stop, hub.import(&args.folder, stop.clone(), reporter.tell())).await;
    reporter.clear();
    let model = imported.map_err(protocol::Error::from)?;
    if args.json {
        output::line(&json!({"type": "imported", "model": model.reference, "path": model.path.display().to_string()}))?;
    } else {
        output::text(&format!(
            "{} is ready: --model {:?}\n",
            args.folder.display(),
            model.reference
        ))?;
    }
    Ok(())
}

/// A folder that is named from where the person stands.
fn reference(text: &str) -> String {
    let path = Path::new(text);
    let named = text.starts_with('.') || text.starts_with('/');
    match path.canonicalize() {
        Ok(full) if named && full.is_dir() => full.to_string_lossy().into_owned(),
        _ => text.trim_end_matches('/').to_owned(),
    }
}

/// Does the work; the interrupt key stops it, and the work then ends by itself.
async fn until_stopped<T>(stop: &CancellationToken, work: impl std::future::Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = tokio::signal::ctrl_c(), if !stop.is_cancelled() => stop.cancel(),
        }
    }
}

/// How far the work is, on a terminal or as JSON lines.
#[derive(Clone)]
struct Reporter {
    json: bool,
    bar: ProgressBar,
}

impl Reporter {
    fn new(json: bool) -> Self {
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} % {bytes_per_sec:>12} {wide_msg}");
        let bar = if json || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        Self {
            json,
            bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
        }
    }

    fn tell(&self) -> impl FnMut(VerifyProgress) + Send + Clone + 'static {
        let reporter = self.clone();
        move |progress| {
            if reporter.json {
                // A closed pipe leaves nobody to tell.
                let _ = output::line(
                    &json!({"type": "progress", "path": progress.path, "done": progress.done, "total": progress.total}),
                );
            }
            reporter.bar.set_length(progress.total);
            reporter.bar.set_position(progress.done);
            reporter.bar.set_message(progress.path);
        }
    }

    /// Shows downloads for as long as somebody waits for something else.
    async fn downloads<T>(&self, hub: &Hub) -> T {
        let mut downloads = hub.downloads();
        while downloads.changed().await.is_ok() {
            for download in downloads.borrow_and_update().iter() {
                self.tell()(VerifyProgress {
                    path: format!("fetching {}", download.id),
                    done: download.done,
                    total: download.total,
                });
            }
        }
        std::future::pending().await
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chats_that_a_model_answered_are_named_before_it_goes() {
        let told = |chats: u32, titles: &[&str]| Removal {
            reference: "owner/model".into(),
            chats,
            chat_titles: titles.iter().map(|title| (*title).to_owned()).collect(),
            ..Removal::default()
        };
        assert_eq!(users(&told(0, &[])), None);
        assert_eq!(users(&told(1, &["A boat"])).as_deref(), Some("1 chat (“A boat”)"));
        assert_eq!(users(&told(1, &[""])).as_deref(), Some("1 chat"));
        let many = told(7, &["a", "b\u{1b}[2J", "c", "d", "e", "f", "g"]);
        assert_eq!(
            users(&many).as_deref(),
            Some("7 chats (“a”, “b [2J”, “c”, “d”, “e”, 2 more)")
        );
        assert!(question(&many).contains("answered last in 7 chats"));
        assert!(question(&told(0, &[])).contains("No chat"));
    }
}
