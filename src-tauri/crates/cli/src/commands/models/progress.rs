use std::future::Future;
use std::io::IsTerminal;
use std::time::Duration;

use api::VerifyProgress;
use hub::Hub;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::output;

/// The patience of a terminal without a network; the window waits for a day.
pub const WITHOUT_NETWORK: Duration = Duration::from_secs(120);

/// Waits for work. Ctrl+C cancels `stop`, and the work then ends by itself.
pub async fn until_stopped<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = tokio::signal::ctrl_c(), if !stop.is_cancelled() => stop.cancel(),
        }
    }
}

/// The progress of reading the files of a model, as a bar on a terminal or as JSON lines.
#[derive(Clone)]
pub struct FileProgress {
    json: bool,
    bar: ProgressBar,
}

impl FileProgress {
    /// Begins with nothing to show.
    pub fn new(json: bool) -> Self {
        let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {bytes_per_sec:>12} {wide_msg}");
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

    /// A function that shows each step.
    pub fn tell(&self) -> impl FnMut(VerifyProgress) + Send + Clone + 'static {
        let shown = self.clone();
        move |progress| {
            if shown.json {
                // A closed pipe leaves nobody to tell.
                let _ = output::line(
                    &json!({"type": "progress", "path": progress.path, "done": progress.done, "total": progress.total}),
                );
            }
            shown.bar.set_length(progress.total);
            shown.bar.set_position(progress.done);
            shown.bar.set_message(progress.path);
        }
    }

    /// Shows downloads until it is dropped; it never ends by itself.
    pub async fn downloads<T>(&self, hub: &Hub) -> T {
        let mut downloads = hub.downloads().watch();
        while downloads.changed().await.is_ok() {
            for download in downloads.borrow_and_update().iter() {
                self.tell()(VerifyProgress {
                    path: format!("downloading {}", download.id),
                    done: download.done,
                    total: download.total,
                });
            }
        }
        std::future::pending().await
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
