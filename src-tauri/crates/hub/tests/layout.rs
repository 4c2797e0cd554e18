//! The cache's layout: with any name, all writes stay inside the model's folder.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Component, Path};

use hub::cache::{
    checked_listing, checked_listing_where, Cache, Commit, Etag, FilePath, Repository, RepositoryId, Revision,
};
use hub::Error;
use proptest::prelude::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn commit() -> Commit {
    Commit::new(COMMIT).unwrap()
}

fn etag(digit: char) -> Etag {
    Etag::new(&digit.to_string().repeat(64)).unwrap()
}

fn repository(cache: &Path) -> Repository {
    Cache::at(cache).repository(&RepositoryId::new("somebody/Small-Model").unwrap())
}

/// Writes content under its (pretended) hash.
fn blob(repository: &Repository, etag: &Etag, content: &str) {
    repository.prepare().unwrap();
    fs::write(repository.blob(etag), content).unwrap();
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

#[test]
fn names_that_lead_elsewhere_or_deceive_are_refused_with_the_reason() {
    let long = "a".repeat(256);
    let deep = "a/".repeat(40) + "b";
    for (name, reason) in [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("../escape", "leads out"),
        ("a/../../escape", "leads out"),
        ("a/./b", "leads out"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        ("a\\..\\b", "backslash"),
        ("C:/Windows/x", "drive letter"),
        ("c:x", "drive letter"),
        ("a\nb", "control character"),
        ("a\0b", "control character"),
        ("a\u{202e}gpj.exe", "control character"),
        (long.as_str(), "255 bytes"),
        (deep.as_str(), "32 folders"),
        (&"a/".repeat(600), "1,024 bytes"),
    ] {
        let error = FilePath::new(name).unwrap_err().to_string();
        assert!(error.contains(reason), "{name:?}: {error}");
        assert!(!error.contains('\n') && error.len() < 400, "{error:?}");
    }
    for fine in [
        "config.json",
        "a/b/c.safetensors",
        "...",
        "..a",
        "a b.txt",
        "模型.json",
        ".gitattributes",
    ] {
        assert_eq!(FilePath::new(fine).unwrap().as_str(), fine);
    }
}

#[test]
fn ids_follow_the_hubs_rule_and_folders_name_them_back() {
    for fine in ["gpt2", "mlx-community/Qwen3-4B-4bit", "a/b.c_d-e", "o/na--me"] {
        let id = RepositoryId::new(fine).unwrap();
        assert_eq!(RepositoryId::of_folder(&id.folder()), Some(id.clone()), "{fine}");
    }
    let long = "x".repeat(97);
    for wrong in [
        "", "/", "/a", "a/", "a/b/c", "..", "../b", "a/..", "a--b/c", "a--b", "a/b c", "a/b\n", "-a/b", "a/.b", "ä/b",
        "a\\b", "@", &long,
    ] {
        assert!(RepositoryId::new(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(RepositoryId::of_folder("datasets--a--b"), None);
    assert_eq!(RepositoryId::of_folder("models--.."), None);
}

#[test]
fn commits_hashes_and_revisions_are_checked() {
    assert!(Commit::new(COMMIT).is_ok());
    for wrong in [
        "",
        "main",
        "0123",
        &COMMIT.to_uppercase(),
        &format!("{}/", &COMMIT[..39]),
        &format!("{COMMIT}0"),
    ] {
        assert!(Commit::new(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(Etag::new(&format!("W/\"{COMMIT}\"")).unwrap().as_str(), COMMIT);
    assert!(Etag::new(&"a".repeat(64)).unwrap().is_sha256());
    for wrong in ["", "abc", "../../x", &format!("{}-2", "a".repeat(32))] {
        assert!(Etag::new(wrong).is_err(), "{wrong:?}");
    }
    for fine in ["main", "refs/pr/1", "v1.0", "feature/x"] {
        assert!(Revision::new(fine).is_ok(), "{fine}");
    }
    for wrong in ["", "../x", "/x", "a b", "-x", "x.lock", "a\nb"] {
        assert!(Revision::new(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_listing_is_refused_as_a_whole() {
    assert_eq!(checked_listing(["a", "b/c"]).unwrap().len(), 2);
    let refused = |paths: &[&str], names_are_folded| {
        checked_listing_where(paths.iter().copied(), names_are_folded)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&["a", "a"], false).contains("listed twice"));
    assert!(refused(&["a", "a/b"], false).contains("file and a folder"));
    assert!(refused(&["a/b/c", "a/b"], false).contains("file and a folder"));
    assert!(refused(&["README.md", "readme.md"], true).contains("cannot distinguish it from README.md"));
    assert!(refused(&["A/b", "a"], true).contains("file and a folder"));
    assert!(checked_listing_where(["README.md", "readme.md"], false).is_ok());
    // One character or a letter with an accent of its own: APFS takes both for one name, whatever the case.
    let [composed, decomposed, capital] = ["caf\u{e9}.json", "cafe\u{301}.json", "CAFE\u{301}.json"];
    assert!(refused(&[composed, decomposed], true).contains("cannot distinguish it"));
    assert!(refused(&[composed, capital], true).contains("cannot distinguish it"));
    assert!(refused(&["caf\u{e9}/a", "cafe\u{301}"], true).contains("file and a folder"));
    assert!(checked_listing_where([composed, decomposed, capital], false).is_ok());
    let many: Vec<String> = (0..100_000).map(|number| format!("file-{number}")).collect();
    let refused = checked_listing(many.iter().map(String::as_str));
    assert!(matches!(refused, Err(Error::TooManyFiles(_))));
}

#[test]
fn what_is_published_is_a_relative_link_and_is_read_back() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path());
    blob(&repository, &etag('a'), "config");
    blob(&repository, &etag('b'), "weights");
    repository.publish(&commit(), &path("config.json"), &etag('a')).unwrap();
    repository
        .publish(&commit(), &path("deep/er/weights"), &etag('b'))
        .unwrap();
    // A second call changes nothing.
    repository.publish(&commit(), &path("config.json"), &etag('a')).unwrap();
    let snapshot = repository.snapshot(&commit());
    assert_eq!(
        fs::read_link(snapshot.join("config.json")).unwrap(),
        Path::new("../../blobs").join(etag('a').as_str())
    );
    assert_eq!(fs::read_to_string(snapshot.join("deep/er/weights")).unwrap(), "weights");
    let files = repository.files(&commit());
    assert_eq!(
        files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["config.json", "deep/er/weights"]
    );
    assert_eq!(
        (files[1].etag.clone(), files[1].bytes, files[1].link),
        (Some(etag('b')), Some(7), true)
    );
    // The same name with other content, then with a missing blob.
    blob(&repository, &etag('c'), "newer");
    repository.publish(&commit(), &path("config.json"), &etag('c')).unwrap();
    assert_eq!(fs::read_to_string(snapshot.join("config.json")).unwrap(), "newer");
    assert!(matches!(
        repository.publish(&commit(), &path("x"), &etag('d')),
        Err(Error::Missing(_))
    ));
    assert!(matches!(
        repository.publish(&commit(), &path("deep"), &etag('a')),
        Err(Error::Trap(_))
    ));
    let left: Vec<_> = fs::read_dir(repository.folder())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left.len(), 3, "drafts were left: {left:?}");
}

#[test]
fn without_links_the_content_itself_lies_in_the_snapshot() {
    let cache = tempfile::tempdir().unwrap();
    let repository = Cache::at(cache.path())
        .without_links()
        .repository(&RepositoryId::new("somebody/flat").unwrap());
    blob(&repository, &etag('a'), "small");
    blob(&repository, &etag('b'), &"x".repeat(2 << 20));
    repository.publish(&commit(), &path("one"), &etag('a')).unwrap();
    repository.publish(&commit(), &path("two"), &etag('a')).unwrap();
    repository.publish(&commit(), &path("large"), &etag('b')).unwrap();
    let snapshot = repository.snapshot(&commit());
    assert!(fs::symlink_metadata(snapshot.join("two")).unwrap().is_file());
    assert_eq!(fs::read_to_string(snapshot.join("two")).unwrap(), "small");
    assert!(!repository.blob(&etag('b')).exists());
    assert_eq!(repository.files(&commit())[0].bytes, Some(2 << 20));
}

#[test]
fn refs_are_written_and_read_nested_ones_too() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path());
    let pull_request = Revision::new("refs/pr/1").unwrap();
    repository.set_ref(&Revision::main(), &commit()).unwrap();
    repository.set_ref(&pull_request, &commit()).unwrap();
    // A commit needs no ref.
    repository.set_ref(&Revision::new(COMMIT).unwrap(), &commit()).unwrap();
    assert_eq!(
        fs::read_to_string(repository.folder().join("refs/refs/pr/1")).unwrap(),
        COMMIT
    );
    let refs = repository.refs();
    assert_eq!(
        refs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["main", "refs/pr/1"]
    );
    assert_eq!(repository.resolve(&pull_request), Some(commit()));
    fs::write(repository.folder().join("refs/main"), "../../../../etc").unwrap();
    assert_eq!(repository.resolve(&Revision::main()), None);
}

#[test]
fn a_lock_keeps_others_out_until_it_is_dropped() {
    let cache = tempfile::tempdir().unwrap();
    let repository = repository(cache.path());
    let held = repository.try_lock(&etag('a')).unwrap().unwrap();
    assert!(repository.try_lock(&etag('a')).unwrap().is_none());
    assert!(repository.try_lock(&etag('b')).unwrap().is_some());
    drop(held);
    assert!(repository.try_lock(&etag('a')).unwrap().is_some());
    assert!(cache
        .path()
        .join(".locks/models--somebody--Small-Model")
        .join(format!("{}.lock", etag('a')))
        .is_file());
}

#[test]
fn a_link_on_the_way_is_refused_and_nothing_is_written_behind_it() {
    for trap in [
        "",
        "blobs",
        "refs",
        "snapshots",
        &format!("snapshots/{COMMIT}"),
        &format!("snapshots/{COMMIT}/sub"),
    ] {
        let (cache, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let repository = repository(cache.path());
        let link = repository.folder().join(trap);
        let link = if trap.is_empty() { repository.folder() } else { link };
        if trap != "blobs" && !trap.is_empty() {
            blob(&repository, &etag('a'), "content");
            let _ = fs::remove_dir(&link);
        }
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let published = repository.publish(&commit(), &path("sub/file"), &etag('a'));
        assert!(matches!(published, Err(Error::Trap(_))), "{trap}: {published:?}");
        if ["", "refs"].contains(&trap) {
            assert!(
                matches!(repository.set_ref(&Revision::main(), &commit()), Err(Error::Trap(_))),
                "{trap}"
            );
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{trap}");
    }
    let (cache, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = outside.path().join("made");
    let repository = repository(cache.path());
    fs::create_dir_all(repository.locks()).unwrap();
    std::os::unix::fs::symlink(&target, repository.lock_path(&etag('a'))).unwrap();
    assert!(matches!(repository.try_lock(&etag('a')), Err(Error::Trap(_))));
    assert!(!target.exists());
}

/// Names of an attacker, and arbitrary ones.
fn names() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("~".to_owned()),
        Just("C:".to_owned()),
        Just("blobs".to_owned()),
        Just("\\\\server\\share".to_owned()),
        Just("%2e%2e".to_owned()),
        "[a-z.]{1,6}",
        any::<String>(),
    ];
    prop::collection::vec(part, 1..8).prop_map(|parts| parts.join("/"))
}

fn cases() -> ProptestConfig {
    let full = std::env::var_os("PONDER_FULL").is_some();
    ProptestConfig {
        cases: if full { 50_000 } else { 2_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_the_name_the_joined_path_stays_inside(name in names()) {
        let root = Path::new("/cache/models--a--b/snapshots/c");
        for joined in [
            FilePath::new(&name).ok().map(|path| path.under(root)),
            Revision::new(&name).ok().map(|revision| root.join(revision.as_str())),
            RepositoryId::new(&name).ok().map(|id| root.join(id.folder())),
            Etag::new(&name).ok().map(|etag| root.join(etag.as_str())),
        ].into_iter().flatten() {
            prop_assert!(joined.starts_with(root) && joined != root);
            prop_assert!(joined.components().skip(1).all(|part| matches!(part, Component::Normal(_))), "{joined:?}");
        }
    }

    #[test]
    fn refusals_are_one_short_line(name in names()) {
        if let Err(error) = FilePath::new(&name) {
            let text = error.to_string();
            prop_assert!(!text.chars().any(char::is_control) && text.chars().count() < 1_500, "{text:?}");
        }
    }
}
