use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Result;
use api::{Download, DownloadState};
use clap::Args;
use hub::huggingface::address::ModelAddress;
use hub::DownloadLimits;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use protocol::ErrorCode;
use serde_json::json;

use super::progress::WITHOUT_NETWORK;
use super::size::precise_size;
use crate::{app, output};

/// The time between two lines if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Examples below the help of `ponder pull`.
pub const EXAMPLES: &str = "Examples:
  ponder pull mlx-community/Qwen3-4B-4bit
  ponder pull https://huggingface.co/mlx-community/Qwen3-4B-4bit
  ponder pull mlx-community/Qwen3-4B-4bit --revision main --json";

/// `ponder pull`.
#[derive(Args)]
pub struct PullArgs {
    /// Hugging Face ID, or the address of the model's page
    #[arg(value_name = "MODEL")]
    id: String,
    /// Branch, tag or commit (default: main)
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Downloads a model and verifies it.
///
/// # Errors
/// When the model is not complete at the end; the downloaded part is kept, and the same command resumes.
pub async fn pull(args: PullArgs) -> Result<()> {
    let hub = app::hub().await?;
    hub.downloads().set_limits(DownloadLimits {
        without_network: WITHOUT_NETWORK,
        ..DownloadLimits::default()
    });
    let (id, revision) = model(&args, hub.net().endpoint())?;
    let mut downloads = hub.downloads().watch();
    let started = hub.downloads().start(&id, &revision).await;
    started.map_err(protocol::Error::from)?;
    let mut reporter = Reporter::new(args.json);
    loop {
        tokio::select! {
            changed = downloads.changed() => changed?,
            stopped = tokio::signal::ctrl_c() => {
                stopped?;
                hub.downloads().suspend().await;
                reporter.clear();
                let message = format!("download stopped. Run 'ponder pull {id}' again to resume");
                return Err(protocol::Error::new(ErrorCode::Stopped, message).into());
            }
        }
        let Some(download) = downloads.borrow_and_update().first().cloned() else {
            continue;
        };
        reporter.update(&download)?;
        match download.state {
            DownloadState::Done => break,
            DownloadState::Failed | DownloadState::Paused => {
                reporter.clear();
                let unknown = || protocol::Error::new(ErrorCode::Stopped, "the download was stopped");
                return Err(download.error.unwrap_or_else(unknown).into());
            }
            _ => {}
        }
    }
    reporter.clear();
    let reference = match revision.as_str() {
        "main" => id,
        revision => format!("{id}@{revision}"),
    };
    let model = hub.local().find(&reference).map_err(protocol::Error::from)?;
    if args.json {
        let path = model.path.display().to_string();
        output::line(&json!({"type": "done", "model": model.reference, "commit": model.revision, "path": path}))?;
    } else {
        output::text(&format!("{} is ready: {}\n", model.reference, model.path.display()))?;
    }
    Ok(())
}

/// The id and the revision, from an id or an address.
fn model(args: &PullArgs, endpoint: &net::Endpoint) -> Result<(String, String)> {
    let text = args.id.trim().trim_end_matches('/');
    let (id, named) = match ModelAddress::parse(text, endpoint).map_err(protocol::Error::from)? {
        Some(ModelAddress::Model { id, revision }) => (id.to_string(), revision.to_string()),
        Some(ModelAddress::Owner(owner)) => {
            let message = format!("{text} has several models. Name one of them, for example {owner}/NAME");
            return Err(protocol::Error::new(ErrorCode::BadRequest, message).into());
        }
        // Some models of Hugging Face have no owner.
        None => (text.trim_matches('/').to_owned(), "main".to_owned()),
    };
    match &args.revision {
        Some(asked) if named != "main" && *asked != named => {
            let message = format!("the address has revision {named}, but --revision is {asked}. Use one of them");
            Err(protocol::Error::new(ErrorCode::BadRequest, message).into())
        }
        asked => Ok((id, asked.clone().unwrap_or(named))),
    }
}

/// The progress of the download.
enum Reporter {
    Json,
    Lines { state: Option<DownloadState>, at: Instant },
    Bars(Bars),
}

impl Reporter {
    fn new(json: bool) -> Self {
        if json {
            Self::Json
        } else if std::io::stderr().is_terminal() {
            Self::Bars(Bars::new())
        } else {
            Self::Lines {
                state: None,
                at: Instant::now(),
            }
        }
    }

    fn update(&mut self, download: &Download) -> Result<()> {
        match self {
            Self::Json => output::line(&json!({
                "type": "progress",
                "state": download.state,
                "commit": download.commit,
                "done": download.done,
                "total": download.total,
                "bytes_per_second": download.bytes_per_second.round(),
                "seconds_left": download.seconds_left.map(f64::round),
                "error": download.error,
            }))?,
            Self::Lines { state, at } => {
                if *state != Some(download.state) || at.elapsed() >= LINE_EVERY {
                    (*state, *at) = (Some(download.state), Instant::now());
                    eprintln!("{}: {}", download.id, line(download));
                }
            }
            Self::Bars(bars) => bars.update(download),
        }
        Ok(())
    }

