//! Pictures on the command line: what is read, what is refused, and what a model would be given.

mod ponder;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{json, Value};

/// A PNG of one pixel.
const PNG: [u8; 69] = [
    0x89, 0x50, 0x4e, 0x47, 0xd, 0xa, 0x1a, 0xa, 0, 0, 0, 0xd, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0,
    0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0xc, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1,
    1, 0, 0xf7, 3, 0x41, 0x43, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// The picture's file.
fn picture(home: &Path) -> PathBuf {
    let path = home.join("cat.png");
    fs::write(&path, PNG).expect("written");
    path
}

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it is there")).expect("JSON")
}

/// Pebble's words in a folder of another kind: `change` changes its config.json.
fn folder(home: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let folder = home.join(name);
    fs::create_dir_all(&folder).expect("made");
    for file in fs::read_dir(pebble()).expect("Pebble is there") {
        let file = file.expect("a file").path();
        fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("copied");
    }
    let mut config = read(&folder.join("config.json"));
    change(&mut config);
    fs::write(folder.join("config.json"), config.to_string()).expect("written");
    folder
}

/// A model that does not see, whatever Pebble does.
fn blind(home: &Path) -> PathBuf {
    folder(home, "blind", |config| {
        let fields = config.as_object_mut().expect("an object");
        fields.remove("vision_config");
    })
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn a_vision_part_that_cannot_be_read_is_the_reason_of_the_refusal_and_stands_in_the_list() {
    let home = tempfile::tempdir().expect("a folder");
    let picture = picture(home.path());
    // Where the list looks for models.
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let repository = home.path().join("hub/hub/models--org--spoiled");
    let model = folder(&repository.join("snapshots"), commit, |config| {
        config["vision_config"]["patch_size"] = json!("wide");
    });
    fs::create_dir_all(repository.join("refs")).expect("made");
    fs::write(repository.join("refs/main"), commit).expect("written");
    let asked = [
        "ask",
        "--json",
        "--model",
        text(&model),
        "--image",
        text(&picture),
        "What is it?",
    ];
    let output = ponder::run(home.path(), &asked);
    assert!(!output.status.success());
    let told = ponder::lines(&output).pop().expect("a line").to_string();
    assert!(
        told.contains("cannot see pictures, because its vision part cannot be read") && told.contains("patch_size"),
        "{told}"
    );

    let table = ponder::text(&ponder::run(home.path(), &["models"]));
    assert!(
        table.contains(
            "its vision part cannot be read, so it takes text alone: config.json has an unusable `patch_size`"
        ),
        "{table}"
    );
    let listed = ponder::run_json(home.path(), &["models", "--json"]);
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
    let (model, picture) = (blind(home.path()), picture(home.path()));
    let asked = [
        "ask",
        "--json",
        "--model",
        text(&model),
        "--image",
        text(&picture),
        "What is it?",
    ];
    let output = ponder::run(home.path(), &asked);
    assert!(!output.status.success());
    let error = ponder::lines(&output).pop().expect("a line");
    let told = error.to_string();
    assert!(
        told.contains("picture_not_seen") && told.contains("cannot see pictures"),
        "{told}"
    );
}

#[test]
fn a_file_that_is_no_picture_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let model = blind(home.path());
    let file = home.path().join("notes.png");
    fs::write(&file, "these are words").expect("written");
    // The last one never ends.
    for file in [text(&file), "missing.png", "/dev/zero"] {
        let output = ponder::run(
            home.path(),
            &["ask", "--model", text(&model), "--image", file, "What is it?"],
        );
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(file) && !said.contains("os error"), "{said}");
    }
}

/// Pebble's words with the tokens and the processor of a Gemma 4 that sees.
fn seeing(home: &Path) -> PathBuf {
    let folder = folder(home, "seeing", |config| {
        config["model_type"] = "gemma4".into();
        config["vision_config"] = json!({"model_type": "gemma4_vision", "patch_size": 16, "pooling_kernel_size": 3});
    });
    let size = read(&folder.join("tokenizer.json"))["model"]["vocab"]
        .as_object()
        .expect("a vocabulary")
        .len();
    let mut config = read(&folder.join("tokenizer_config.json"));
    let added = |(id, content): (usize, &str)| (id.to_string(), json!({"content": content, "special": true}));
    let tokens: serde_json::Map<String, Value> =
        (size..).zip(["<|image>", "<|image|>", "<image|>"]).map(added).collect();
    config["added_tokens_decoder"] = tokens.into();
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).expect("written");
    let processor = json!({"image_processor_type": "Gemma4ImageProcessor", "patch_size": 16, "pooling_kernel_size": 3, "max_soft_tokens": 280});
    fs::write(folder.join("preprocessor_config.json"), processor.to_string()).expect("written");
    folder
}

#[test]
fn render_tells_how_many_tokens_a_picture_takes() {
    let home = tempfile::tempdir().expect("a folder");
    let (model, picture) = (seeing(home.path()), picture(home.path()));
    let messages = home.path().join("messages.json");
    fs::write(
        &messages,
        json!([{"role": "user", "content": "What is <|image|>?"}]).to_string(),
    )
    .expect("written");
    let options = [
        "render",
        "--model",
        text(&model),
        "--image",
        text(&picture),
        "--messages",
        text(&messages),
    ];
    let rendered = ponder::text(&ponder::run(home.path(), &options));
    let (before, after) = rendered.split_once("⟨image ").expect("a picture");
    let (tokens, after) = after.split_once('⟩').expect("its end");
    assert!(tokens.parse::<u32>().expect("a number") > 0, "{rendered}");
    // What somebody typed is text.
    assert!(
        before.ends_with("user\n") && after.contains("What is <|image|>?"),
        "{rendered}"
    );

    let mut piped = ponder::command(
        home.path(),
        &[
            "render",
            "--model",
            text(&model),
            "--image",
            "-",
            "--messages",
            text(&messages),
        ],
    );
    let output = piped
        .stdin(Stdio::from(fs::File::open(&picture).expect("opened")))
        .output()
        .expect("ponder starts");
    assert_eq!(ponder::text(&output), rendered);
}

#[test]
fn a_picture_in_a_chat_is_refused_before_anything_is_stored() {
    let home = tempfile::tempdir().expect("a folder");
    let (model, picture) = (blind(home.path()), picture(home.path()));
    let lines = home.path().join("lines");
    fs::write(&lines, format!("/image {}\nWhat is it?\n", text(&picture))).expect("written");
    let mut chat = ponder::command(home.path(), &["chat", "--model", text(&model)]);
    let output = chat
        .stdin(Stdio::from(fs::File::open(&lines).expect("opened")))
        .output()
        .expect("ponder starts");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot see pictures"), "{said}");
}
