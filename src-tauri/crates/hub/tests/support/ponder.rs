//! Downloads with waits short enough for tests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use api::DownloadState;
use hub::{DownloadLimits, Hub, ModelFolder};
use net::{Net, Settings};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Longer than all waits together.
const PATIENCE: Duration = Duration::from_secs(60);

/// Limits of a download whose faults pass or become final within a second or two.
pub fn limits() -> DownloadLimits {
    DownloadLimits {
        part: 2 << 20,
        first_delay: Duration::from_millis(20),
        longest_delay: Duration::from_millis(200),
        longest_asked_delay: Duration::from_secs(3),
        attempts: 5,
        stall: Duration::from_millis(600),
        without_network: Duration::from_secs(1),
        lock: Duration::from_millis(30),
        margin: 1 << 20,
        ..DownloadLimits::default()
    }
}

/// A freshly started Ponder over a hub and a cache.
pub struct Ponder {
    runtime: Runtime,
    hub: Hub,
    data: TempDir,
}

impl Ponder {
    pub fn at(endpoint: &str, cache: &Path) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let folder = ModelFolder::at(None, Some(PathBuf::from(cache)));
        let hub = Hub::open(Net::open(Settings::of_a_test(endpoint)), folder, data.path());
        hub.downloads().set_limits(limits());
        Self { runtime, hub, data }
    }

    /// Fetches a model; `Err` is the message for the user.
    pub fn fetch(&self, id: &str) -> Result<(), String> {
        self.runtime.block_on(async {
            let mut downloads = self.hub.downloads().watch();
            self.hub
                .downloads()
                .start(id, "main")
                .await
                .map_err(|error| error.to_string())?;
            let ended = downloads.wait_for(|downloads| {
                downloads.iter().any(|download| {
                    matches!(
                        download.state,
                        DownloadState::Done | DownloadState::Failed | DownloadState::Paused
                    )
                })
            });
            let ended = tokio::time::timeout(PATIENCE, ended).await;
            let downloads = ended
                .map_err(|_| "it did not end".to_owned())?
                .map_err(|error| error.to_string())?;
            let download = downloads.first().ok_or("there is no download")?;
            match (&download.state, &download.error) {
                (DownloadState::Done, None) => Ok(()),
                (_, Some(error)) => Err(error.message.clone()),
                (state, None) => Err(format!("it ended as {state:?} without a reason")),
            }
        })
    }

    /// The reason why a fetched model cannot run; `None` if it can.
    #[allow(dead_code, reason = "only some of the tests ask")]
    pub fn problem(&self, id: &str) -> Option<String> {
        let models = self.hub.local().list();
        let model = models.iter().find(|model| model.reference == id);
        model.map_or_else(
            || Some("it is not among the models".to_owned()),
            |model| model.problem.as_ref().map(ToString::to_string),
        )
    }

    /// The data folder.
    #[allow(dead_code, reason = "only some of the tests ask")]
    pub fn data(&self) -> &Path {
        self.data.path()
    }
}

impl Drop for Ponder {
    fn drop(&mut self) {
        // Downloads come to rest first, as when the app closes.
        self.runtime.block_on(self.hub.downloads().suspend());
    }
}