    fn clear(&self) {
        if let Self::Bars(bars) = self {
            // A terminal that is gone needs no clearing.
            let _ = bars.all.clear();
        }
    }
}

/// A bar for each file that is being downloaded, and one for the whole.
struct Bars {
    all: MultiProgress,
    whole: ProgressBar,
    files: HashMap<String, ProgressBar>,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let whole = all.add(bar());
        Self {
            all,
            whole,
            files: HashMap::new(),
        }
    }

    fn update(&mut self, download: &Download) {
        for file in &download.files {
            let checking = match file.state {
                DownloadState::Running | DownloadState::Waiting => "",
                DownloadState::Verifying => " · verifying",
                _ => {
                    if let Some(bar) = self.files.remove(&file.path) {
                        bar.finish_and_clear();
                    }
                    continue;
                }
            };
            let new = || self.all.insert_before(&self.whole, bar());
            let bar = self.files.entry(file.path.clone()).or_insert_with(new);
            bar.set_length(file.bytes);
            bar.set_position(file.done);
            bar.set_message(format!("{}{checking}", file.path));
        }
        // 0 of 0 would be drawn as a full bar.
        self.whole.set_length(download.total.max(1));
        self.whole.set_position(download.done);
        self.whole.set_message(line(download));
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {wide_msg}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A download as a line.
fn line(download: &Download) -> String {
    let reason = download.error.as_ref().map_or("", |error| &error.message);
    let amount = || format!("{} of {}", precise_size(download.done), precise_size(download.total));
    match download.state {
        DownloadState::Queued => "queued".into(),
        DownloadState::Listing => "preparing".into(),
        DownloadState::Verifying => format!("{}, verifying", amount()),
        DownloadState::Waiting => format!("{}, waiting: {reason}", amount()),
        DownloadState::Paused => format!("{}, paused", amount()),
        DownloadState::Failed => format!("{}, failed", amount()),
        DownloadState::Done => format!("{}, downloaded", amount()),
        DownloadState::Running => {
            let left = download.seconds_left.map(|seconds| format!(", {} left", time(seconds)));
            let rate = precise_size(download.bytes_per_second.max(0.0) as u64);
            format!("{}, {rate}/s{}", amount(), left.unwrap_or_default())
        }
    }
}

fn time(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(id: &str, revision: Option<&str>) -> Result<(String, String)> {
        let args = PullArgs {
            id: id.into(),
            revision: revision.map(Into::into),
            json: false,
        };
        let endpoint = net::Endpoint::parse("https://huggingface.co").expect("an address");
        model(&args, &endpoint)
    }

    #[test]
    fn a_model_is_named_by_its_id_or_by_an_address() {
        for (text, revision, expected) in [
            ("owner/model", None, "main"),
            ("owner/model/", None, "main"),
            ("owner/model", Some("v1"), "v1"),
            ("owner/model@v1", None, "v1"),
            ("hf:owner/model", None, "main"),
            ("https://huggingface.co/owner/model", None, "main"),
            ("https://huggingface.co/owner/model/tree/v1", None, "v1"),
            ("https://huggingface.co/owner/model/tree/v1", Some("v1"), "v1"),
            (
                "https://huggingface.co/owner/model/blob/main/config.json",
                Some("v1"),
                "v1",
            ),
        ] {
            let named = asked(text, revision).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(named, ("owner/model".into(), expected.into()), "{text}");
        }
        assert_eq!(
            asked("gpt2", None).expect("an old name"),
            ("gpt2".into(), "main".into())
        );
        for (text, named) in [
            ("https://huggingface.co/owner", "owner/NAME"),
            ("https://huggingface.co/datasets/owner/name", "data set"),
            ("https://evil.example/owner/model", "evil.example"),
            ("ftp://huggingface.co/owner/model", "ftp://"),
            ("owner/..", ".."),
        ] {
            let error = asked(text, None).expect_err(text).to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        assert!(asked("https://huggingface.co/owner/model/tree/v1", Some("v2")).is_err());
    }

    #[test]
    fn a_line_says_how_much_how_fast_and_how_long() {
        let mut download = Download {
            id: "o/m".into(),
            revision: "main".into(),
            commit: None,
            state: DownloadState::Running,
            files: Vec::new(),
            done: 1_200_000_000,
            total: 4_000_000_000,
            bytes_per_second: 80_000_000.0,
            seconds_left: Some(35.0),
            retry_at: None,
            error: None,
        };
        assert_eq!(line(&download), "1.20 GB of 4.00 GB, 80 MB/s, 35 s left");
        download.state = DownloadState::Waiting;
        download.error = Some(protocol::Error::new(ErrorCode::Network, "no network"));
        assert_eq!(line(&download), "1.20 GB of 4.00 GB, waiting: no network");
        assert_eq!(time(7_260.0), "2 h 1 min");
    }
}
