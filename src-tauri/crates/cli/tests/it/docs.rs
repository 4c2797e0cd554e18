//! Collections of documents on the command line.

use std::fs;

use serde_json::Value;

use crate::support::pebble::image;
use crate::support::{lines, run, run_json, text};

/// The last line of this type.
fn told<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().rfind(|event| event["type"] == kind).expect("it is told")
}

#[test]
fn images_of_a_folder_are_read_when_a_model_is_named_and_not_before() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let folder = home.join("notes");
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("a.md"), "The lighthouse is green.").expect("written");
    fs::write(folder.join("broken.png"), b"\x89PNG\r\n\x1a\nnothing of an image").expect("written");
    image(&folder);
    let added = run_json(home, &["docs", "add", "--json", folder.to_str().expect("text")]);
    let collection = told(&added, "collection");
    assert_eq!((&collection["files"], &collection["images"]), (&1.into(), &2.into()));
    let listed = text(&run(home, &["docs", "list"]));
    assert!(listed.contains("2 images not read"), "{listed}");
    let files = text(&run(home, &["docs", "list", "notes"]));
    assert!(files.contains("docs update --images MODEL"), "{files}");

    let refused = run(home, &["docs", "update", "--json", "--images", "org/nowhere"]);
    assert!(!refused.status.success());
    let said = lines(&refused).pop().expect("a line").to_string();
    assert!(said.contains("model_not_found"), "{said}");

    let read = run_json(home, &["docs", "update", "notes", "--json", "--images", "pebble"]);
    let failed = told(&read, "image_failed");
    assert_eq!(
        (&failed["file"], &failed["error"]["code"]),
        (&"broken.png".into(), &"image_broken".into())
    );
    let images = told(&read, "images");
    assert_eq!((&images["read"], &images["failed"]), (&1.into(), &1.into()), "{read:?}");
    let files = run_json(home, &["docs", "list", "notes", "--json"]);
    let states: Vec<&Value> = files.iter().map(|file| &file["state"]["kind"]).collect();
    assert_eq!(states, ["read", "failed", "read"]);
    let found = run_json(home, &["docs", "search", "--json", "Described by Pebble"]);
    let cat = found
        .iter()
        .find(|passage| passage["file"] == "cat.png")
        .expect("it is found");
    assert!(
        cat["headings"]
            .as_str()
            .is_some_and(|headings| headings.starts_with("Described by")),
        "{cat}"
    );

    // Nothing is left to be read, and no model is loaded for it.
    let again = run_json(home, &["docs", "update", "--json", "--images", "pebble"]);
    assert_eq!(told(&again, "images")["read"], 0);
}
