//! Removing models from real folders: freed bytes, files that stay, traps.

#![allow(clippy::unwrap_used)]

mod cache;

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::sync::Arc;

use cache::{add, add_pebble, all_below, bytes_of_blobs, commit, pebble, repository, FIRST, SECOND};
use chat::Chat;
use hub::cache::Revision;
use hub::{Error, Hub, ModelFolder, BUILT_IN};
use net::{Net, Settings};
use proptest::prelude::*;
use protocol::fake::FakeEngine;
use protocol::{ErrorCode, LocalEngine, Reason};

const ID: &str = "somebody/small";

#[test]
fn removing_a_model_frees_what_it_said_and_leaves_the_others() {
    let cache = tempfile::tempdir().unwrap();
    let (gone, stays) = (repository(cache.path(), ID), repository(cache.path(), "somebody/other"));
    add_pebble(&gone, &commit(FIRST), &[]);
    add_pebble(&stays, &commit(FIRST), &[]);
    fs::write(gone.folder().join("blobs/0123.incomplete"), vec![1; 5000]).unwrap();
    drop(gone.try_lock(&cache::etag_of("x", b"x")).unwrap());
    let before = all_below(&stays.folder());
    let folder = ModelFolder::at(None, Some(cache.path().into()));

    let told = folder.removal(ID).unwrap();
    assert_eq!(
        (told.bytes_freed, told.shared_bytes, told.refused.clone()),
        (bytes_of_blobs(&gone) + 40, 0, None)
    );
    assert!(gone.folder().exists());
    let done = folder.remove(ID, false).unwrap();
    assert_eq!(done.bytes_freed, told.bytes_freed);
    let left: Vec<_> = fs::read_dir(cache.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!gone.locks().exists());
    assert_eq!(all_below(&stays.folder()), before);
    assert_eq!(folder.list().len(), 1);
    let missing = protocol::Error::from(folder.find(ID).unwrap_err());
    assert_eq!(missing.code, ErrorCode::ModelNotFound);
    assert!(missing.message.contains(ID), "{}", missing.message);
    assert!(matches!(folder.remove(ID, false), Err(Error::NotFound(_))));
}

#[test]
fn one_commit_frees_only_what_no_other_commit_uses() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path(), ID);
    add_pebble(&repository, &commit(FIRST), &[("README.md", b"the first card")]);
    repository
        .set_ref(&Revision::new("refs/pr/1").unwrap(), &commit(FIRST))
        .unwrap();
    add_pebble(
        &repository,
        &commit(SECOND),
        &[("README.md", b"the second card, longer")],
    );
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let whole = bytes_of_blobs(&repository);

    let old = format!("{ID}@{}", &FIRST[..10]);
    let told = folder.removal(&old).unwrap();
    assert_eq!(told.bytes_freed, "the first card".len() as u64);
    assert_eq!(
        told.bytes_freed + told.shared_bytes + "the second card, longer".len() as u64,
        whole
    );
    folder.remove(&old, false).unwrap();
    assert_eq!(bytes_of_blobs(&repository), whole - told.bytes_freed);
    assert_eq!(repository.commits(), [commit(SECOND)]);
    assert_eq!(repository.refs().len(), 1);
    assert!(!repository.folder().join("refs/refs").exists());
    assert!(folder.find(ID).is_ok() && folder.find(&old).is_err());
    // The last commit is the whole model.
    folder.remove(&format!("{ID}@main"), false).unwrap();
    assert!(!repository.folder().exists());
}

#[test]
fn links_in_a_models_folder_lead_no_removal_elsewhere() {
    let (cache, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let precious = outside.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("letter.txt"), "dear").unwrap();
    let repository = repository(cache.path(), ID);
    add_pebble(&repository, &commit(FIRST), &[]);
    let snapshot = repository.snapshot(&commit(FIRST));
    symlink(&precious, snapshot.join("folder")).unwrap();
    symlink(precious.join("letter.txt"), snapshot.join("letter.txt")).unwrap();
    symlink(&precious, repository.folder().join("extra")).unwrap();
    symlink(precious.join("letter.txt"), repository.folder().join("blobs/linked")).unwrap();
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    assert_eq!(folder.removal(ID).unwrap().shared_bytes, 4);
    folder.remove(ID, false).unwrap();
    assert_eq!(fs::read_to_string(precious.join("letter.txt")).unwrap(), "dear");
}

