//! Hostile repositories, hubs and folders: they are refused with a reason, and nothing is written outside the model's
//! folder.

#[path = "support/ponder.rs"]
mod ponder;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hub_imitation::{all_files, Fault, FaultTarget, Imitation, OnDisk, Repository, Times};
use ponder::Ponder;
use serde_json::json;

const MODEL: &str = "ponder/pebble";
/// Limit of the length of a message, in characters.
const LONGEST_SENTENCE: usize = 600;

/// The expected end of a case.
enum End {
    /// An error with one of these words in it.
    Refused(&'static [&'static str]),
    /// The honest files are fetched.
    Fetched,
    /// Fetched as it is served, then an error or a reason in the list of models.
    Unusable,
}

struct Case {
    name: &'static str,
    /// The repository on the hub.
    hub: fn(&Imitation) -> Repository,
    /// Preparation of the cache. It gets the cache's folder and a folder outside of it.
    folder: fn(&Path, &Path, &Repository),
    end: End,
}

fn nothing(_: &Path, _: &Path, _: &Repository) {}

fn served(name: &'static str, end: End, hub: fn(&Imitation) -> Repository) -> Case {
    Case {
        name,
        hub,
        folder: nothing,
        end,
    }
}

fn prepared(name: &'static str, end: End, folder: fn(&Path, &Path, &Repository)) -> Case {
    Case {
        name,
        hub: pebble,
        folder,
        end,
    }
}

fn pebble(hub: &Imitation) -> Repository {
    hub.repository(MODEL).pebble()
}

fn model_folder(cache: &Path) -> std::path::PathBuf {
    cache.join("models--ponder--pebble")
}

fn link(target: &Path, at: &Path) {
    fs::create_dir_all(at.parent().expect("a folder")).expect("folders are made");
    std::os::unix::fs::symlink(target, at).expect("a link is made");
}

/// Names that lead out of the folder, or look like others.
fn names() -> Vec<Case> {
    const NAME: End = End::Refused(&["name"]);
    vec![
        served("a name that leads up", NAME, |hub| {
            pebble(hub).file("../../escaped.json", "{}")
        }),
        served("a name that leads up in the middle", NAME, |hub| {
            pebble(hub).file("a/../../../escaped.json", "{}")
        }),
        served("an absolute name", NAME, |hub| {
            pebble(hub).file("/tmp/escaped.json", "{}")
        }),
        served("a name of Windows", NAME, |hub| {
            pebble(hub).file("C:\\escaped.json", "{}")
        }),
        served("a name that leads up on Windows", NAME, |hub| {
            pebble(hub).file("..\\escaped.json", "{}")
        }),
        served("a name with a line break", NAME, |hub| {
            pebble(hub).file("config\n.json", "{}")
        }),
        served("a name with a zero byte", NAME, |hub| {
            pebble(hub).file("config\0.json", "{}")
        }),
        served("a name that turns the text around", NAME, |hub| {
            pebble(hub).file("config\u{202e}nosj.json", "{}")
        }),
        served("no name", NAME, |hub| {
            pebble(hub).entry(json!({"type": "file", "path": "", "size": 2, "oid": "0".repeat(40)}))
        }),
        served("a name of a kilometre", NAME, |hub| {
            pebble(hub).file(&format!("{}.json", "a".repeat(5_000)), "{}")
        }),
        served("a path of a thousand folders", NAME, |hub| {
            pebble(hub).file(&format!("{}x.json", "a/".repeat(1_000)), "{}")
        }),
        served("a file listed twice", NAME, |hub| {
            pebble(hub).entry(json!({"type": "file", "path": "config.json", "size": 2, "oid": "0".repeat(40)}))
        }),
        served("a file that is a folder too", NAME, |hub| {
            pebble(hub).file("config.json/inner.json", "{}")
        }),
        served("a link in the list", NAME, |hub| {
            pebble(hub)
                .entry(json!({"type": "symlink", "path": "tokenizer.model", "size": 11, "oid": "0".repeat(40), "target": "/etc/passwd"}))
        }),
        served("a hash that leads up", End::Refused(&["name", "hash"]), |hub| {
            pebble(hub).listed("config.json", "oid", json!("../../../escaped"))
        }),
        served(
            "a large file's hash that leads up",
            End::Refused(&["name", "hash"]),
            |hub| {
                pebble(hub).listed(
                    "model.safetensors",
                    "lfs",
                    json!({"oid": "../../../escaped", "size": size_of("model.safetensors"), "pointerSize": 133}),
                )
            },
        ),
        served("a commit that leads up", End::Refused(&["name", "commit"]), |hub| {
            pebble(hub).field("sha", json!("../../../escaped"))
        }),
        served(
            "names that differ in case",
            // A file system that ignores case would give one the other's content.
            if cfg!(target_os = "macos") { NAME } else { End::Fetched },
            |hub| pebble(hub).file("Tokenizer.json", "{}"),
        ),
    ]
}

