//! `ponder history import`: chats that come from files, and files in which there are none.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{json, Value};

use crate::support::{command, run, run_json};

fn file(home: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = home.join(name);
    fs::write(&path, bytes).expect("written");
    path
}

fn import(home: &Path, path: &Path) -> Output {
    run(home, &["history", "import", path.to_str().expect("text")])
}

/// The one line of a run that must fail.
fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!said.contains("panicked") && !said.contains("os error"), "{said}");
    said
}

#[test]
fn chats_are_taken_once() {
    let home = tempfile::tempdir().expect("a folder");
    // As Claude exports chats.
    let said = |id: &str, sender: &str, text: &str| json!({"uuid": id, "sender": sender, "text": text, "created_at": "2026-03-01T10:00:00Z"});
    let chats = json!([{"uuid": "tea", "name": "Tea", "created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:00:00Z",
        "chat_messages": [said("a", "human", "How hot should it be?"), said("b", "assistant", "Eighty degrees.")]}]);
    let path = file(home.path(), "conversations.json", chats.to_string());
    let path = path.to_str().expect("text");
    let taken = |chats: usize, messages: usize, already_here: usize| json!({"chats": chats, "messages": messages, "already_here": already_here, "dropped_images": 0});
    assert_eq!(
        run_json(home.path(), &["history", "import", "--json", path]),
        [taken(1, 2, 0)]
    );
    assert_eq!(
        run_json(home.path(), &["history", "import", "--json", path]),
        [taken(0, 0, 1)]
    );
    let listed = run_json(home.path(), &["history", "--json"]);
    assert_eq!(listed[0]["chats"][0]["title"], "Tea");
}

#[test]
fn what_holds_no_chats_is_refused_in_words() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let garbage: Vec<u8> = (0..100_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80)
        .collect();
    let folder = home.join("a folder");
    fs::create_dir(&folder).expect("made");
    // No room is taken for what nobody wrote.
    let long = file(home, "long.json", "[");
    let open = File::options().write(true).open(&long).expect("opened");
    open.set_len((1 << 30) + 1).expect("longer");
    for (path, words) in [
        (
            file(home, "garbage", garbage),
            "it is neither JSON nor a ZIP archive. Nothing was changed",
        ),
        (
            file(home, "empty.json", ""),
            "there is nothing in it. Nothing was changed",
        ),
        (file(home, "cut.json", "[{\"uuid\": \"tea\", "), "it is no JSON"),
        (
            file(home, "other.json", "{\"a\": 1}"),
            "it is no export of Ponder, ChatGPT, Claude or LM Studio",
        ),
        (folder, "a folder cannot be read: is a directory"),
        (home.join("missing.json"), "missing.json cannot be read: no such file"),
        (long, "long.json is longer than 1 GB"),
    ] {
        let said = refusal(&import(home, &path));
        assert!(said.contains(words), "{}: {said}", path.display());
    }
    let empty = home.join("empty.json");
    let output = run(home, &["history", "import", "--json", empty.to_str().expect("text")]);
    let said: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((output.status.code(), &said["code"]), (Some(1), &json!("bad_request")));
    assert_eq!(run_json(home, &["history", "--json"]), [json!({"chats": []})]);
}

#[cfg(unix)]
#[test]
fn what_never_ends_is_given_up_after_its_beginning() {
    let home = tempfile::tempdir().expect("a folder");
    let said = refusal(&import(home.path(), Path::new("/dev/zero")));
    assert!(said.contains("neither JSON nor a ZIP archive"), "{said}");

    // The same through a pipe, which tells how much was read.
    let mut child = command(home.path(), &["history", "import", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let zeros = [0; 1024];
    let taken = (0..1 << 20).take_while(|_| pipe.write_all(&zeros).is_ok()).count();
    drop(pipe);
    refusal(&child.wait_with_output().expect("it ends"));
    // A pipe itself holds 64 KB, on some systems a megabyte.
    assert!(taken <= 2 * 1024, "{taken} KB were taken");
}
