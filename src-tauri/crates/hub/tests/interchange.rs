//! One cache for several programs: huggingface_hub reads the files of hub, and hub reads those of huggingface_hub.

#![allow(clippy::unwrap_used)]

mod cache;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use api::DownloadState;
use cache::{add_pebble, all_below, commit, repository, FIRST, SECOND};
use hub::cache::{Cache, FilePath, RepositoryId, Revision};
use hub::{DownloadLimits, Error, Hub, ModelFolder};
use hub_imitation::{Fault, Imitation, Times};
use net::{Net, Settings};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

const ID: &str = "owner/model";
const THIRD: &str = "3333333333333333333333333333333333333333";

/// The Python with huggingface_hub; `None`, with a message, if the environment names none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("PONDER_ORACLE_PYTHON");
    if python.is_none() {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with huggingface_hub; `./dev test` provides one");
    }
    python.map(PathBuf::from)
}

/// A Python process that sends requests to `endpoint` alone, uses `cache`, and runs `script`.
fn script(python: &Path, cache: &Path, endpoint: &str, script: &str) -> Command {
    let mut command = Command::new(python);
    command.args([
        "-c",
        &format!("import sys, json\nCACHE = sys.argv[1]\nID = 'owner/model'\n{script}"),
    ]);
    command.arg(cache).env_remove("LD_LIBRARY_PATH");
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HF_TOKEN",
        "HF_HUB_OFFLINE",
    ] {
        command.env_remove(name);
    }
    command.env("HF_HOME", cache.join("home")).env("HF_HUB_CACHE", cache);
    command
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HUB_DISABLE_XET", "1")
        .env("HF_HUB_DISABLE_PROGRESS_BARS", "1");
    command
}

/// The script's output, as JSON.
fn told(python: &Path, cache: &Path, endpoint: &str, text: &str) -> Value {
    let ran = script(python, cache, endpoint, text).output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {errors}", String::from_utf8_lossy(&ran.stdout)))
}

/// huggingface_hub's report about the cache, made offline.
const LOOK: &str = "
from huggingface_hub import scan_cache_dir, snapshot_download, try_to_load_from_cache
found = scan_cache_dir(CACHE)
try:
    # As mlx-lm asks.
    patterns = ['*.json', 'model*.safetensors', '*.py', 'tokenizer.model', '*.tiktoken', 'tiktoken.model', '*.txt', '*.jsonl', '*.jinja']
    snapshot = snapshot_download(ID, local_files_only=True, allow_patterns=patterns)
    snapshot = snapshot_download(ID, local_files_only=True) if EVERYTHING else snapshot
except Exception as error:
    snapshot = type(error).__name__
print(json.dumps({
    'warnings': [str(warning) for warning in found.warnings],
    'incomplete': len(found.incomplete_files),
    'models': {repo.repo_id: {revision.commit_hash: {
        'refs': sorted(revision.refs), 'bytes': revision.size_on_disk, 'files': sorted(str(file.file_path.relative_to(revision.snapshot_path)) for file in revision.files),
    } for revision in repo.revisions} for repo in found.repos},
    'bytes': found.size_on_disk,
    'snapshot': snapshot,
    'config': str(try_to_load_from_cache(ID, 'config.json')),
}))
";

const NOBODY: &str = "http://127.0.0.1:9";

fn look(python: &Path, cache: &Path) -> Value {
    told(python, cache, NOBODY, &format!("EVERYTHING = True{LOOK}"))
}

fn hub(imitation: &Imitation, cache: &Path, data: &Path) -> Hub {
    let hub = Hub::open(
        Net::open(Settings::of_a_test(&imitation.endpoint())),
        ModelFolder::at(None, Some(cache.into())),
        data,
    );
    hub.downloads().set_limits(DownloadLimits {
        margin: 0,
        ..DownloadLimits::default()
    });
    hub
}

