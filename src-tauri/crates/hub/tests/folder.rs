//! Models on a computer, found in a cache in the layout of the hub's clients.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use api::{ModelPlace, ModelShelf};
use hub::{Error, ModelFolder};
use protocol::{ErrorCode, Reason, ThinkingControl};
use tokio_util::sync::CancellationToken;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../pebble/model")
        .canonicalize()
        .unwrap()
}

/// A repository in the cache: blobs, a snapshot of links to them, and a ref.
fn cached(cache: &Path, id: &str, commit: &str, files: &[(&str, PathBuf)]) {
    let repository = cache.join(format!("models--{}", id.replace('/', "--")));
    let snapshot = repository.join("snapshots").join(commit);
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(repository.join("refs")).unwrap();
    fs::write(repository.join("refs/main"), commit).unwrap();
    for (name, from) in files {
        std::os::unix::fs::symlink(from, snapshot.join(name)).unwrap();
    }
}

fn all_of_pebble() -> Vec<(&'static str, PathBuf)> {
    [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
        "model.safetensors",
    ]
    .map(|name| (name, pebble().join(name)))
    .into()
}

#[test]
fn a_model_whose_vision_part_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let sound: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(pebble().join("config.json")).unwrap()).unwrap();
    let list = |name: &str, files: Vec<(&'static str, PathBuf)>| {
        let cache = folder.path().join(name);
        cached(&cache, "org/pebble", COMMIT, &files);
        let model = ModelFolder::at(None, Some(cache)).list().remove(0);
        assert_eq!(model.problem, None);
        (model.supports_vision, model.vision_problem)
    };
    let mut files = all_of_pebble();
    let (supports_vision, problem) = list("without its processor", files.clone());
    let problem = problem.unwrap();
    assert_eq!((supports_vision, problem.reason), (false, Some(Reason::ModelVision)));
    assert!(problem.cause().contains("preprocessor_config.json"), "{problem}");
    files.push(("processor_config.json", pebble().join("processor_config.json")));
    assert_eq!(list("whole", files.clone()), (true, None));
    let mut spoiled = sound.clone();
    spoiled["vision_config"]["num_attention_heads"] = serde_json::json!("three");
    let mut without = sound;
    without.as_object_mut().unwrap().remove("vision_config");
    for (name, config, word) in [
        ("spoiled", spoiled, "`num_attention_heads`"),
        ("without", without, "`vision_config`"),
    ] {
        let path = folder.path().join(format!("{name}.json"));
        fs::write(&path, config.to_string()).unwrap();
        let mut files = files.clone();
        files[0].1 = path;
        let (supports_vision, problem) = list(name, files);
        assert!(
            !supports_vision && problem.as_ref().unwrap().cause().contains(word),
            "{name}: {problem:?}"
        );
    }
}

#[test]
fn the_built_in_model_is_listed_first_with_all_its_facts() {
    let models = ModelFolder::at(Some(pebble()), None).list();
    assert_eq!(models.len(), 1);
    let model = &models[0];
    assert_eq!(
        (model.reference.as_str(), model.name.as_str(), model.built_in),
        ("pebble", "Pebble", true)
    );
    assert_eq!(
        (model.family.as_deref(), model.context, model.problem.as_ref()),
        (Some("gemma4"), Some(4096), None)
    );
    assert_eq!(model.thinking, Some(ThinkingControl::Switch { default_on: false }));
    assert!(model.quantization.as_deref() == Some("8 bit"), "{model:?}");
    assert!(model.bytes > 15_000_000);
}

