//! Images on the command line: those that are read, and those that are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{json, Value};

use crate::support::pebble::{changed_pebble, image, text};
use crate::support::{command, lines, run, run_json, text as printed};

/// A model that does not see, whatever Pebble does.
fn without_vision(home: &Path) -> PathBuf {
    changed_pebble(home, "blind", |config| {
        let fields = config.as_object_mut().expect("an object");
        fields.remove("vision_config");
    })
}

fn ask_about(home: &Path, model: &Path, image: &Path) -> Output {
    let image = ["--image", text(image), "What is it?"];
    run(
        home,
        &[["ask", "--json", "--model"].as_slice(), &[text(model)], &image].concat(),
    )
}

#[test]
fn a_vision_part_that_cannot_be_read_is_the_reason_of_the_refusal_and_stands_in_the_list() {
    let home = tempfile::tempdir().expect("a folder");
    let image = image(home.path());
    // The place where the list looks for models.
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let repository = home.path().join("hub/hub/models--org--spoiled");
    let model = changed_pebble(&repository.join("snapshots"), commit, |config| {
        config["vision_config"]["patch_size"] = json!("wide");
    });
    fs::create_dir_all(repository.join("refs")).expect("made");
    fs::write(repository.join("refs/main"), commit).expect("written");
    let output = ask_about(home.path(), &model, &image);
    assert!(!output.status.success());
    let told = lines(&output).pop().expect("a line").to_string();
    assert!(
        told.contains("doesn't support images, because") && told.contains("patch_size"),
        "{told}"
    );

    let table = printed(&run(home.path(), &["models"]));
    assert!(
        table.contains("text only, because its vision files are unusable: config.json"),
        "{table}"
    );
    let listed = run_json(home.path(), &["models", "--json"]);
    let models = listed[0]["models"].as_array().expect("a list");
    let problem = |reference: &str| {
        models
            .iter()
            .find(|model| model["reference"] == reference)
            .map(|model| model["vision_problem"].clone())
    };
    assert_eq!(problem("pebble"), Some(Value::Null));
    assert!(
        problem("org/spoiled").is_some_and(|problem| problem.to_string().contains("patch_size")),
        "{listed:?}"
    );
}

#[test]
fn a_model_that_does_not_see_is_not_asked() {
    let home = tempfile::tempdir().expect("a folder");
    let (model, image) = (without_vision(home.path()), image(home.path()));
    let output = ask_about(home.path(), &model, &image);
    assert!(!output.status.success());
    let error = lines(&output).pop().expect("a line");
    let told = error.to_string();
    assert!(
        told.contains("image_not_seen") && told.contains("doesn't support images"),
        "{told}"
    );
}

#[test]
fn a_file_that_is_no_image_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let model = without_vision(home.path());
    let file = home.path().join("notes.png");
    fs::write(&file, "these are words").expect("written");
    // The last one never ends.
    for file in [text(&file), "missing.png", "/dev/zero"] {
        let output = run(
            home.path(),
            &["ask", "--model", text(&model), "--image", file, "What is it?"],
        );
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(file) && !said.contains("os error"), "{said}");
    }
}

#[test]
fn an_image_in_a_chat_is_refused_before_anything_is_stored() {
    let home = tempfile::tempdir().expect("a folder");
    let (model, image) = (without_vision(home.path()), image(home.path()));
    let lines = home.path().join("lines");
    fs::write(&lines, format!("/image {}\nWhat is it?\n", text(&image))).expect("written");
    let mut chat = command(home.path(), &["chat", "--model", text(&model)]);
    let output = chat
        .stdin(Stdio::from(fs::File::open(&lines).expect("opened")))
        .output()
        .expect("it starts");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot see images"), "{said}");
}