#[test]
fn a_folder_of_the_cache_that_is_a_link_is_refused() {
    for part in ["", "blobs", "refs", "snapshots"] {
        let (cache, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let repository = repository(cache.path(), ID);
        add_pebble(&repository, &commit(FIRST), &[]);
        let link = if part.is_empty() {
            repository.folder()
        } else {
            repository.folder().join(part)
        };
        let moved = outside.path().join("moved");
        fs::rename(&link, &moved).unwrap();
        symlink(&moved, &link).unwrap();
        let before = all_below(outside.path());
        let folder = ModelFolder::at(None, Some(cache.path().into()));
        let refused = folder.removal(ID).unwrap().refused.unwrap();
        assert_eq!(refused.reason, Some(Reason::PathOccupied), "{part}");
        assert!(refused.message.contains("a link"), "{part}: {refused}");
        assert!(matches!(folder.remove(ID, false), Err(Error::Trap(_))), "{part}");
        assert_eq!(all_below(outside.path()), before, "{part}");
    }
}

#[test]
fn a_model_that_another_program_fetches_stays() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path(), ID);
    add_pebble(&repository, &commit(FIRST), &[]);
    let held = repository
        .try_lock(&cache::etag_of("x", b"something that is fetched"))
        .unwrap()
        .unwrap();
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let refused = folder.removal(ID).unwrap().refused.unwrap();
    assert_eq!(refused.reason, Some(Reason::ModelInUse));
    assert!(refused.message.contains("another program"), "{refused}");
    assert!(matches!(folder.remove(ID, false), Err(Error::InUse(_))));
    assert!(folder.find(ID).is_ok());
    drop(held);
    folder.remove(ID, false).unwrap();
    assert!(!repository.folder().exists());
}

#[test]
fn what_a_broken_download_left_is_removed_too() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path(), ID);
    repository.prepare().unwrap();
    fs::write(repository.folder().join("blobs/half.ponder"), vec![7; 1000]).unwrap();
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    assert!(folder.list().is_empty());
    assert_eq!(folder.remove(ID, false).unwrap().bytes_freed, 1000);
    assert!(!repository.folder().exists());
}