#[test]
fn a_model_whose_makers_set_no_temperature_has_ponders_sampling_in_chats() {
    let folder = tempfile::tempdir().unwrap();
    let list = |name: &str, files: Vec<(&'static str, PathBuf)>| {
        let cache = folder.path().join(name);
        cached(&cache, "org/pebble", COMMIT, &files);
        let model = ModelFolder::at(None, Some(cache)).list().remove(0);
        let sampling = model.sampling;
        (
            model.sampling_by_makers,
            sampling.temperature,
            sampling.top_p,
            sampling.repetition_penalty,
        )
    };
    let mut files = all_of_pebble();
    assert_eq!(list("makers", files.clone()), (true, Some(0.2), Some(0.95), Some(1.0)));
    let path = folder.path().join("generation_config.json");
    fs::write(&path, r#"{"eos_token_id": [1, 106]}"#).unwrap();
    files[4].1 = path;
    assert_eq!(list("none", files), (false, Some(0.7), Some(0.95), Some(1.1)));
}

#[test]
fn what_another_client_fetched_is_found_by_its_id() {
    let cache = tempfile::tempdir().unwrap();
    cached(cache.path(), "somebody/Small-Model", COMMIT, &all_of_pebble());
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let models = folder.list();
    assert_eq!(
        models.iter().map(|model| model.reference.as_str()).collect::<Vec<_>>(),
        ["somebody/Small-Model"]
    );
    assert_eq!(models[0].name, "Small Model");
    let source = folder.find("somebody/Small-Model").unwrap();
    assert_eq!(source.revision.as_deref(), Some(COMMIT));
    assert!(source.path.join("config.json").is_file());
}

#[test]
fn a_model_with_a_missing_file_is_never_offered() {
    let cache = tempfile::tempdir().unwrap();
    cached(cache.path(), "somebody/half", COMMIT, &all_of_pebble()[..5]);
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let problem = folder.list()[0].problem.clone().unwrap();
    assert_eq!((problem.code, problem.reason), (ErrorCode::ModelBroken, None));
    assert!(problem.message.contains("model.safetensors"), "{problem}");
    assert!(matches!(folder.find("somebody/half"), Err(Error::Incomplete { .. })));
    assert_eq!(
        folder.resolve("somebody/half").unwrap_err().code,
        ErrorCode::ModelBroken
    );
}

#[test]
fn a_family_that_is_not_known_says_so_in_the_list() {
    let cache = tempfile::tempdir().unwrap();
    let config = cache.path().join("config.json");
    fs::write(&config, r#"{"model_type": "marvin9"}"#).unwrap();
    let mut files = all_of_pebble();
    files[0].1 = config;
    cached(cache.path(), "somebody/new", COMMIT, &files);
    let models = ModelFolder::at(None, Some(cache.path().into())).list();
    let problem = models[0].problem.as_ref().unwrap();
    assert_eq!(problem.reason, Some(Reason::ModelFamily));
    assert_eq!(problem.arguments["family"], "marvin9".into());
    assert!(problem.message.contains("marvin9"), "{problem}");
}

#[test]
fn a_model_that_will_not_run_says_why_before_it_is_chosen() {
    let pebble_config = fs::read_to_string(pebble().join("config.json")).unwrap();
    let own_code = pebble_config.replacen('{', "{\"model_file\": \"mine.py\",", 1);
    let judge = pebble_config.replace("Gemma4ForConditionalGeneration", "Gemma4ForSequenceClassification");
    for (config, word, reason) in [
        (own_code, "mine.py", Reason::ModelCode),
        (judge, "Gemma4ForSequenceClassification", Reason::ModelTask),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let path = cache.path().join("config.json");
        fs::write(&path, config).unwrap();
        let mut files = all_of_pebble();
        files[0].1 = path;
        cached(cache.path(), "somebody/odd", COMMIT, &files);
        let models = ModelFolder::at(None, Some(cache.path().into())).list();
        let problem = models[0].problem.as_ref().unwrap();
        assert_eq!(problem.reason, Some(reason));
        assert!(problem.message.contains(word), "{problem}");
    }
}

#[test]
fn folders_and_unknown_names() {
    let folder = ModelFolder::at(Some(pebble()), None);
    assert_eq!(folder.find(pebble().to_str().unwrap()).unwrap().path, pebble());
    assert_eq!(
        folder.resolve("nobody/nothing").unwrap_err().code,
        ErrorCode::ModelNotFound
    );
    assert!(ModelFolder::at(None, None).list().is_empty());
}

#[test]
fn a_cache_full_of_other_things_is_no_trouble() {
    let cache = tempfile::tempdir().unwrap();
    fs::create_dir_all(cache.path().join("datasets--a--b/snapshots/x")).unwrap();
    fs::create_dir_all(cache.path().join("models--broken")).unwrap();
    fs::write(cache.path().join("models--a--file"), "not a folder").unwrap();
    assert!(ModelFolder::at(None, Some(cache.path().into())).list().is_empty());
}

#[test]
fn a_weight_file_that_was_cut_short_or_left_half_is_not_offered() {
    let cache = tempfile::tempdir().unwrap();
    let whole = fs::read(pebble().join("model.safetensors")).unwrap();
    for kept in [0, 4, 1000, whole.len() - 1] {
        let cut = cache.path().join("cut");
        fs::write(&cut, &whole[..kept]).unwrap();
        let mut files = all_of_pebble();
        files[5].1 = cut;
        let inner = tempfile::tempdir().unwrap();
        cached(inner.path(), "somebody/cut", COMMIT, &files);
        let folder = ModelFolder::at(None, Some(inner.path().into()));
        let listed = &folder.list()[0];
        assert!(listed.incomplete && listed.thinking.is_none(), "{kept}: {listed:?}");
        assert!(
            listed
                .problem
                .as_ref()
                .is_some_and(|problem| problem.message.contains("cut short")),
            "{listed:?}"
        );
        assert!(matches!(folder.find("somebody/cut"), Err(Error::Incomplete { .. })));
    }
}

#[test]
fn a_shard_is_missed_by_its_number_even_before_the_index_is_there() {
    let cache = tempfile::tempdir().unwrap();
    let mut files = all_of_pebble();
    files[5].0 = "model-00001-of-00002.safetensors";
    cached(cache.path(), "somebody/sharded", COMMIT, &files);
    let listed = ModelFolder::at(None, Some(cache.path().into())).list();
    let problem = listed[0].problem.as_ref().unwrap();
    assert!(
        problem.message.contains("model-00002-of-00002.safetensors is missing"),
        "{problem}"
    );
}

#[test]
fn an_index_that_leads_out_of_the_folder_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let index = cache.path().join("index");
    fs::write(&index, r#"{"weight_map": {"a": "../../../secret.safetensors"}}"#).unwrap();
    let mut files = all_of_pebble();
    files.push(("model.safetensors.index.json", index));
    cached(cache.path(), "somebody/odd", COMMIT, &files);
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let problem = folder.list()[0].problem.clone().unwrap();
    assert!(problem.message.contains("which is no file beside it"), "{problem}");
    assert!(folder.find("somebody/odd").is_err());
}

#[test]
fn a_config_of_50_megabytes_is_not_read() {
    let cache = tempfile::tempdir().unwrap();
    let config = cache.path().join("config");
    fs::write(&config, vec![b' '; 50_000_000]).unwrap();
    let mut files = all_of_pebble();
    files[0].1 = config;
    cached(cache.path(), "somebody/huge", COMMIT, &files);
    let listed = ModelFolder::at(None, Some(cache.path().into())).list();
    let problem = listed[0].problem.as_ref().unwrap();
    assert!(problem.message.contains("config.json is 50 MB"), "{problem}");
}

#[test]
fn files_that_are_not_what_they_say_are_a_problem_and_not_the_end() {
    let cache = tempfile::tempdir().unwrap();
    for (number, (place, text)) in [
        (1, "<html>sign in</html>"),
        (1, "[]"),
        (3, "{% if %}"),
        (0, "{\"model_type\":"),
    ]
    .into_iter()
    .enumerate()
    {
        let odd = cache.path().join("odd");
        fs::write(&odd, text).unwrap();
        let mut files = all_of_pebble();
        files[place].1 = odd;
        let inner = tempfile::tempdir().unwrap();
        cached(inner.path(), "somebody/odd", COMMIT, &files);
        let listed = ModelFolder::at(None, Some(inner.path().into())).list();
        assert!(listed[0].problem.is_some(), "{number}: {listed:?}");
    }
}

#[test]
fn the_old_commit_answers_while_a_new_one_is_half_there() {
    let cache = tempfile::tempdir().unwrap();
    let newer = "f".repeat(40);
    cached(cache.path(), "somebody/moving", COMMIT, &all_of_pebble());
    cached(cache.path(), "somebody/moving", &newer, &all_of_pebble()[..3]);
    let folder = ModelFolder::at(None, Some(cache.path().into()));
    let listed = &folder.list()[0];
    assert_eq!(
        (listed.revision.as_deref(), listed.problem.as_ref()),
        (Some(COMMIT), None)
    );
    assert_eq!(listed.revisions.len(), 2);
    assert!(
        listed.revisions[0].used && listed.revisions[1].refs == ["main"],
        "{listed:?}"
    );
    assert_eq!(
        folder.find("somebody/moving").unwrap().revision.as_deref(),
        Some(COMMIT)
    );
    assert!(folder.find("somebody/moving@main").is_err());
    assert_eq!(
        folder
            .find(&format!("somebody/moving@{}", &COMMIT[..8]))
            .unwrap()
            .revision
            .as_deref(),
        Some(COMMIT)
    );
}

#[test]
fn folders_of_ones_own_are_added_shown_and_taken_off_again() {
    let (data, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let opened = ModelFolder::at(None, None).with_data_dir(data.path().into());
    // Clones share the list, as those of the app do.
    let folder = || opened.clone();
    let models = own.path().join("collection");
    for name in ["one", "owner/two"] {
        fs::create_dir_all(models.join(name)).unwrap();
        for (file, from) in all_of_pebble() {
            fs::copy(from, models.join(name).join(file)).unwrap();
        }
    }
    let added = folder().add_folder(&models).unwrap();
    folder().add_folder(&models).unwrap();
    let listed = folder().list();
    assert_eq!(
        listed.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert!(listed
        .iter()
        .all(|model| model.place == ModelPlace::OwnFolder && model.problem.is_none()));
    assert_eq!(
        folder().find(&listed[1].reference).unwrap().path,
        models.canonicalize().unwrap().join("owner/two")
    );
    let shown = folder().folders();
    assert_eq!(
        (shown.len(), shown[0].models, shown[0].own, shown[0].problem.clone()),
        (1, 2, true, None)
    );

    fs::rename(&models, own.path().join("away")).unwrap();
    let shown = folder().folders();
    let problem = shown[0].problem.as_ref().unwrap();
    assert_eq!(
        (problem.code, problem.reason),
        (ErrorCode::NotFound, Some(Reason::FolderGone))
    );
    assert!(problem.message.contains("not there"), "{problem}");
    assert!(folder().list().is_empty());
    assert_eq!(folder().own_folders(), std::slice::from_ref(&added));
    assert!(folder().remove_folder(&added));
    assert!(!folder().remove_folder(&added));
    assert!(folder().folders().is_empty() && own.path().join("away/one/config.json").is_file());
    assert!(matches!(folder().add_folder(&models), Err(Error::Read { .. })));
}

#[test]
fn a_folder_of_ones_own_may_be_a_model_or_another_cache() {
    let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    cached(other.path(), "somebody/elsewhere", COMMIT, &all_of_pebble());
    let folder = ModelFolder::at(None, None).with_data_dir(data.path().into());
    folder.add_folder(other.path()).unwrap();
    folder.add_folder(&pebble()).unwrap();
    let listed = folder.list();
    let references: Vec<&str> = listed.iter().map(|model| model.reference.as_str()).collect();
    assert_eq!(
        references,
        ["somebody/elsewhere", pebble().to_str().unwrap()].map(|text| text),
        "{listed:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_linked_model_is_listed_as_it_is_found() {
    let (data, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = models.path().join("linked");
    std::os::unix::fs::symlink(pebble(), &link).unwrap();
    let folder = ModelFolder::at(None, None).with_data_dir(data.path().into());
    folder.add_folder(models.path()).unwrap();
    let listed = folder.list()[0].reference.clone();
    assert_eq!(listed, folder.find(link.to_str().unwrap()).unwrap().reference);
}

#[test]
fn when_a_model_last_answered_is_kept() {
    let data = tempfile::tempdir().unwrap();
    let folder = || ModelFolder::at(Some(pebble()), None).with_data_dir(data.path().into());
    assert_eq!(folder().list()[0].last_used_at, None);
    folder().used("pebble");
    let used = folder().list()[0].last_used_at.unwrap();
    assert!(used > 1_700_000_000_000);
    fs::write(data.path().join("last_used.json"), "{broken").unwrap();
    assert_eq!(folder().list()[0].last_used_at, None);
    folder().used("pebble");
    assert!(folder().list()[0].last_used_at.unwrap() >= used);
}

#[test]
fn two_hundred_models_are_listed_and_what_was_read_is_kept_for_the_next_start() {
    let (data, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..200 {
        cached(
            cache.path(),
            &format!("somebody/model-{number:03}"),
            COMMIT,
            &all_of_pebble(),
        );
    }
    let folder = || ModelFolder::at(None, Some(cache.path().into())).with_data_dir(data.path().into());
    let timed = |folder: &ModelFolder| {
        let start = std::time::Instant::now();
        let listed = folder.list();
        assert!(listed.len() == 200 && listed.iter().all(|model| model.problem.is_none()));
        start.elapsed().as_millis()
    };
    let first = folder();
    let (cold, warm) = (timed(&first), timed(&first));
    let next_start = timed(&folder());
    println!("report: 200 models are listed in {cold} ms the first time ever, {next_start} ms after a start, {warm} ms again");
    // Another program may change a file after it was listed.
    let file = cache
        .path()
        .join("models--somebody--model-007/snapshots")
        .join(COMMIT)
        .join("tokenizer.json");
    fs::remove_file(file).unwrap();
    assert_eq!(first.list().iter().filter(|model| model.incomplete).count(), 1);
}

#[test]
fn what_is_no_folder_of_models_is_neither_added_nor_read_nor_removed() {
    let data = tempfile::tempdir().unwrap();
    let folder = ModelFolder::at(Some(pebble()), None).with_data_dir(data.path().into());
    let inside = pebble().join("..").join("model");
    for path in [
        "/",
        "/etc",
        "/etc/ssl",
        "..",
        ".",
        data.path().to_str().unwrap(),
        inside.to_str().unwrap(),
    ] {
        let refused = folder.add_folder(Path::new(path)).unwrap_err();
        assert!(matches!(refused, Error::NoModelFolder(_)), "{path}: {refused}");
        assert!(
            refused
                .to_string()
                .contains("choose a folder with a model's config.json"),
            "{refused}"
        );
    }
    assert!(folder.own_folders().is_empty());
    for path in ["/", "/etc", "/tmp"] {
        let refused = folder
            .verify(path, None, &CancellationToken::new(), &mut |_| {})
            .map(drop)
            .unwrap_err();
        assert!(matches!(refused, Error::NoModelFolder(_)), "{path}: {refused}");
        for own_files_too in [false, true] {
            assert!(
                matches!(folder.remove(path, own_files_too), Err(Error::Kept { .. })),
                "{path}"
            );
        }
    }
}
