//! Pebble's files, as they are and changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};

/// A PNG of one pixel.
const PNG: [u8; 69] = [
    0x89, 0x50, 0x4e, 0x47, 0xd, 0xa, 0x1a, 0xa, 0, 0, 0, 0xd, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0,
    0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0xc, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1,
    1, 0, 0xf7, 3, 0x41, 0x43, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// The folder of Pebble.
pub fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")
}

/// Pebble's files in a folder of their own; `change` changes its config.json.
pub fn changed_pebble(home: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
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

/// Pebble's words with the tokens and the processor of a Gemma 4 that sees. Its weights do not fit.
pub fn pebble_with_vision(home: &Path) -> PathBuf {
    let folder = changed_pebble(home, "seeing", |config| {
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

/// A file with an image of one pixel.
pub fn image(home: &Path) -> PathBuf {
    let path = home.join("cat.png");
    fs::write(&path, PNG).expect("written");
    path
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it is there")).expect("JSON")
}
