//! Newer versions of the app. The list of releases and the package are fetched through `net`, so the requests are
//! logged and respect Offline. Tauri's updater compares versions, verifies the signature and replaces the app.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::{AppRelease, AppUpdate};
use net::{Net, Purpose, Timeouts};
use protocol::{Error, ErrorCode, Reason, Result};
use tauri::{AppHandle, Runtime};
use tauri_plugin_updater::{Update, UpdaterExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::system::failed;

/// The maximum size of a list of releases, in bytes.
const LARGEST_LIST: u64 = 1 << 20;

/// The maximum size of a package, in bytes: it stays in memory until its signature is verified.
const LARGEST_PACKAGE: u64 = 1 << 30;

/// The maximum time without any new byte of a package.
const STALL: Duration = Duration::from_secs(60);

/// The address of this build's list of releases; `None` without the key that signs them.
///
/// Tauri's updater cannot be started without a key, so a build without one has no updater.
pub fn address(config: &tauri::Config) -> Option<String> {
    let updater = config.plugins.0.get("updater")?;
    updater["pubkey"].as_str().filter(|key| !key.is_empty())?;
    updater["endpoints"][0].as_str().map(str::to_owned)
}

/// Newer versions of the app, and the state of fetching and installing one.
pub struct AppUpdates {
    net: Net,
    address: Option<String>,
    /// The program that a new version replaces; `None` is this program.
    replaced: Option<PathBuf>,
    state: watch::Sender<AppUpdate>,
    found: Mutex<Option<Update>>,
    fetching: Mutex<CancellationToken>,
}

impl AppUpdates {
    /// `address` is the list of releases; `None` disables updates.
    pub fn new(net: Net, address: Option<String>) -> Self {
        let state = match address {
            Some(_) => AppUpdate::NotAsked,
            None => AppUpdate::Off,
        };
        Self {
            net,
            address,
            replaced: None,
            state: watch::channel(state).0,
            found: Mutex::default(),
            fetching: Mutex::default(),
        }
    }

    /// The current state.
    pub fn state(&self) -> AppUpdate {
        self.state.borrow().clone()
    }

    /// Notifies about every change of the state.
    pub fn follow(&self) -> watch::Receiver<AppUpdate> {
        self.state.subscribe()
    }

    /// Checks for a newer version. One that is being fetched or is installed already stays.
    ///
    /// # Errors
    /// Those of the network; `Corrupt` if the answer is no list of releases or has none for this computer; `NotFound`
    /// if this build takes no updates.
    pub async fn ask<R: Runtime>(&self, app: &AppHandle<R>) -> Result<AppUpdate> {
        let Some(address) = &self.address else {
            let message = "this build of Ponder takes no updates by itself";
            return Err(Error::because(Reason::NoUpdate, message));
        };
        let begun = self.state.send_if_modified(|state| match state {
            AppUpdate::NotAsked | AppUpdate::Newest | AppUpdate::Available { .. } => {
                *state = AppUpdate::Asking;
                true
            }
            _ => false,
        });
        if !begun {
            return Ok(self.state());
        }
        let found = self.newer(app, address).await;
        let state = match &found {
            Ok(Some(update)) => AppUpdate::Available {
                release: release(update),
            },
            Ok(None) => AppUpdate::Newest,
            Err(_) => AppUpdate::NotAsked,
        };
        self.state.send_replace(state);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found?;
        Ok(self.state())
    }

    async fn newer<R: Runtime>(&self, app: &AppHandle<R>, address: &str) -> Result<Option<Update>> {
        let answer = self
            .net
            .get(address, Purpose::AppUpdate)
            .send()
            .await?
            .error_for_status()?;
        let list = answer.json_capped(LARGEST_LIST).await?;
        let mut updater = app.updater_builder();
        if let Some(path) = &self.replaced {
            updater = updater.executable_path(path);
        }
        let update = updater.build().and_then(|updater| updater.restore_update(list));
        update.map_err(|error| {
            let message = format!(
                "the list of Ponder's releases could not be used ({error}); nothing was changed, and trying again later may help"
            );
            Error::because(Reason::UpdateList, message)
        })
    }

    /// Fetches the version that was found, verifies it and replaces this one.
    ///
    /// # Errors
    /// Those of the network; `Corrupt` if the signature is not that of the release; `Storage` if the app cannot be
    /// replaced; `Stopped` if the user stopped it. Nothing is changed then.
    pub async fn install(&self) -> Result<AppUpdate> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(update) = found else {
            let message = "no newer version of Ponder was found yet; look for one first";
            return Err(Error::because(Reason::NoUpdate, message));
        };
        let release = release(&update);
        let begun = self.state.send_if_modified(|state| {
            let begins = matches!(state, AppUpdate::Available { .. });
            if begins {
                *state = fetching(&release, 0, 0);
            }
            begins
        });
        if !begun {
            return Ok(self.state());
        }
        let stop = CancellationToken::new();
        *self.fetching.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
        let installed = tokio::select! {
            installed = self.fetch_and_install(update, &release) => installed,
            () = stop.cancelled() => Err(Error::new(ErrorCode::Stopped, "fetching the new version was stopped; nothing was changed")),
        };
        self.state.send_replace(match installed {
            Ok(()) => AppUpdate::Installed { release },
            Err(_) => AppUpdate::Available { release },
        });
        installed.map(|()| self.state())
    }

    /// Stops fetching.
    pub fn stop(&self) {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    async fn fetch_and_install(&self, update: Update, release: &AppRelease) -> Result<()> {
        let package = self.fetch(&update, release).await?;
        let installed = tokio::task::spawn_blocking(move || {
            update.verify(&package).map_err(|error| {
                let message = format!(
                    "the new version is not signed as Ponder's releases are ({error}); it was thrown away and nothing was changed"
                );
                Error::because(Reason::UpdateUnsigned, message)
            })?;
            update.install(&package).map_err(|error| {
                let message = format!(
                    "the new version could not be put in the place of this one ({error}); this one stays as it is"
                );
                Error::because(Reason::UpdateNotInstalled, message)
            })
        });
        let installed = installed.await;
        installed.map_err(failed(Reason::UpdateNotInstalled, "the new version was not installed"))?
    }

    async fn fetch(&self, update: &Update, release: &AppRelease) -> Result<Vec<u8>> {
        let timeouts = Timeouts {
            stall: Some(STALL),
            ..Timeouts::default()
        };
        let request = self.net.get(update.download_url.as_str(), Purpose::AppUpdate);
        let mut answer = request.timeouts(timeouts).send().await?.error_for_status()?;
        let total = answer.content_length().unwrap_or_default();
        let too_large = || {
            let message =
                "the new version is larger than any release of Ponder, so it was not fetched; nothing was changed";
            Error::because(Reason::UpdateList, message)
        };
        if total > LARGEST_PACKAGE {
            return Err(too_large());
        }
        let mut package = Vec::with_capacity(usize::try_from(total).unwrap_or_default());
        while let Some(piece) = answer.chunk().await? {
            package.extend_from_slice(&piece);
            if package.len() as u64 > LARGEST_PACKAGE {
                return Err(too_large());
            }
            self.state.send_replace(fetching(release, package.len() as u64, total));
        }
        Ok(package)
    }
}

fn fetching(release: &AppRelease, done: u64, total: u64) -> AppUpdate {
    AppUpdate::Fetching {
        release: release.clone(),
        done,
        total,
    }
}

fn release(update: &Update) -> AppRelease {
    AppRelease {
        version: update.version.clone(),
        notes: update.body.clone().unwrap_or_default(),
        at: update.date.map(|date| date.unix_timestamp() * 1000),
    }
}
