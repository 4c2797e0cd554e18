//! Verifying models: the faults found with hashes and without.

#![allow(clippy::unwrap_used)]

mod cache;

use std::fs;

use api::{FileFault, Verification};
use cache::{add_pebble, all_below, commit, etag_of, pebble, repository, FIRST};
use hub::cache::FilePath;
use hub::{Error, ModelFolder, RemoteFile};
use tokio_util::sync::CancellationToken;

const ID: &str = "somebody/small";

fn verify(folder: &ModelFolder, reference: &str, listed: Option<&[RemoteFile]>) -> Verification {
    let verified = folder.verify(reference, listed, &CancellationToken::new(), &mut |_| {});
    verified.unwrap().verification
}

fn wrong(verification: &Verification) -> Vec<(&str, &str)> {
    let wrong = verification.wrong.iter();
    wrong.map(|file| (file.path.as_str(), file.message.as_str())).collect()
}

/// The kinds of what is wrong, for which windows have words.
fn faults(verification: &Verification) -> Vec<FileFault> {
    verification.wrong.iter().map(|file| file.fault).collect()
}

fn in_cache(cache: &std::path::Path) -> (hub::cache::Repository, ModelFolder) {
    let repository = repository(cache, ID);
    add_pebble(&repository, &commit(FIRST), &[("sub/notes.json", b"{}")]);
    (repository, ModelFolder::at(None, Some(cache.into())))
}

#[test]
fn every_kind_of_damage_is_found_from_the_blobs_names_alone() {
    let cache = tempfile::tempdir().unwrap();
    let (repository, folder) = in_cache(cache.path());
    let right = verify(&folder, ID, None);
    assert_eq!(
        (wrong(&right), right.unknown.len(), right.commit.as_deref()),
        (vec![], 0, Some(FIRST))
    );
    assert_eq!(u64::from(right.files), repository.files(&commit(FIRST)).len() as u64);
    assert_eq!(right.bytes, cache::bytes_of_blobs(&repository));

    let snapshot = repository.snapshot(&commit(FIRST));
    let weights = snapshot.join("model.safetensors").canonicalize().unwrap();
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let before = all_below(cache.path());
    let found = verify(&folder, ID, None);
    assert_eq!(
        wrong(&found),
        [("model.safetensors", "its content is not what the hub has")]
    );
    assert_eq!(all_below(cache.path()), before, "verifying changes nothing");

    fs::write(&weights, &bytes[..middle]).unwrap();
    fs::remove_file(snapshot.join("tokenizer.json").canonicalize().unwrap()).unwrap();
    fs::remove_file(snapshot.join("config.json")).unwrap();
    fs::write(snapshot.join("sub/notes.json").canonicalize().unwrap(), "").unwrap();
    // Without a config.json the list has no such model, so the commit is named by its folder.
    fs::write(snapshot.join("config.json"), "{}").unwrap();
    let found = verify(&folder, ID, None);
    assert_eq!(
        wrong(&found),
        [
            ("model.safetensors", "its content is not what the hub has"),
            ("sub/notes.json", "its content is not what the hub has"),
            ("tokenizer.json", "it is missing"),
        ]
    );
    assert_eq!(
        faults(&found),
        [FileFault::Changed, FileFault::Changed, FileFault::Missing]
    );
    assert_eq!(found.unknown, ["config.json"]);
}

#[test]
fn the_hubs_list_finds_what_is_missing_and_what_has_no_hash_here() {
    let cache = tempfile::tempdir().unwrap();
    let (repository, folder) = in_cache(cache.path());
    let mut listed: Vec<RemoteFile> = repository
        .files(&commit(FIRST))
        .into_iter()
        .map(|file| RemoteFile {
            bytes: file.bytes.unwrap(),
            etag: file.etag.unwrap(),
            path: file.path,
        })
        .collect();
    assert_eq!(wrong(&verify(&folder, ID, Some(&listed))), []);
    listed.push(RemoteFile {
        path: FilePath::new("more.json").unwrap(),
        bytes: 2,
        etag: etag_of("more.json", b"{}"),
    });
    let config = repository.snapshot(&commit(FIRST)).join("config.json");
    let mut text = fs::read(&config).unwrap();
    fs::remove_file(&config).unwrap();
    text.push(b' ');
    fs::write(&config, text).unwrap();
    let found = verify(&folder, ID, Some(&listed));
    assert_eq!(faults(&found), [FileFault::Changed, FileFault::Missing]);
    let found = wrong(&found);
    assert_eq!(
        found.iter().map(|(path, _)| *path).collect::<Vec<_>>(),
        ["config.json", "more.json"]
    );
    assert!(found[0].1.contains("bytes instead of"), "{found:?}");
}