#[test]
fn a_folder_that_may_not_be_written_keeps_its_model() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path(), ID);
    add_pebble(&repository, &commit(FIRST), &[]);
    fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    // A process that may write everywhere is not refused.
    if fs::write(cache.path().join("probe"), "").is_err() {
        assert!(matches!(folder.remove(ID, false), Err(Error::Write { .. })));
        assert!(folder.find(ID).is_ok());
    }
    fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_built_in_model_stays_and_own_folders_are_only_forgotten() {
    let (data, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = ModelFolder::at(Some(pebble()), None).with_data_dir(data.path().into());
    let refused = folder.removal("pebble").unwrap().refused.unwrap();
    assert_eq!(refused.reason, Some(Reason::ModelBuiltIn));
    assert!(matches!(folder.remove("pebble", true), Err(Error::Kept { .. })));

    let model = own.path().canonicalize().unwrap().join("models/mine");
    fs::create_dir_all(&model).unwrap();
    for entry in fs::read_dir(pebble())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    fs::write(model.join("diary.doc"), "mine").unwrap();
    let reference = model.to_str().unwrap();
    // In a folder that is not on the list nothing may be deleted, even on request.
    assert!(matches!(folder.remove(reference, true), Err(Error::Kept { .. })));
    folder.add_folder(model.parent().unwrap()).unwrap();
    assert!(matches!(folder.remove(reference, false), Err(Error::Kept { .. })));
    let refused = folder.removal(reference).unwrap().refused.unwrap();
    assert_eq!(refused.reason, Some(Reason::ModelInOwnFolder));
    folder.add_folder(&model).unwrap();
    assert_eq!(folder.remove(reference, false).unwrap().bytes_freed, 0);
    assert!(model.join("config.json").is_file());
    assert!(folder.remove(reference, true).unwrap().bytes_freed > 15_000_000);
    assert!(!model.join("config.json").exists() && model.join("diary.doc").is_file());
}

#[test]
fn an_imported_model_is_a_copy_that_can_be_removed() {
    let (data, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = ModelFolder::at(None, None).with_data_dir(data.path().into());
    let stop = tokio_util::sync::CancellationToken::new();
    let dir = from.path().join("my model");
    fs::create_dir(&dir).unwrap();
    for entry in fs::read_dir(pebble())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        symlink(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    fs::write(dir.join("run.py"), "import os").unwrap();
    let mut words = Vec::new();
    let first = folder.import(&dir, &stop, &mut |word| words.push(word)).unwrap();
    assert!(words
        .last()
        .is_some_and(|word| word.done == word.total && word.total > 15_000_000));
    let second = folder.import(&dir, &stop, &mut |_| {}).unwrap();
    assert!(second.path.ends_with("models/my model 2") && !first.path.join("run.py").exists());
    assert_eq!(folder.list().iter().filter(|model| model.problem.is_none()).count(), 2);
    assert_eq!(
        fs::read(first.path.join("model.safetensors")).unwrap(),
        fs::read(pebble().join("model.safetensors")).unwrap()
    );
    folder.remove(&first.reference, false).unwrap();
    assert!(!first.path.exists() && dir.join("config.json").is_file() && second.path.is_dir());

    stop.cancel();
    assert!(matches!(folder.import(&dir, &stop, &mut |_| {}), Err(Error::Stopped)));
    fs::write(from.path().join("config.json"), "{}").unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    for (path, word) in [
        (from.path().to_path_buf(), "is missing"),
        (from.path().join("nothing"), "No such file"),
    ] {
        let error = folder.import(&path, &stop, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("nothing was copied"), "{error}");
    }
    fs::remove_file(dir.join("model.safetensors")).unwrap();
    fs::write(dir.join("model.safetensors"), "cut").unwrap();
    assert!(folder
        .import(&dir, &stop, &mut |_| {})
        .unwrap_err()
        .to_string()
        .contains("cut short"));
    let left: Vec<_> = fs::read_dir(data.path().join("models"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["my model 2"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("PONDER_FULL").is_some() { 500 } else { 40 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// However commits share blobs, removing one frees exactly the predicted bytes, and the others keep every file.
    #[test]
    fn removal_is_exact(commits in prop::collection::vec(prop::collection::btree_map("[a-c](/[a-c])?\\.txt", 0u8..4, 1..5), 1..4), which in any::<prop::sample::Index>()) {
        let cache = tempfile::tempdir().unwrap();
        let repository = repository(cache.path(), ID);
        let names: Vec<String> = (0..commits.len()).map(|number| format!("{number:040x}")).collect();
        for (name, files) in names.iter().zip(&commits) {
            add(&repository, &commit(name), "config.json", b"{}");
            for (path, content) in files {
                add(&repository, &commit(name), path, &vec![*content; 10 + usize::from(*content)]);
            }
        }
        let folder = ModelFolder::at(None, Some(cache.path().into()));
        let chosen = which.index(names.len());
        let before = bytes_of_blobs(&repository);
        let told = folder.removal(&format!("{ID}@{}", names[chosen])).unwrap();
        let done = folder.remove(&format!("{ID}@{}", names[chosen]), false).unwrap();
        prop_assert_eq!(told.bytes_freed, done.bytes_freed);
        prop_assert_eq!(bytes_of_blobs(&repository) + done.bytes_freed, before);
        for (number, (name, files)) in names.iter().zip(&commits).enumerate().filter(|(number, _)| *number != chosen) {
            for (path, content) in files {
                let kept = fs::read(repository.snapshot(&commit(name)).join(path)).unwrap();
                prop_assert_eq!(kept, vec![*content; 10 + usize::from(*content)], "{}", number);
            }
        }
    }
}

#[tokio::test]
async fn a_removed_model_leaves_memory_and_is_no_longer_the_default() {
    let (cache, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    add_pebble(&repository(cache.path(), ID), &commit(FIRST), &[]);
    let models = ModelFolder::at(Some(pebble()), Some(cache.path().into())).with_data_dir(data.path().into());
    let hub = Hub::open(
        Net::open(Settings::of_a_test("http://127.0.0.1:9")),
        models.clone(),
        data.path(),
    );
    let engine = FakeEngine::new();
    drop(engine.load(models.find(ID).unwrap()));
    let (shared, shelf) = (Arc::new(engine.clone()), Arc::new(models.clone()));
    let chat = Chat::open(&data.path().join("history.sqlite"), shared, shelf)
        .await
        .unwrap();
    chat.settings().set_default_model(ID).await.unwrap();

    let plan = hub.removals().plan(ID, chat.models()).await.unwrap();
    assert!(plan.loaded && !plan.downloading && plan.refused.is_none());
    let removed = hub.removals().remove(ID, false, chat.models()).await.unwrap();
    assert_eq!(removed.bytes_freed, plan.bytes_freed);
    assert!(engine.loaded().is_empty());
    assert_eq!(chat.settings().default_model().await.unwrap(), BUILT_IN);
    assert!(models.find(ID).is_err());
    let missing = hub.removals().plan(ID, chat.models()).await.unwrap_err();
    assert_eq!(missing.code, ErrorCode::ModelNotFound);
}

#[tokio::test]
async fn a_removed_model_comes_back_with_what_it_was_used_for() {
    let (cache, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stored = repository(cache.path(), ID);
    add_pebble(&stored, &commit(FIRST), &[]);
    let before = all_below(&stored.folder());
    let models = ModelFolder::at(Some(pebble()), Some(cache.path().into())).with_data_dir(data.path().into());
    let open = || {
        Hub::open(
            Net::open(Settings::of_a_test("http://127.0.0.1:9")),
            models.clone(),
            data.path(),
        )
    };
    let hub = open();
    let shelf = Arc::new(models.clone());
    let chat = Chat::open(&data.path().join("history.sqlite"), Arc::new(FakeEngine::new()), shelf)
        .await
        .unwrap();
    chat.settings().set_default_model(ID).await.unwrap();

    assert!(hub.removals().trash(ID, chat.models()).await.unwrap());
    assert!(models.find(ID).is_err() && !stored.folder().exists());
    assert_eq!(chat.settings().default_model().await.unwrap(), BUILT_IN);
    // Neither another removal nor another process deletes it meanwhile.
    let other = repository(cache.path(), "somebody/other");
    add_pebble(&other, &commit(FIRST), &[]);
    models.remove("somebody/other", false).unwrap();
    open().removals().free_all().await;
    hub.removals().restore(ID, chat.models()).await.unwrap();
    assert_eq!(all_below(&stored.folder()), before);
    assert_eq!(chat.settings().default_model().await.unwrap(), ID);
    let gone = hub.removals().restore(ID, chat.models()).await.unwrap_err();
    assert_eq!(gone.code, ErrorCode::ModelNotFound);

    // It is deleted once it can no longer be restored.
    let aside = || fs::read_dir(cache.path().join(".locks")).unwrap().flatten().count();
    assert!(hub.removals().trash(ID, chat.models()).await.unwrap());
    assert_eq!(aside(), 2, "the files and their lock");
    hub.removals().free(ID).await.unwrap();
    assert_eq!(aside(), 0);
    assert!(hub.removals().restore(ID, chat.models()).await.is_err());

    // A model that was fetched again meanwhile stays.
    add_pebble(&stored, &commit(FIRST), &[]);
    assert!(hub.removals().trash(ID, chat.models()).await.unwrap());
    add_pebble(&stored, &commit(SECOND), &[]);
    let error = hub.removals().restore(ID, chat.models()).await.unwrap_err();
    assert!(error.message.contains("here again"), "{}", error.message);
    assert_eq!(stored.commits(), [commit(SECOND)]);

    // A crash leaves it in the trash folder, and the next start deletes it.
    assert!(hub.removals().trash(ID, chat.models()).await.unwrap());
    assert!(aside() >= 2);
    drop(hub);
    open().removals().free_all().await;
    assert_eq!(aside(), 0);
}

#[tokio::test]
async fn one_commit_of_several_is_gone_at_once() {
    let (cache, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stored = repository(cache.path(), ID);
    add_pebble(&stored, &commit(FIRST), &[]);
    add_pebble(&stored, &commit(SECOND), &[("README.md", b"another card")]);
    let models = ModelFolder::at(None, Some(cache.path().into())).with_data_dir(data.path().into());
    let hub = Hub::open(
        Net::open(Settings::of_a_test("http://127.0.0.1:9")),
        models.clone(),
        data.path(),
    );
    let shelf = Arc::new(models.clone());
    let chat = Chat::open(&data.path().join("history.sqlite"), Arc::new(FakeEngine::new()), shelf)
        .await
        .unwrap();
    let kept = hub
        .removals()
        .trash(&format!("{ID}@{FIRST}"), chat.models())
        .await
        .unwrap();
    assert!(!kept);
    assert_eq!(stored.commits(), [commit(SECOND)]);
}
