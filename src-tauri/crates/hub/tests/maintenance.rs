//! Verifying, repairing, updating and removing against a hub: requests, downloads, and the files that stay.

#![allow(clippy::unwrap_used)]

mod cache;

use std::fs;
use std::path::PathBuf;

use api::{DownloadState, Verification};
use cache::all_below;
use hub::{DownloadLimits, Error, Hub, ModelFolder};
use hub_imitation::{Fault, Imitation, Origin, Repository, Times};
use net::{Net, Settings};
use protocol::ErrorCode;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const ID: &str = "owner/model";

struct Here {
    folder: TempDir,
    hub: Hub,
}

impl Here {
    fn new(imitation: &Imitation) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let models = ModelFolder::at(None, Some(folder.path().join("cache"))).with_data_dir(folder.path().join("data"));
        let hub = Hub::open(
            Net::open(Settings::of_a_test(&imitation.endpoint())),
            models,
            &folder.path().join("data"),
        );
        hub.downloads().set_limits(DownloadLimits {
            margin: 0,
            without_network: std::time::Duration::from_millis(200),
            ..DownloadLimits::default()
        });
        Self { folder, hub }
    }

    async fn fetch(&self) {
        self.hub.downloads().start(ID, "main").await.unwrap();
        let mut downloads = self.hub.downloads().watch();
        let done = downloads.wait_for(|all| {
            all.first()
                .is_some_and(|download| download.state == DownloadState::Done)
        });
        drop(done.await.unwrap());
        self.hub.downloads().cancel(ID).await.unwrap();
    }

    async fn verify(&self) -> Verification {
        self.hub
            .upkeep()
            .verify(ID, CancellationToken::new(), |_| {})
            .await
            .unwrap()
    }

    async fn repair(&self) -> protocol::Result<Verification> {
        self.hub.upkeep().repair(ID, CancellationToken::new(), |_| {}).await
    }

    /// The blob behind a name of the snapshot.
    fn blob(&self, path: &str) -> PathBuf {
        let model = self.hub.local().list();
        PathBuf::from(&model[0].path).join(path).canonicalize().unwrap()
    }
}

fn pebble(imitation: &Imitation) -> Repository {
    imitation.repository(ID).pebble()
}