/// The size of one of Pebble's files, in bytes.
fn size_of(name: &str) -> u64 {
    let model = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model");
    std::fs::metadata(model.join(name)).expect("Pebble is here").len()
}

/// Too many files, or too large ones.
fn sizes() -> Vec<Case> {
    const SIZE: End = End::Refused(&[
        "large",
        "larger",
        "more than",
        "space",
        "room",
        "size",
        "hash",
        "bytes",
        "whole",
    ]);
    vec![
        served("100,000 files", End::Refused(&["files"]), |hub| {
            pebble(hub).files((0..100_000).map(|number| (format!("part-{number}.json"), "{}")))
        }),
        served("a config of 50 MB", SIZE, |hub| {
            pebble(hub).file(
                "config.json",
                format!("{{\"model_type\": \"llama\", \"x\": \"{}\"}}", "y".repeat(50 << 20)),
            )
        }),
        served("a description of 100 MB", SIZE, |hub| {
            pebble(hub).field("cardData", json!("x".repeat(100 << 20)))
        }),
        served("weights that take a planet", SIZE, |hub| {
            let lfs = json!({"oid": "1".repeat(64), "size": 1_u64 << 49, "pointerSize": 140});
            pebble(hub).listed("model.safetensors", "lfs", lfs)
        }),
        served("sizes whose sum is too large to be told", SIZE, |hub| {
            let lfs = json!({"oid": "1".repeat(64), "size": u64::MAX - 5, "pointerSize": 140});
            pebble(hub)
                .listed("model.safetensors", "lfs", lfs)
                .listed("tokenizer.json", "size", json!(u64::MAX - 5))
        }),
        served("a size below zero", SIZE, |hub| {
            pebble(hub).listed("config.json", "size", json!(-1))
        }),
        served("a size in words", SIZE, |hub| {
            pebble(hub).listed("config.json", "size", json!("many"))
        }),
        served("a file longer than listed", SIZE, |hub| {
            pebble(hub).listed("tokenizer.json", "size", json!(1_000))
        }),
        served("a file shorter than listed", SIZE, |hub| {
            pebble(hub).listed("tokenizer.json", "size", json!(size_of("tokenizer.json") + 1))
        }),
        served("weights longer than listed", SIZE, |hub| {
            let oid = pebble(hub).etag("model.safetensors").expect("a hash");
            pebble(hub).listed(
                "model.safetensors",
                "lfs",
                json!({"oid": oid, "size": 5_000_000, "pointerSize": 133}),
            )
        }),
        served("weights shorter than listed", SIZE, |hub| {
            let oid = pebble(hub).etag("model.safetensors").expect("a hash");
            pebble(hub).listed(
                "model.safetensors",
                "lfs",
                json!({"oid": oid, "size": size_of("model.safetensors") + 1, "pointerSize": 133}),
            )
        }),
        served("weights with the hash of others", SIZE, |hub| {
            let lfs = json!({"oid": "ab".repeat(32), "size": size_of("model.safetensors"), "pointerSize": 133});
            pebble(hub).listed("model.safetensors", "lfs", lfs)
        }),
    ]
}

