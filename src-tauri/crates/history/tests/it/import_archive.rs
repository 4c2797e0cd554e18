//! Exports that come as ZIP archives, as ChatGPT and Claude send them, and hostile ones.

use std::io::{Cursor, Write};

use history::{read_import, Error, ImportFormat};
use serde_json::{json, Value};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::Fresh;

fn claude(name: &str) -> Value {
    json!([{"uuid": name, "name": name, "created_at": "2025-03-01T10:00:00Z", "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "Hello"}, {"uuid": "2", "sender": "assistant", "text": "Good day"}]}])
}

fn chatgpt(name: &str) -> Value {
    let message = json!({"id": "m", "author": {"role": "user"}, "create_time": 1.0, "content": {"content_type": "text", "parts": [name]}});
    json!([{"title": name, "conversation_id": name, "create_time": 1.0, "current_node": "a",
        "mapping": {"a": {"id": "a", "message": message, "parent": null, "children": []}}}])
}

/// An archive of these files.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn titles(file: &[u8]) -> Vec<String> {
    let chats = read_import(file).unwrap().chats;
    chats.into_iter().map(|chat| chat.title).collect()
}

fn refusal(file: &[u8]) -> String {
    match read_import(file) {
        Err(error @ Error::Import(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_archives_of_both_programs_are_taken_as_they_come() {
    // Shape: what Claude sends; users and projects lie beside the conversations.
    let sent = zip(&[
        ("users.json", b"[]"),
        ("projects.json", b"[]"),
        ("conversations.json", claude("One").to_string().as_bytes()),
    ]);
    let read = read_import(&sent).unwrap();
    assert_eq!(read.format, ImportFormat::Claude);
    let fresh = Fresh::new().await;
    assert_eq!(fresh.history.import(read).await.unwrap().chats, 1);
    let again = fresh.history.import(read_import(&sent).unwrap()).await.unwrap();
    assert_eq!((again.chats, again.already_here), (0, 1));

    // Shape: what ChatGPT sends, with a page and images; a Mac that packs a folder again adds names of its own.
    let packed_again = zip(&[
        ("export/chat.html", b"<html>"),
        ("export/dalle-generations/a.webp", b"RIFF"),
        ("export/conversations.json", chatgpt("One").to_string().as_bytes()),
        ("__MACOSX/export/._conversations.json", b"\0\x05\x16\x07"),
        ("__MACOSX/export/conversations.json", b"\0\x05\x16\x07"),
    ]);
    assert_eq!(titles(&packed_again), ["One"]);

    // Long ones come in numbered files, of which each is a list.
    let long = zip(&[
        ("conversations-001.json", chatgpt("Two").to_string().as_bytes()),
        ("conversations-000.json", chatgpt("One").to_string().as_bytes()),
        ("conversations.json.index", b"no json"),
        ("shared_conversations.json", b"[]"),
        ("conversations-x.json", b"no json"),
    ]);
    assert_eq!(titles(&long), ["One", "Two"]);
    assert_eq!(read_import(&long).unwrap().format, ImportFormat::ChatGpt);
}

#[test]
fn hostile_archives_are_refused_with_a_sentence() {
    let json = claude("One").to_string();
    let good = zip(&[("conversations.json", json.as_bytes())]);
    let nested = zip(&[("export.zip", &good)]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (zip(&[]), "without conversations.json"),
        (zip(&[("chats.json", json.as_bytes())]), "without conversations.json"),
        (zip(&[("CONVERSATIONS.JSON/x", b"")]), "without conversations.json"),
        (nested, "without conversations.json"),
        (zip(&[("conversations.json", &good)]), "is no JSON"),
        (zip(&[("conversations.json", b"")]), "is no JSON"),
        (zip(&[("conversations.json", b"[]")]), "no export of"),
        (
            zip(&[
                ("a/conversations.json", json.as_bytes()),
                ("b/conversations.json", json.as_bytes()),
            ]),
            "of the same name",
        ),
        (good[..good.len() - 30].to_vec(), "not fetched to its end"),
        (good[..60].to_vec(), "not fetched to its end"),
        (b"PK\x03\x04 a zip".to_vec(), "damaged"),
    ];
    for (file, said) in cases {
        let error = refusal(&file);
        assert!(
            error.contains(said) && error.ends_with("Nothing was changed"),
            "{said}: {error}"
        );
    }
}

#[test]
fn a_small_archive_of_many_values_is_refused_before_it_is_parsed() {
    // Each pair of brackets takes dozens of bytes in memory.
    let many = format!("[{}[]]", "[],".repeat(2_600_000));
    let file = zip(&[("conversations.json", many.as_bytes())]);
    assert!(file.len() < 100_000, "{}", file.len());
    assert!(refusal(&file).contains("more than 5,000,000 values"));
    assert!(refusal(many.as_bytes()).contains("more than 5,000,000 values"));
    let half = format!("[{}[]]", "[],".repeat(1_300_000));
    let halves = zip(&[
        ("conversations-1.json", half.as_bytes()),
        ("conversations-2.json", half.as_bytes()),
    ]);
    assert!(refusal(&halves).contains("more than 5,000,000 values"));
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    assert!(refusal(deep.as_bytes()).contains("more than 128 levels"));
    let long = zip(&[("conversations.json", &vec![b' '; (256 << 20) + 1])]);
    assert!(refusal(&long).contains("more than 256 MB"));
}

#[test]
fn two_entries_of_one_name_are_refused() {
    // Written under another name of the same length, because the writer refuses the same.
    let mut file = zip(&[
        ("conversations.json", claude("One").to_string().as_bytes()),
        ("conversationz.json", claude("Two").to_string().as_bytes()),
    ]);
    replace(&mut file, b"conversationz.json", b"conversations.json");
    assert!(refusal(&file).contains("of the same name"));
}

#[test]
fn names_lead_nowhere() {
    // Whatever a name says, its file is read in memory and nothing is written.
    let folder = tempfile::tempdir().unwrap();
    let before = std::env::current_dir().unwrap();
    let absolute = format!("{}/conversations.json", folder.path().display());
    for name in [
        "../../conversations.json",
        "..\\..\\conversations.json",
        "/conversations.json",
        &absolute,
    ] {
        let file = zip(&[(name, claude("One").to_string().as_bytes())]);
        assert_eq!(titles(&file), ["One"], "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(!before.join("conversations.json").exists());
}

#[test]
fn damaged_protected_and_unusual_archives_say_so() {
    let json = claude("One").to_string();
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("conversations.json", stored).unwrap();
    writer.write_all(json.as_bytes()).unwrap();
    let good = writer.finish().unwrap().into_inner();
    assert_eq!(titles(&good), ["One"]);

    let mut damaged = good.clone();
    replace(&mut damaged, b"Good day", b"Bad  day");
    assert!(refusal(&damaged).contains("damaged"), "the sum is looked at");

    // Bit 0 of the flags, in both headers: encrypted.
    let directory = place(&good, b"PK\x01\x02");
    let mut locked = good.clone();
    locked[6] |= 1;
    locked[directory + 8] |= 1;
    assert!(refusal(&locked).contains("with a password"), "{}", refusal(&locked));

    // The methods of bzip2 and of LZMA.
    for method in [12, 14] {
        let mut odd = good.clone();
        odd[8] = method;
        odd[directory + 10] = method;
        assert!(refusal(&odd).contains("unusual way"), "{}", refusal(&odd));
    }
}

#[test]
fn a_directory_of_too_many_files_is_not_read() {
    let mut file = zip(&[("conversations.json", claude("One").to_string().as_bytes())]);
    file.extend(b"PK\x01\x02".repeat(100_001));
    assert!(refusal(&file).contains("more than 100,000 files"));
}

fn place(file: &[u8], bytes: &[u8]) -> usize {
    file.windows(bytes.len()).rposition(|window| window == bytes).unwrap()
}

/// Replaces bytes by as many others, wherever they stand.
fn replace(file: &mut [u8], old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len());
    for at in 0..=file.len() - old.len() {
        if &file[at..at + old.len()] == old {
            file[at..at + old.len()].copy_from_slice(new);
        }
    }
}