/// The requested files, each once.
fn fetched(imitation: &Imitation) -> Vec<String> {
    let mut paths: Vec<String> = imitation
        .requests()
        .into_iter()
        .filter(|request| request.origin == Origin::Hub && request.path.contains("/resolve/"))
        .map(|request| request.path.rsplit('/').next().unwrap_or_default().to_owned())
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_wrong_is_fetched_again() {
    let imitation = Imitation::start();
    let repository = pebble(&imitation);
    let here = Here::new(&imitation);
    here.fetch().await;
    let right = all_below(&here.folder.path().join("cache"));
    assert!(here.verify().await.wrong.is_empty());

    let weights = here.blob("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    bytes[5_000_000] ^= 0x40;
    fs::write(&weights, &bytes).unwrap();
    fs::remove_file(here.blob("generation_config.json")).unwrap();
    imitation.forget_requests();
    let found = here.verify().await;
    let paths: Vec<&str> = found.wrong.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["generation_config.json", "model.safetensors"]);
    assert_eq!(fetched(&imitation), [] as [&str; 0]);

    let repaired = here.repair().await.unwrap();
    assert!(repaired.wrong.is_empty(), "{repaired:?}");
    assert_eq!(fetched(&imitation), ["generation_config.json", "model.safetensors"]);
    assert_eq!(
        Some(fs::read(here.blob("model.safetensors")).unwrap()),
        repository.bytes("model.safetensors")
    );
    let now = all_below(&here.folder.path().join("cache"));
    let changed: Vec<_> = right
        .iter()
        .filter(|entry| !now.contains(entry))
        .map(|entry| &entry.0)
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert!(here.hub.downloads().watch().borrow().is_empty() || here.repair().await.unwrap().wrong.is_empty());
    // A model without faults is not fetched.
    imitation.forget_requests();
    here.repair().await.unwrap();
    assert_eq!(fetched(&imitation), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_knows_of_files_that_are_missing_altogether() {
    let imitation = Imitation::start();
    pebble(&imitation);
    let here = Here::new(&imitation);
    here.fetch().await;
    let model = here.hub.local().list();
    fs::remove_file(PathBuf::from(&model[0].path).join("chat_template.jinja")).unwrap();
    assert_eq!(here.verify().await.wrong[0].path, "chat_template.jinja");
    assert!(here.repair().await.unwrap().wrong.is_empty());
    assert!(here.hub.local().list()[0].problem.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_hub_verifying_works_and_repairing_keeps_what_is_there() {
    let imitation = Imitation::start();
    pebble(&imitation);
    let here = Here::new(&imitation);
    here.fetch().await;
    let config = here.blob("generation_config.json");
    fs::write(&config, "{}").unwrap();
    here.hub.net().set_offline(true).unwrap();
    let before = all_below(&here.folder.path().join("cache"));
    assert_eq!(here.verify().await.wrong[0].path, "generation_config.json");
    let error = here.repair().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Offline, "{error:?}");
    assert_eq!(all_below(&here.folder.path().join("cache")), before);
    here.hub.net().set_offline(false).unwrap();
    assert!(here.repair().await.unwrap().wrong.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_is_sent_wrong_bytes_twice_keeps_the_file_that_was_there() {
    let imitation = Imitation::start();
    pebble(&imitation);
    let here = Here::new(&imitation);
    here.fetch().await;
    let weights = here.blob("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    bytes[100_000] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    imitation.fault("model.safetensors", Fault::Corrupt { at: 1_000_000 }, Times::Always);
    let error = here.repair().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt, "{error:?}");
    assert_eq!(fs::read(&weights).unwrap(), bytes);
    imitation.clear_faults();
    assert!(here.repair().await.unwrap().wrong.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_tells_which_files_differ_and_what_must_be_fetched() {
    let imitation = Imitation::start();
    let repository = pebble(&imitation);
    let here = Here::new(&imitation);
    here.fetch().await;
    let old = repository.commit();
    assert_eq!(here.hub.upkeep().update_of(ID).await.unwrap(), None);
    // The weights are renamed and keep their content; the card changes.
    let weights = repository.bytes("model.safetensors").unwrap();
    let card = "# Another card".to_owned();
    let repository = repository
        .new_commit()
        .without("model.safetensors")
        .without("model.safetensors.index.json")
        .file("model-00001-of-00001.safetensors", weights)
        .file("README.md", card.clone())
        .file("image.png", vec![1; 1000]);
    let update = here.hub.upkeep().update_of(ID).await.unwrap().unwrap();
    assert_eq!((update.current, update.newest), (old.clone(), repository.commit()));
    assert_eq!(update.files, ["README.md", "model-00001-of-00001.safetensors"]);
    assert_eq!(update.bytes, card.len() as u64);

    imitation.forget_requests();
    here.fetch().await;
    assert_eq!(fetched(&imitation), ["README.md"]);
    assert_eq!(here.hub.upkeep().update_of(ID).await.unwrap(), None);
    let listed = here.hub.local().list();
    assert_eq!((listed.len(), listed[0].revisions.len()), (1, 2));
    assert_eq!(listed[0].revision.as_deref(), Some(repository.commit().as_str()));
    // The old commit can be removed; the weights are shared and stay.
    let old = format!("{ID}@{old}");
    let freed = here.hub.removals().files(&old).await.unwrap();
    assert!(
        freed.bytes_freed < 100_000 && freed.shared_bytes > 10_000_000,
        "{freed:?}"
    );
    here.hub.removals().remove_files(&old, false).await.unwrap();
    assert!(here.verify().await.wrong.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_fetched_is_not_removed() {
    let imitation = Imitation::start();
    pebble(&imitation);
    let here = Here::new(&imitation);
    imitation.fault("model.safetensors", Fault::Stall { after: 2_000_000 }, Times::Always);
    here.hub.downloads().start(ID, "main").await.unwrap();
    let mut downloads = here.hub.downloads().watch();
    let runs = downloads.wait_for(|all| all.first().is_some_and(|download| download.done > 1_000_000));
    drop(runs.await.unwrap());
    assert!(here.hub.removals().files(ID).await.unwrap().downloading);
    assert!(matches!(
        here.hub.removals().remove_files(ID, false).await,
        Err(Error::InUse(_))
    ));
    // Another Ponder, without this one's list of downloads, is refused by the locks.
    let other = ModelFolder::at(None, Some(here.folder.path().join("cache")));
    assert!(matches!(other.remove(ID, false), Err(Error::InUse(_))));
    assert!(other.list().is_empty());
    here.hub.downloads().pause(ID).await.unwrap();
    let paused = downloads.wait_for(|all| all[0].state == DownloadState::Paused);
    drop(paused.await.unwrap());
    assert!(here.hub.removals().remove_files(ID, false).await.is_ok());
    assert!(!here.folder.path().join("cache/models--owner--model").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_offline_stopped_goes_on_when_it_is_off() {
    let imitation = Imitation::start();
    pebble(&imitation);
    let here = Here::new(&imitation);
    let mut downloads = here.hub.downloads().watch();
    imitation.fault("model.safetensors", Fault::Stall { after: 2_000_000 }, Times::Once);
    here.hub.downloads().start(ID, "main").await.unwrap();
    let runs = downloads.wait_for(|all| all.first().is_some_and(|download| download.done > 1_000_000));
    drop(runs.await.unwrap());
    here.hub.net().set_offline(true).unwrap();
    let stopped = |all: &Vec<api::Download>| {
        all.first()
            .is_some_and(|download| download.state == DownloadState::Paused)
    };
    let paused = downloads.wait_for(stopped).await.unwrap()[0].clone();
    assert_eq!(paused.error.unwrap().code, ErrorCode::Offline);

    here.hub.net().set_offline(false).unwrap();
    here.hub.downloads().resume_offline();
    let done = downloads.wait_for(|all| {
        all.first()
            .is_some_and(|download| download.state == DownloadState::Done)
    });
    drop(done.await.unwrap());
    assert!(here.verify().await.wrong.is_empty());

    // A download that the user paused stays paused.
    let resting = |hub: &Hub| hub.downloads().watch().borrow()[0].state;
    here.hub.downloads().cancel(ID).await.unwrap();
    imitation.repository("owner/second").pebble();
    imitation.fault("model.safetensors", Fault::Stall { after: 2_000_000 }, Times::Once);
    here.hub.downloads().start("owner/second", "main").await.unwrap();
    here.hub.downloads().pause("owner/second").await.unwrap();
    drop(downloads.wait_for(stopped).await.unwrap());
    here.hub.downloads().resume_offline();
    assert_eq!(resting(&here.hub), DownloadState::Paused);
}