/// Files whose content contradicts their names.
fn contents() -> Vec<Case> {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    vec![
        served("a tokenizer that is an image", End::Unusable, |hub| {
            pebble(hub).file("tokenizer.json", PNG)
        }),
        served("a tokenizer that is a pickle", End::Unusable, |hub| {
            pebble(hub).file("tokenizer.json", &b"\x80\x04cposix\nsystem\n(S'touch escaped'\ntR."[..])
        }),
        served("a template that is an image", End::Unusable, |hub| {
            pebble(hub).file("chat_template.jinja", PNG)
        }),
        served("a template that never ends", End::Unusable, |hub| {
            pebble(hub).file("chat_template.jinja", "{% if messages %}{{ messages")
        }),
        served("a config that is a list", End::Unusable, |hub| {
            pebble(hub).file("config.json", "[]")
        }),
        served("a config that is a web page", End::Unusable, |hub| {
            pebble(hub).file("config.json", "<!doctype html><title>404</title>")
        }),
        served("a config a million brackets deep", End::Unusable, |hub| {
            pebble(hub).file("config.json", "[".repeat(1_000_000))
        }),
        served("weights that are a pickle", End::Unusable, |hub| {
            pebble(hub).file(
                "model.safetensors",
                &b"\x80\x04cposix\nsystem\n(S'touch escaped'\ntR."[..],
            )
        }),
        served("weights whose header promises a terabyte", End::Unusable, |hub| {
            let mut bytes = (1_u64 << 40).to_le_bytes().to_vec();
            bytes.extend_from_slice(b"{}");
            pebble(hub).file("model.safetensors", bytes)
        }),
        served("code of its own beside the model", End::Fetched, |hub| {
            pebble(hub).file("modeling_evil.py", "import os; os.system('touch escaped')")
        }),
    ]
}

/// Hubs that redirect to other places.
fn hubs() -> Vec<Case> {
    const ELSEWHERE: End = End::Refused(&["redirect", "address", "sent on", "elsewhere", "way"]);
    vec![
        served("sent on to a file of this computer", ELSEWHERE, |hub| {
            let fault = Fault::SentOn {
                to: "file:///etc/passwd",
            };
            hub.fault_at(FaultTarget::Resolve, None, None, fault, Times::Always);
            pebble(hub)
        }),
        served("sent round in circles", ELSEWHERE, |hub| {
            let fault = Fault::SentOn {
                to: "/ponder/pebble/resolve/main/config.json",
            };
            hub.fault_at(FaultTarget::Resolve, None, None, fault, Times::Always);
            pebble(hub)
        }),
        served("a listing sent on to a program", ELSEWHERE, |hub| {
            let fault = Fault::SentOn {
                to: "javascript:alert(1)",
            };
            hub.fault_at(FaultTarget::Api, None, None, fault, Times::Always);
            pebble(hub)
        }),
    ]
}

/// Folders with links that lead out of them.
fn folders() -> Vec<Case> {
    const TRAP: End = End::Refused(&["link", "not what"]);
    vec![
        prepared("the model's folder is a link", TRAP, |cache, outside, _| {
            link(outside, &model_folder(cache))
        }),
        prepared("the blobs are a link", TRAP, |cache, outside, _| {
            link(outside, &model_folder(cache).join("blobs"))
        }),
        prepared("the snapshots are a link", TRAP, |cache, outside, _| {
            link(outside, &model_folder(cache).join("snapshots"));
        }),
        prepared("the commit's folder is a link", TRAP, |cache, outside, repository| {
            link(
                outside,
                &model_folder(cache).join("snapshots").join(repository.commit()),
            );
        }),
        prepared("the refs are a link", TRAP, |cache, outside, _| {
            link(outside, &model_folder(cache).join("refs"))
        }),
        prepared("the branch is a link", End::Fetched, |cache, outside, _| {
            link(&outside.join("canary"), &model_folder(cache).join("refs/main"));
        }),
        prepared("the locks are a link", TRAP, |cache, outside, _| {
            link(outside, &cache.join(".locks"))
        }),
        prepared("what was half fetched is a link", TRAP, |cache, outside, repository| {
            let etag = repository.etag("model.safetensors").expect("a hash");
            let blobs = model_folder(cache).join("blobs");
            link(&outside.join("canary"), &blobs.join(format!("{etag}.ponder")));
        }),
        prepared("a lock is a link", TRAP, |cache, outside, repository| {
            let etag = repository.etag("model.safetensors").expect("a hash");
            let lock = format!(".locks/models--ponder--pebble/{etag}.lock");
            link(&outside.join("canary"), &cache.join(lock));
        }),
        prepared(
            "a file that is there is a link out",
            End::Fetched,
            |cache, outside, repository| {
                let file = model_folder(cache)
                    .join("snapshots")
                    .join(repository.commit())
                    .join("config.json");
                link(&outside.join("canary"), &file);
            },
        ),
    ]
}

