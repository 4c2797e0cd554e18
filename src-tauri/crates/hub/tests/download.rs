//! Downloads against the hub imitation: fetched, kept and resumed bytes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{Download, DownloadState};
use hub::{DownloadLimits, Hub, ModelFolder};
use hub_imitation::{Fault, Imitation, Origin, Repository, Times};
use net::{Net, Settings};
use protocol::ErrorCode;
use tempfile::TempDir;

const ID: &str = "owner/model";
const SHARD: u64 = 3_000_000;

/// Limits with short waits, and with ranges small enough that every shard has several.
fn limits() -> DownloadLimits {
    DownloadLimits {
        part: 256 * 1024,
        first_delay: Duration::from_millis(5),
        longest_delay: Duration::from_millis(50),
        // Longer than any pause of a busy computer, because the test counts sent bytes.
        stall: Duration::from_secs(30),
        lock: Duration::from_millis(20),
        margin: 0,
        ..DownloadLimits::default()
    }
}

struct Here {
    folder: TempDir,
    hub: Hub,
}

impl Here {
    fn new(imitation: &Imitation) -> Self {
        Self::at(tempfile::tempdir().unwrap(), imitation, limits())
    }

    fn at(folder: TempDir, imitation: &Imitation, limits: DownloadLimits) -> Self {
        let hub = Self::another(&folder, imitation);
        hub.downloads().set_limits(limits);
        Self { folder, hub }
    }

    /// A second `Hub`, as another process would open it.
    fn another(folder: &TempDir, imitation: &Imitation) -> Hub {
        let models = ModelFolder::at(None, Some(folder.path().join("cache")));
        let net = Net::open(Settings::of_a_test(&imitation.endpoint()));
        let hub = Hub::open(net, models, &folder.path().join("data"));
        hub.downloads().set_limits(limits());
        hub
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("cache/models--owner--model")
    }

    /// Downloads until it rests, and returns its state then.
    async fn fetch(&self) -> Download {
        self.hub.downloads().start(ID, "main").await.unwrap();
        until(&self.hub, ended).await
    }
}

fn ended(download: &Download) -> bool {
    matches!(
        download.state,
        DownloadState::Done | DownloadState::Failed | DownloadState::Paused
    )
}

async fn until(hub: &Hub, enough: impl Fn(&Download) -> bool) -> Download {
    let mut downloads = hub.downloads().watch();
    let found = downloads
        .wait_for(|all| all.first().is_some_and(&enough))
        .await
        .unwrap();
    found[0].clone()
}

