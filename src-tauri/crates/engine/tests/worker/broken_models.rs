//! A model that cannot be loaded gives one clear error, and the worker lives.

use std::path::Path;

use crate::common::{files, hear, pebble, pebble_dir, question, source};
use engine::MlxEngine;
use protocol::{
    Content, Engine, Error, ErrorCode, ImageBytes, LoadEvent, LocalEngine, Message, ModelSource, Notice, NoticeCode,
    Reason, Role, Thinking,
};
use serde_json::Value;

/// Pebble with something broken.
fn broken(engine: &MlxEngine, spoil: impl FnOnce(&Path)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(pebble_dir()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    spoil(folder.path());
    let mut events = engine.load(source(folder.path()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut ends = Vec::new();
    while let Some(event) = runtime.block_on(events.recv()) {
        match event {
            LoadEvent::Progress { .. } => {}
            LoadEvent::Ready(info) => panic!("a broken model was loaded: {info:?}"),
            LoadEvent::Failed(error) => ends.push(error),
        }
    }
    assert_eq!(ends.len(), 1);
    assert!(engine.loaded().is_empty());
    ends.remove(0)
}

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    std::fs::write(path, change(std::fs::read_to_string(path).unwrap())).unwrap();
}

/// Rewrites the header of a safetensors file; its length stays, so that the data stays in place.
fn edit_header(path: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(&mut header);
    let mut text = serde_json::to_vec(&header).unwrap();
    assert!(text.len() <= length);
    text.resize(length, b' ');
    std::fs::write(path, [&bytes[..8], &text, &bytes[8 + length..]].concat()).unwrap();
}

#[test]
fn every_kind_of_broken_model_gives_its_own_error() {
    let engine = MlxEngine::start();
    let shard = "model.safetensors";
    let assert_error = |error: Error, code: ErrorCode, words: &[&str]| {
        assert_eq!(error.code, code, "{error}");
        assert!(
            words.iter().all(|word| error.message.contains(word)),
            "{words:?} are missing in: {error}"
        );
    };

    let error = broken(&engine, |dir| std::fs::remove_file(dir.join(shard)).unwrap());
    assert_error(error, ErrorCode::ModelBroken, &[shard, "repair"]);

    let error = broken(&engine, |dir| {
        edit(&dir.join("model.safetensors.index.json"), |text| {
            text.replacen(shard, "model-2.safetensors", 1)
        })
    });
    assert_error(error, ErrorCode::ModelBroken, &["model-2.safetensors"]);

    let error = broken(&engine, |dir| {
        edit(&dir.join("model.safetensors.index.json"), |text| {
            text.replacen(shard, "../model.safetensors", 1)
        })
    });
    assert_error(
        error,
        ErrorCode::ModelBroken,
        &["../model.safetensors", "no file beside it"],
    );

    let error = broken(&engine, |dir| {
        std::fs::remove_file(dir.join(shard)).unwrap();
        std::fs::create_dir(dir.join(shard)).unwrap();
    });
    assert_error(error, ErrorCode::ModelBroken, &[shard, "repair"]);

    let error = broken(&engine, |dir| {
        let file = std::fs::OpenOptions::new().write(true).open(dir.join(shard)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1000).unwrap();
    });
    assert_error(error, ErrorCode::ModelBroken, &[shard, "cut short"]);

    let error = broken(&engine, |dir| {
        let file = std::fs::OpenOptions::new().write(true).open(dir.join(shard)).unwrap();
        file.set_len(100).unwrap();
    });
    assert_error(error, ErrorCode::ModelBroken, &[shard, "header"]);

    let error = broken(&engine, |dir| {
        edit_header(&dir.join(shard), |header| {
            let name = "language_model.model.layers.0.self_attn.o_proj.weight";
            header[name]["shape"] = serde_json::json!([64, 320]);
        });
    });
    assert_error(
        error,
        ErrorCode::ModelBroken,
        &["layers.0.self_attn.o_proj.weight", "shape"],
    );

    let error = broken(&engine, |dir| {
        edit_header(&dir.join(shard), |header| {
            header
                .as_object_mut()
                .unwrap()
                .shift_remove("language_model.model.layers.3.mlp.up_proj.weight")
                .unwrap();
        });
    });
    assert_error(error, ErrorCode::ModelBroken, &["layers.3.mlp.up_proj.weight", "lack"]);

    // Whole numbers where floats belong, in a norm and in the scales of a quantised matrix.
    for tensor in ["norm.weight", "layers.1.mlp.up_proj.scales"] {
        let error = broken(&engine, |dir| {
            edit_header(&dir.join(shard), |header| {
                let entry = &mut header[format!("language_model.model.{tensor}")];
                entry["dtype"] = if entry["dtype"] == "F32" {
                    "I32".into()
                } else {
                    "I16".into()
                };
            });
        });
        let name = tensor.trim_end_matches(".scales");
        assert!(
            matches!(error.code, ErrorCode::ModelBroken | ErrorCode::ModelUnsupported),
            "{error}"
        );
        assert!(error.message.contains(name), "{error}");
    }

    let error = broken(&engine, |dir| {
        edit(&dir.join("config.json"), |text| {
            text.replacen("\"model_type\": \"gemma4\"", "\"model_type\": \"mamba9\"", 1)
        })
    });
    assert_error(error, ErrorCode::ModelUnsupported, &["mamba9", "gemma4"]);

    let error = broken(&engine, |dir| {
        std::fs::write(dir.join("config.json"), "not JSON at all").unwrap()
    });
    assert_error(error, ErrorCode::ModelBroken, &["config.json", "JSON"]);

    let error = broken(&engine, |dir| std::fs::remove_file(dir.join("config.json")).unwrap());
    assert_error(error, ErrorCode::ModelBroken, &["config.json"]);

    let error = broken(&engine, |dir| {
        edit(&dir.join("config.json"), |text| {
            text.replacen("\"sliding_attention\"", "\"curious_attention\"", 1)
        })
    });
    assert_error(
        error,
        ErrorCode::ModelUnsupported,
        &["curious_attention", "not supported yet"],
    );

    let error = broken(&engine, |dir| std::fs::remove_file(dir.join("tokenizer.json")).unwrap());
    assert_error(error, ErrorCode::ModelBroken, &["tokenizer.json"]);

    // The worker has seen it all and works.
    assert_eq!(engine.inspect().unwrap().living, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let heard = runtime.block_on(hear(engine.generate(question("What is 347 + 589?", Thinking::On))));
    assert_eq!(heard.text, "347 + 589 = **936**");
    assert_eq!(engine.loaded()[0].reference, pebble().reference);
}

#[test]
fn a_token_that_the_model_does_not_know_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(pebble_dir()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    edit(&folder.path().join("tokenizer.json"), |text| {
        let mut tokenizer: Value = serde_json::from_str(&text).unwrap();
        let added = tokenizer["added_tokens"].as_array_mut().unwrap();
        let mut stranger = added[0].clone();
        (stranger["id"], stranger["content"], stranger["special"]) = (9000.into(), "zebra".into(), false.into());
        added.push(stranger);
        tokenizer.to_string()
    });
    let engine = MlxEngine::start();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ask = |text: &str| {
        let request = protocol::Request {
            model: source(folder.path()).into(),
            max_tokens: Some(2),
            ..question(text, Thinking::Off)
        };
        runtime.block_on(hear(engine.generate(request)))
    };
    let error = ask("What is a zebra?").error().clone();
    assert_eq!(error.code, ErrorCode::ModelBroken, "{error}");
    assert!(
        error.message.contains("tokenizer.json") && error.message.contains("4096"),
        "{error}"
    );
    assert_eq!(ask("What is 1 + 1?").done().usage.unwrap().completion_tokens, 2);
}

#[test]
fn an_id_beyond_the_embedding_never_reaches_the_model() {
    let engine = MlxEngine::start();
    // As a prefetched conversation, or the tokens that end a thought, may hold one: nothing looks at them before.
    for prompt in [vec![2, 4_000_000_000, 3], vec![2, 3, 4096, 5]] {
        let error = engine.decode_together(pebble(), vec![prompt], 2, None).unwrap_err();
        assert_eq!(error.code, ErrorCode::ModelBroken, "{error}");
        assert!(error.message.contains("the model knows 4096 tokens"), "{error}");
    }
    assert!(engine
        .decode_together(pebble(), vec![vec![2, 3, 4095, 5]], 2, None)
        .is_ok());
}

/// A change that spoils a config.
type Spoil = fn(&mut Value);

#[test]
fn a_model_whose_vision_part_cannot_be_read_answers_and_says_why_it_does_not_see() {
    let engine = MlxEngine::start();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // An image of one pixel.
    let mut bytes = b"BM".to_vec();
    bytes.extend([
        58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0,
    ]);
    bytes.extend([0; 28]);
    let image: ImageBytes = bytes.into();
    let spoils: [(&str, Spoil); 3] = [
        ("`vision_config`", |config| {
            config["vision_config"] = serde_json::json!(["gemma4_vision"])
        }),
        ("`vision_config`", |config| {
            drop(config.as_object_mut().unwrap().remove("vision_config"))
        }),
        ("`patch_size`", |config| {
            config["vision_config"]["patch_size"] = serde_json::json!(0)
        }),
    ];
    for (words, spoil) in spoils {
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(pebble_dir()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        files::edit_config(folder.path(), spoil);
        let model: ModelSource = source(folder.path()).into();
        let capabilities = engine.capabilities(&model);
        let problem = capabilities.vision_problem.unwrap();
        assert_eq!(problem.reason, Some(Reason::ModelVision));
        assert!(!capabilities.images && problem.cause().contains(words), "{problem}");
        let mut asked = protocol::Request {
            model,
            ..question("What is 347 + 589?", Thinking::On)
        };
        let heard = runtime.block_on(hear(engine.generate(asked.clone())));
        assert_eq!(heard.text, "347 + 589 = **936**");
        let mut message = Message::text(Role::User, "What is it?");
        message.content.push(Content::Image {
            attachment: image.id(),
            media_type: "image/bmp".into(),
            width: 1,
            height: 1,
            alt: "dot.bmp".into(),
        });
        asked.messages = vec![message];
        // The image was just sent, or belongs to an older turn and comes without its bytes.
        for images in [vec![(image.id(), image.clone())], Vec::new()] {
            asked.images = images.into_iter().collect();
            let heard = runtime.block_on(hear(engine.generate(asked.clone())));
            heard.done();
            let left_out = |notice: &&Notice| notice.code == NoticeCode::ImageLeftOut;
            let notice = heard.notices.iter().find(left_out).expect("a notice");
            assert!(notice.message.contains(words), "{notice:?}");
        }
    }
}