/// Everything below a folder: names, contents of files and targets of links.
fn contents_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    all_files(folder)
        .into_iter()
        .map(|(path, is_link)| {
            let held = if is_link {
                fs::read_link(&path).map(|to| to.as_os_str().as_encoded_bytes().to_vec())
            } else {
                fs::read(&path)
            };
            (path.to_string_lossy().into_owned(), held.unwrap_or_default())
        })
        .collect()
}

fn check(case: &Case) -> Result<(), String> {
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (cache, outside) = (root.path().join("cache"), root.path().join("outside"));
    fs::create_dir_all(&cache).map_err(|error| error.to_string())?;
    fs::create_dir_all(&outside).map_err(|error| error.to_string())?;
    fs::write(outside.join("canary"), "alive").map_err(|error| error.to_string())?;
    let hub = Imitation::start();
    let repository = (case.hub)(&hub);
    (case.folder)(&cache, &outside, &repository);
    let before = contents_of(root.path());
    let ponder = Ponder::at(&hub.endpoint(), &cache);
    let fetched = ponder.fetch(MODEL);

    // In every case only the model's own folder and its locks may have changed.
    let after = contents_of(root.path());
    let own = [
        model_folder(&cache),
        cache.join(".locks/models--ponder--pebble"),
        ponder.data().to_owned(),
    ];
    for (path, held) in &after {
        let is_own = own
            .iter()
            .any(|own| Path::new(path).starts_with(own) && !own.is_symlink());
        if before.get(path) != Some(held) && !is_own {
            return Err(format!("{path} was written"));
        }
    }
    if let Some(gone) = before
        .keys()
        .find(|path| path.contains("/outside/") && !after.contains_key(*path))
    {
        return Err(format!("{gone} was removed"));
    }
    let wanted = |path: &str| ["config.json", "tokenizer.json", "model.safetensors"].contains(&path);
    let left = OnDisk::look(&cache, &repository, wanted);
    let planted = |wrong: &String| {
        before.keys().any(|path| {
            wrong.contains(
                path.trim_start_matches(&*cache.to_string_lossy())
                    .trim_start_matches('/'),
            )
        })
    };
    if let Some(wrong) = left.wrong.iter().find(|wrong| !planted(wrong)) {
        return Err(format!("left behind: {wrong}"));
    }
    match (&case.end, fetched) {
        (End::Refused(words), Err(said)) => {
            let readable = said.len() <= LONGEST_SENTENCE
                && !said
                    .chars()
                    .any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
            if !readable {
                return Err(format!("nobody can read this: {said:?}"));
            }
            if !words.iter().any(|word| said.to_lowercase().contains(word)) {
                return Err(format!("the reason is missing: {said}"));
            }
            println!("  {}: {said}", case.name);
            Ok(())
        }
        (End::Refused(_), Ok(())) => Err("it was accepted".to_owned()),
        (End::Fetched, fetched) => {
            fetched?;
            if left.complete {
                Ok(())
            } else {
                Err(format!("it is not there: {left:?}"))
            }
        }
        (End::Unusable, Err(said)) => {
            println!("  {}: {said}", case.name);
            Ok(())
        }
        (End::Unusable, Ok(())) => match ponder.problem(MODEL) {
            Some(problem) => {
                println!("  {}: fetched, and then: {problem}", case.name);
                Ok(())
            }
            None => Err("it is said to be usable".to_owned()),
        },
    }
}

fn check_all(cases: &[Case]) {
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| check(case).err().map(|fault| format!("{}: {fault}", case.name)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    check_all(&names());
}

#[test]
fn too_much_is_refused_and_sizes_are_not_believed() {
    check_all(&sizes());
}

#[test]
fn files_that_are_something_else_are_not_used() {
    check_all(&contents());
}

#[test]
fn hubs_cannot_send_anywhere() {
    check_all(&hubs());
}

#[test]
fn links_in_the_folder_lead_nowhere() {
    check_all(&folders());
}