#[test]
fn a_folder_without_hashes_is_checked_for_what_can_be_told() {
    let (data, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = own.path().canonicalize().unwrap();
    for entry in fs::read_dir(pebble())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    let folder = ModelFolder::at(None, None).with_data_dir(data.path().into());
    let reference = model.to_str().unwrap();
    let right = verify(&folder, reference, None);
    assert!(right.wrong.is_empty() && right.files == 0 && right.unknown.contains(&"model.safetensors".to_owned()));

    let weights = model.join("model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..bytes.len() - 1]).unwrap();
    fs::write(model.join("generation_config.json"), "<html>").unwrap();
    fs::write(
        model.join("model.safetensors.index.json"),
        r#"{"weight_map": {"no.such.tensor": "model.safetensors"}}"#,
    )
    .unwrap();
    let found = verify(&folder, reference, None);
    assert_eq!(faults(&found), [FileFault::Invalid, FileFault::CutShort]);
    let found = wrong(&found);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].1.contains("is not JSON") && found[1] == ("model.safetensors", "it is cut short"),
        "{found:?}"
    );
    fs::write(&weights, &bytes).unwrap();
    let found = verify(&folder, reference, None);
    assert!(
        found.wrong.iter().any(|file| file.message.contains("no.such.tensor")),
        "{found:?}"
    );
}

#[test]
fn what_hf_download_noted_beside_a_folder_is_compared_with() {
    let own = tempfile::tempdir().unwrap();
    let model = own.path().canonicalize().unwrap();
    let notes = model.join(".cache/huggingface/download");
    fs::create_dir_all(&notes).unwrap();
    for entry in fs::read_dir(pebble())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        let name = entry.file_name().into_string().unwrap();
        let content = fs::read(entry.path()).unwrap();
        fs::write(model.join(&name), &content).unwrap();
        let later = 4_000_000_000.0;
        fs::write(
            notes.join(format!("{name}.metadata")),
            format!("{FIRST}\n{}\n{later}\n", etag_of(&name, &content)),
        )
        .unwrap();
    }
    let folder = ModelFolder::at(None, None);
    let right = verify(&folder, model.to_str().unwrap(), None);
    assert!(
        right.wrong.is_empty() && right.unknown.is_empty() && right.files > 4,
        "{right:?}"
    );
    let mut template = fs::read(model.join("chat_template.jinja")).unwrap();
    template[0] ^= 1;
    fs::write(model.join("chat_template.jinja"), template).unwrap();
    assert_eq!(
        wrong(&verify(&folder, model.to_str().unwrap(), None)),
        [("chat_template.jinja", "its content is not what the hub has")]
    );
}

#[test]
fn it_tells_how_far_it_is_and_can_be_stopped() {
    let cache = tempfile::tempdir().unwrap();
    let (_, folder) = in_cache(cache.path());
    let stop = CancellationToken::new();
    let mut last = (0, 0);
    folder
        .verify(ID, None, &stop, &mut |word| {
            assert!(word.done >= last.0 && word.done <= word.total);
            last = (word.done, word.total);
        })
        .unwrap();
    assert!(last.0 == last.1 && last.1 > 15_000_000, "{last:?}");
    let mut words = 0;
    let stopped = folder.verify(ID, None, &stop, &mut |_| {
        words += 1;
        stop.cancel();
    });
    assert!(matches!(stopped, Err(Error::Stopped)) && words == 1);
}