/// Two shards, and small files, some of which no model needs.
fn model(imitation: &Imitation) -> Repository {
    imitation
        .repository(ID)
        .file("config.json", r#"{"model_type":"llama"}"#)
        .file("tokenizer.json", "{}")
        .file("README.md", "# A model")
        .file("empty.json", "")
        .file(".gitattributes", "*.safetensors filter=lfs")
        .file("image.png", vec![1; 100])
        .generated("model-00001-of-00002.safetensors", SHARD, 1)
        .generated("model-00002-of-00002.safetensors", SHARD, 2)
        .file("model.safetensors.index.json", r#"{"weight_map":{}}"#)
}

/// Path and content of every file below, links followed.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

/// Asserts that the model is complete and right, and that nothing else is left.
fn assert_ready(here: &Here, source: &Repository) {
    let snapshot = here.repository().join("snapshots").join(source.commit());
    let there = contents(&snapshot);
    let wanted: BTreeMap<String, Vec<u8>> = source
        .paths()
        .into_iter()
        .filter(|path| !path.ends_with(".png") && !path.starts_with('.'))
        .map(|path| (path.clone(), source.bytes(&path).unwrap()))
        .collect();
    assert!(there == wanted, "{:?} instead of {:?}", there.keys(), wanted.keys());
    assert_eq!(
        fs::read_to_string(here.repository().join("refs/main")).unwrap(),
        source.commit()
    );
    let blobs = contents(&here.repository().join("blobs"));
    let mut names: Vec<String> = wanted.keys().map(|path| source.etag(path).unwrap()).collect();
    names.sort();
    names.dedup();
    assert_eq!(blobs.into_keys().collect::<Vec<_>>(), names);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_arrives_whole_and_is_not_fetched_twice() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    let here = Here::new(&imitation);
    let done = here.fetch().await;
    assert_eq!(done.state, DownloadState::Done, "{:?}", done.error);
    assert_eq!(done.done, done.total);
    assert_eq!(done.commit.as_deref(), Some(source.commit().as_str()));
    assert_ready(&here, &source);
    let parts = imitation
        .requests()
        .iter()
        .filter(|request| request.header("range").is_some())
        .count();
    assert!(parts >= 2 * 11, "{parts} parts");

    imitation.forget_requests();
    let again = Here::another(&here.folder, &imitation);
    again.downloads().start(ID, "main").await.unwrap();
    let done = until(&again, ended).await;
    assert_eq!((done.state, imitation.sent()), (DownloadState::Done, 0));

    // A file that another program damaged is fetched again, and no other.
    let etag = source.etag("model-00001-of-00002.safetensors").unwrap();
    let blob = here.repository().join("blobs").join(etag);
    let mut bytes = fs::read(&blob).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&blob, bytes).unwrap();
    let again = Here::another(&here.folder, &imitation);
    again.downloads().start(ID, "main").await.unwrap();
    let done = until(&again, ended).await;
    assert_eq!((done.state, imitation.sent()), (DownloadState::Done, SHARD));
    assert_ready(&here, &source);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_byte_is_fetched_once_more_and_a_file_that_is_wrong_twice_is_not_kept() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    let here = Here::new(&imitation);
    imitation.fault(
        "model-00001-of-00002.safetensors",
        Fault::Corrupt { at: 1_500_000 },
        Times::Always,
    );
    let failed = here.fetch().await;
    assert_eq!(failed.state, DownloadState::Failed);
    assert_eq!(failed.error.unwrap().code, ErrorCode::Corrupt);
    let etag = source.etag("model-00001-of-00002.safetensors").unwrap();
    let left = contents(&here.repository().join("blobs"));
    assert!(left.keys().all(|name| !name.starts_with(&etag)), "{:?}", left.keys());
    assert!(!here.repository().join("refs/main").exists());
    assert!(contents(&here.repository().join("snapshots")).is_empty());

    imitation.clear_faults();
    imitation.fault(
        "model-00001-of-00002.safetensors",
        Fault::Corrupt { at: 1_500_000 },
        Times::Once,
    );
    here.hub.downloads().resume(ID).await.unwrap();
    let done = until(&here.hub, |download| {
        download.state == DownloadState::Done || download.error.is_some()
    })
    .await;
    assert_eq!(done.state, DownloadState::Done, "{:?}", done.error);
    assert_ready(&here, &source);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_keeps_resume_goes_on_and_cancel_leaves_nothing() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    let here = Here::new(&imitation);
    let drip = Fault::Drip {
        bytes: 16 * 1024,
        pause: Duration::from_millis(10),
    };
    imitation.fault("model-00002-of-00002.safetensors", drip.clone(), Times::Always);
    here.hub.downloads().resume_pending().await.unwrap();
    here.hub.downloads().start(ID, "main").await.unwrap();
    until(&here.hub, |download| download.done > SHARD + SHARD / 4).await;
    here.hub.downloads().pause(ID).await.unwrap();
    let paused = until(&here.hub, |download| download.state == DownloadState::Paused).await;
    assert!(paused.error.is_none() && paused.done < paused.total);

    imitation.clear_faults();
    imitation.forget_requests();
    here.hub.downloads().resume(ID).await.unwrap();
    until(&here.hub, |download| download.state == DownloadState::Done).await;
    assert_ready(&here, &source);
    assert!(
        imitation.sent() <= paused.total - paused.done,
        "{} for {paused:?}",
        imitation.sent()
    );

    // The model of a finished download stays when that leaves the list; of one that is canceled nothing stays.
    here.hub.downloads().cancel(ID).await.unwrap();
    assert_ready(&here, &source);
    fs::remove_dir_all(here.repository()).unwrap();
    imitation.fault("model-00002-of-00002.safetensors", drip, Times::Always);
    here.hub.downloads().start(ID, "main").await.unwrap();
    until(&here.hub, |download| download.done > SHARD).await;
    here.hub.downloads().cancel(ID).await.unwrap();
    assert!(!here.repository().exists());
    assert!(!here.folder.path().join("cache/.locks/models--owner--model").exists());
    assert_eq!(
        here.hub.downloads().cancel(ID).await.unwrap_err().to_string(),
        protocol_message(ID)
    );
}

fn protocol_message(id: &str) -> String {
    hub::Error::NotFound(id.into()).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_goes_on_with_what_rested_and_not_with_what_was_paused() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    imitation
        .repository("owner/other")
        .generated("model.safetensors", SHARD, 3)
        .file("config.json", "{}");
    imitation.fault(
        "model-00002-of-00002.safetensors",
        Fault::Stall { after: 100_000 },
        Times::Always,
    );
    let here = Here::new(&imitation);
    here.hub.downloads().resume_pending().await.unwrap();
    here.hub.downloads().start("owner/other", "main").await.unwrap();
    here.hub.downloads().pause("owner/other").await.unwrap();
    here.hub.downloads().start(ID, "main").await.unwrap();
    here.hub.downloads().reorder(ID, 0).await.unwrap();
    until(&here.hub, |download| download.done > SHARD).await;
    here.hub.downloads().suspend().await;
    let Here { folder, hub } = here;
    drop(hub);

    imitation.clear_faults();
    let here = Here::at(folder, &imitation, limits());
    // The list belongs to the other process until that has ended, and a task that informs windows ends soon after.
    while !here.hub.downloads().resume_pending().await.unwrap() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(&here.hub, |download| download.state == DownloadState::Done).await;
    assert_ready(&here, &source);
    let all = here.hub.downloads().watch().borrow().clone();
    assert_eq!(
        all.iter().map(|download| download.id.as_str()).collect::<Vec<_>>(),
        [ID, "owner/other"]
    );
    assert_eq!(all[1].state, DownloadState::Paused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_at_once_fetch_everything_once() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    let here = Here::new(&imitation);
    let other = Here::another(&here.folder, &imitation);
    here.hub.downloads().start(ID, "main").await.unwrap();
    other.downloads().start(ID, "main").await.unwrap();
    let (one, two) = tokio::join!(until(&here.hub, ended), until(&other, ended));
    assert_eq!((one.state, two.state), (DownloadState::Done, DownloadState::Done));
    assert_ready(&here, &source);
    assert_eq!(imitation.sent(), one.total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_gone_is_waited_for() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    let here = Here::new(&imitation);
    imitation.disappear(Origin::Cdn);
    here.hub.downloads().start(ID, "main").await.unwrap();
    let waiting = until(&here.hub, |download| download.state == DownloadState::Waiting).await;
    assert_eq!(waiting.error.unwrap().code, ErrorCode::Network);
    assert!(waiting.retry_at.is_some());
    imitation.reappear(Origin::Cdn);
    let done = until(&here.hub, ended).await;
    assert_eq!(done.state, DownloadState::Done, "{:?}", done.error);
    assert_ready(&here, &source);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_room_is_a_pause_before_a_byte_is_fetched() {
    let imitation = Imitation::start();
    model(&imitation);
    let limits = DownloadLimits {
        margin: u64::MAX / 2,
        ..limits()
    };
    let here = Here::at(tempfile::tempdir().unwrap(), &imitation, limits);
    let paused = here.fetch().await;
    assert_eq!(paused.state, DownloadState::Paused);
    assert_eq!(paused.error.unwrap().code, ErrorCode::DiskFull);
    assert_eq!(imitation.sent(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_commit_in_the_middle_is_fetched_and_the_old_one_leaves_nothing() {
    let imitation = Imitation::start();
    let source = model(&imitation);
    let here = Here::new(&imitation);
    let overwritten = Fault::Overwritten { after: 100_000 };
    imitation.fault("model-00002-of-00002.safetensors", overwritten, Times::Once);
    let before = source.commit();
    let done = here.fetch().await;
    assert_eq!(done.state, DownloadState::Done, "{:?}", done.error);
    assert!(source.commit() != before && done.commit == Some(source.commit()));
    assert_ready(&here, &source);
}