async fn fetch(hub: &Hub) {
    hub.downloads().start(ID, "main").await.unwrap();
    let mut downloads = hub.downloads().watch();
    let ended = downloads.wait_for(|all| {
        all.first()
            .is_some_and(|download| matches!(download.state, DownloadState::Done | DownloadState::Failed))
    });
    let ended = ended.await.unwrap()[0].clone();
    assert_eq!(ended.state, DownloadState::Done, "{ended:?}");
    hub.downloads().cancel(ID).await.unwrap();
    drop(downloads.wait_for(Vec::is_empty).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn huggingface_hub_accepts_what_was_fetched_here() {
    let Some(python) = python() else { return };
    let (imitation, cache, data) = (
        Imitation::start(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let served = imitation.repository(ID).pebble();
    let hub = hub(&imitation, cache.path(), data.path());

    // Half a download is no model, and no fault of the cache.
    imitation.fault("model.safetensors", Fault::Stall { after: 3_000_000 }, Times::Always);
    hub.downloads().start(ID, "main").await.unwrap();
    let mut downloads = hub.downloads().watch();
    drop(
        downloads
            .wait_for(|all| all.first().is_some_and(|download| download.done > 1_000_000))
            .await
            .unwrap(),
    );
    let half = look(&python, cache.path());
    assert_eq!(
        (&half["warnings"], &half["incomplete"]),
        (&serde_json::json!([]), &serde_json::json!(0)),
        "{half}"
    );
    assert_eq!(half["snapshot"], "LocalEntryNotFoundError", "{half}");
    hub.downloads().pause(ID).await.unwrap();
    drop(
        downloads
            .wait_for(|all| all[0].state == DownloadState::Paused)
            .await
            .unwrap(),
    );

    imitation.clear_faults();
    fetch(&hub).await;
    let seen = look(&python, cache.path());
    let revision = &seen["models"][ID][served.commit()];
    assert_eq!(
        (&seen["warnings"], &seen["incomplete"]),
        (&serde_json::json!([]), &serde_json::json!(0)),
        "{seen}"
    );
    assert_eq!(revision["refs"], serde_json::json!(["main"]));
    let ours = hub.local().find(ID).unwrap();
    assert_eq!(
        seen["snapshot"].as_str().unwrap(),
        ours.path.canonicalize().unwrap().to_str().unwrap()
    );
    assert!(seen["config"].as_str().unwrap().ends_with("config.json"));
    let paths: Vec<&str> = revision["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        paths.contains(&"model.safetensors") && paths.contains(&"tokenizer.json"),
        "{paths:?}"
    );

    // Online it fetches nothing but files that no model needs.
    imitation.forget_requests();
    let text = "from huggingface_hub import snapshot_download\nprint(json.dumps(snapshot_download(ID)))";
    let again = told(&python, cache.path(), &imitation.endpoint(), text);
    assert_eq!(again.as_str().unwrap(), seen["snapshot"].as_str().unwrap());
    assert!(
        imitation.sent() < 2_000_000
            || !imitation
                .requests()
                .iter()
                .any(|request| request.method == "GET" && request.path.contains("safetensors"))
    );

    // Files that it deletes are gone here as well, and the other way round.
    fetch(&hub).await;
    hub.removals().remove_files(ID, false).await.unwrap();
    let gone = look(&python, cache.path());
    assert_eq!(
        (&gone["warnings"], &gone["models"]),
        (&serde_json::json!([]), &serde_json::json!({})),
        "{gone}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_huggingface_hub_fetched_is_listed_verified_and_gone_on_with() {
    let Some(python) = python() else { return };
    let (imitation, cache, data) = (
        Imitation::start(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let served = imitation
        .repository(ID)
        .pebble()
        .file("sub/extra.bin", "deeper")
        .file("README.md", "# card");
    let hub = hub(&imitation, cache.path(), data.path());
    // A program that is killed in the middle leaves files that must not be taken for a model.
    imitation.fault("model.safetensors", Fault::Stall { after: 12_000_000 }, Times::Always);
    let text = "from huggingface_hub import snapshot_download\nprint('begun', flush=True)\nsnapshot_download(ID, max_workers=1)";
    let mut child = script(&python, cache.path(), &imitation.endpoint(), text)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let begun = std::time::Instant::now();
    let half = |path: &Path| {
        fs::metadata(path).is_ok_and(|meta| meta.len() > 0)
            && path.extension().is_some_and(|ending| ending == "incomplete")
    };
    while !all_below(cache.path()).iter().any(|(path, _)| half(path)) {
        assert!(begun.elapsed().as_secs() < 300, "it never began");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // While it runs, nothing of its files is removed.
    assert!(matches!(hub.local().remove(ID, false), Err(Error::InUse(_))));
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = hub.local().list();
    assert!(
        listed.iter().all(|model| model.incomplete && model.problem.is_some()),
        "{listed:?}"
    );
    assert!(hub.local().find(ID).is_err());

    imitation.clear_faults();
    fetch(&hub).await;
    // Its own list names more files than a model needs.
    let seen = told(&python, cache.path(), NOBODY, &format!("EVERYTHING = False{LOOK}"));
    assert_eq!(seen["warnings"], serde_json::json!([]), "{seen}");
    assert_eq!(
        Path::new(seen["snapshot"].as_str().unwrap()),
        hub.local().find(ID).unwrap().path.canonicalize().unwrap()
    );
    hub.removals().remove_files(ID, false).await.unwrap();

    let text = "from huggingface_hub import snapshot_download\nprint(json.dumps([snapshot_download(ID), snapshot_download(ID, revision='main', etag_timeout=5)]))";
    told(&python, cache.path(), &imitation.endpoint(), text);
    let listed = hub.local().list();
    assert_eq!((listed.len(), listed[0].problem.as_ref()), (1, None));
    assert_eq!(
        (listed[0].revision.clone(), listed[0].revisions[0].refs.clone()),
        (Some(served.commit()), vec!["main".to_owned()])
    );
    let verified = hub
        .local()
        .verify(ID, None, &CancellationToken::new(), &mut |_| {})
        .unwrap()
        .verification;
    assert!(verified.wrong.is_empty() && verified.unknown.is_empty(), "{verified:?}");
    assert_eq!(verified.files as usize, served.paths().len());
    // A missing file of its list is noticed without a request.
    let template = hub.local().find(ID).unwrap().path.join("chat_template.jinja");
    let target = fs::read_link(&template).unwrap();
    fs::remove_file(&template).unwrap();
    assert!(matches!(hub.local().find(ID), Err(Error::Incomplete { .. })));
    let found = hub
        .local()
        .verify(ID, None, &CancellationToken::new(), &mut |_| {})
        .unwrap()
        .verification;
    assert_eq!(
        found.wrong.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["chat_template.jinja"]
    );
    std::os::unix::fs::symlink(target, &template).unwrap();
    // Both programs share the blobs: only the rest is requested.
    imitation.forget_requests();
    fetch(&hub).await;
    assert!(
        !imitation
            .requests()
            .iter()
            .any(|request| request.path.contains("/resolve/")),
        "nothing is fetched twice"
    );
    let freed = hub.removals().files(ID).await.unwrap().bytes_freed;
    assert!(freed >= verified.bytes);
}

#[test]
fn its_scan_is_clean_whatever_is_written_here() {
    let Some(python) = python() else { return };
    let cache = tempfile::tempdir().unwrap();
    let first = repository(cache.path(), ID);
    add_pebble(&first, &commit(FIRST), &[("README.md", b"first")]);
    first
        .set_ref(&Revision::new("refs/pr/1").unwrap(), &commit(FIRST))
        .unwrap();
    add_pebble(&first, &commit(SECOND), &[("a/b/c.txt", b"deep")]);
    let flat = Cache::at(cache.path())
        .without_links()
        .repository(&RepositoryId::new("gpt2").unwrap());
    let etag = cache::etag_of("config.json", b"{}");
    flat.prepare().unwrap();
    fs::write(flat.blob(&etag), "{}").unwrap();
    flat.publish(&commit(THIRD), &FilePath::new("config.json").unwrap(), &etag)
        .unwrap();
    fs::write(first.partial(&cache::etag_of("x", b"x")), "part").unwrap();
    // The files that a crash in the middle of a removal leaves.
    let left = cache.path().join(".locks/.ponder-removed-0");
    fs::create_dir_all(left.join("snapshots")).unwrap();
    fs::create_dir_all(first.folder().join(".ponder-removed-1")).unwrap();

    let seen = look(&python, cache.path());
    assert_eq!(
        (&seen["warnings"], &seen["incomplete"]),
        (&serde_json::json!([]), &serde_json::json!(0)),
        "{seen}"
    );
    assert_eq!(seen["models"][ID][FIRST]["refs"], serde_json::json!(["refs/pr/1"]));
    assert_eq!(seen["models"][ID][SECOND]["refs"], serde_json::json!(["main"]));
    assert_eq!(
        seen["models"]["gpt2"][THIRD]["files"],
        serde_json::json!(["config.json"])
    );

    assert_eq!(
        seen["bytes"].as_u64().unwrap(),
        cache::bytes_of_blobs(&first) - "part".len() as u64
            + fs::metadata(flat.snapshot(&commit(THIRD)).join("config.json"))
                .unwrap()
                .len()
    );
    let listed = ModelFolder::at(None, Some(cache.path().into())).list();
    let ours = &listed.iter().find(|model| model.reference == ID).unwrap().revisions;
    assert_eq!(ours.len(), 2);
    for revision in ours {
        let theirs = &seen["models"][ID][&revision.commit];
        assert_eq!(
            (&theirs["bytes"], &theirs["refs"]),
            (&revision.bytes.into(), &revision.refs.clone().into())
        );
        let files = first.files(&commit(&revision.commit));
        let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(theirs["files"], serde_json::json!(names));
    }

    // Removing one commit leaves a cache that huggingface_hub accepts, and both agree about the freed bytes.
    let text = format!("from huggingface_hub import scan_cache_dir\nprint(json.dumps(scan_cache_dir(CACHE).delete_revisions('{FIRST}').expected_freed_size))");
    let expected = told(&python, cache.path(), NOBODY, &text).as_u64().unwrap();
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    assert_eq!(
        folder.remove(&format!("{ID}@{FIRST}"), false).unwrap().bytes_freed,
        expected
    );
    let seen = look(&python, cache.path());
    assert_eq!(seen["warnings"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["models"][ID].as_object().unwrap().len(), 1);
    assert!(!first.folder().join(".ponder-removed-1").exists());
    folder.remove("gpt2", false).unwrap();
    assert!(!left.exists());
    let text =
        format!("from huggingface_hub import scan_cache_dir\nscan_cache_dir(CACHE).delete_revisions('{SECOND}').execute()\nprint('null')");
    told(&python, cache.path(), NOBODY, &text);
    assert!(folder.find(ID).is_err());
}

#[test]
fn both_keep_each_other_out_by_the_same_locks() {
    let Some(python) = python() else { return };
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path(), ID);
    let etag = cache::etag_of("model.safetensors", b"weights");
    let held = repository.try_lock(&etag).unwrap().unwrap();
    let lock = repository.lock_path(&etag);
    let text = format!(
        "from huggingface_hub.utils import WeakFileLock\nfrom filelock import Timeout\ntry:\n    with WeakFileLock({lock:?}, timeout=0.3):\n        print('true')\nexcept Timeout:\n    print('false')"
    );
    assert_eq!(told(&python, cache.path(), NOBODY, &text), false);
    drop(held);
    assert_eq!(told(&python, cache.path(), NOBODY, &text), true);
    let text = format!(
        "from huggingface_hub.utils import WeakFileLock\nwith WeakFileLock({lock:?}):\n    print('held', flush=True)\n    sys.stdin.read()"
    );
    let mut child = script(&python, cache.path(), NOBODY, &text)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "held\n");
    assert!(repository.try_lock(&etag).unwrap().is_none());
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(repository.try_lock(&etag).unwrap().is_some());
}

/// hf-hub is the crate with which candle and others read the cache.
#[test]
fn the_hf_hub_crate_finds_the_same_files() {
    let cache = tempfile::tempdir().unwrap();
    let written = repository(cache.path(), ID);
    add_pebble(&written, &commit(FIRST), &[]);
    let request = Revision::new("refs/pr/7").unwrap();
    written.set_ref(&request, &commit(FIRST)).unwrap();
    add_pebble(&written, &commit(SECOND), &[("deep/er.json", b"{}")]);
    let reader = hf_hub::Cache::new(cache.path().to_owned());
    let at = |revision: &str| hf_hub::Repo::with_revision(ID.into(), hf_hub::RepoType::Model, revision.into());
    for (revision, named) in [("main", SECOND), ("refs/pr/7", FIRST)] {
        let files = written.files(&commit(named));
        assert!(files.len() > 5);
        for file in &files {
            let found = reader.repo(at(revision)).get(file.path.as_str()).unwrap();
            assert_eq!(found, file.path.under(&written.snapshot(&commit(named))));
            assert_eq!(fs::metadata(found).unwrap().len(), file.bytes.unwrap());
        }
    }
    assert_eq!(reader.repo(at("refs/pr/7")).get("deep/er.json"), None);
    assert_eq!(reader.model("owner/another".into()).get("config.json"), None);
}
