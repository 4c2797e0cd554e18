//! The bytes of every tensor beside `mlx_lm.convert`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use checkpoint::conversion::{Conversion, Recipe};
use checkpoint::Mode;
use engine::MlxEngine;
use protocol::CancelFlag;
use serde_json::Value;

use crate::common::files::{read_entries, Entry};
use crate::common::oracle::{computed, python, seed, write, Written};

/// A model and the arguments of mlx-lm's command.
struct Case {
    model: String,
    bits: u32,
    group: u32,
    mode: Mode,
    mixture: Option<u32>,
}

impl Case {
    /// As the oracle's script takes it.
    fn argument(&self) -> String {
        let Self {
            model,
            bits,
            group,
            mode,
            mixture,
        } = self;
        let plain = format!("{model}:{bits}:{group}:{}", mode.name());
        mixture.map_or(plain.clone(), |more| format!("{plain}:mixed_{bits}_{more}"))
    }

    fn recipe(&self) -> Recipe {
        Recipe::new(self.mode, Some(self.bits), Some(self.group), self.mixture).unwrap()
    }
}

/// Every model gets one of these in turn, so that all families and all formats come together in some way.
const PLAIN: [(u32, u32, Mode, Option<u32>); 8] = [
    (4, 64, Mode::Affine, None),
    (8, 32, Mode::Affine, None),
    (3, 64, Mode::Affine, None),
    (4, 32, Mode::Mxfp4, None),
    (2, 32, Mode::Affine, None),
    (4, 16, Mode::Nvfp4, None),
    (6, 64, Mode::Affine, None),
    (8, 32, Mode::Mxfp8, None),
];

const MIXED: [(u32, u32, Mode, Option<u32>); 4] = [
    (3, 64, Mode::Affine, Some(4)),
    (4, 64, Mode::Affine, Some(6)),
    (2, 32, Mode::Affine, Some(6)),
    (3, 32, Mode::Affine, Some(6)),
];

/// The formats of the table in docs/models.md.
const TRAINED: [(u32, u32, Mode, Option<u32>); 4] = [
    (8, 64, Mode::Affine, None),
    (4, 64, Mode::Affine, None),
    (4, 64, Mode::Affine, Some(6)),
    (4, 32, Mode::Mxfp4, None),
];

fn cases(models: &[&str], recipes: &[(u32, u32, Mode, Option<u32>)]) -> Vec<Case> {
    let each = models.iter().enumerate().map(|(index, model)| {
        let (bits, group, mode, mixture) = recipes[index % recipes.len()];
        Case {
            model: (*model).to_owned(),
            bits,
            group,
            mode,
            mixture,
        }
    });
    each.collect()
}

/// The tensors of all weight files of a folder.
fn tensors(folder: &Path) -> BTreeMap<String, Entry> {
    let files = checkpoint::weight_files(folder).unwrap();
    let entries = files.iter().flat_map(|name| read_entries(&folder.join(name)));
    entries.map(|entry| (entry.name.clone(), entry)).collect()
}

fn config(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("config.json")).unwrap()).unwrap()
}

/// The format of every quantized path by config.json, as mlx-lm reads it.
fn formats(config: &Value, paths: &BTreeSet<String>) -> BTreeMap<String, [Value; 3]> {
    let all = &config["quantization"];
    let format = |of: &Value| {
        let mode = of.get("mode").cloned().unwrap_or("affine".into());
        [of["group_size"].clone(), of["bits"].clone(), mode]
    };
    let of_path = |path: &String| (path.clone(), format(all.get(path.as_str()).unwrap_or(all)));
    paths.iter().map(of_path).collect()
}

/// The faults of our copy beside mlx-lm's.
fn compare(source: &Path, ours: &Path, theirs: &Path) -> Vec<String> {
    let (mine, other) = (tensors(ours), tensors(theirs));
    let mut faults = Vec::new();
    for (name, expected) in &other {
        match mine.get(name) {
            None => faults.push(format!("{name} is missing")),
            Some(found) if (&found.dtype, &found.shape) != (&expected.dtype, &expected.shape) => faults.push(format!(
                "{name} is {} {:?} instead of {} {:?}",
                found.dtype, found.shape, expected.dtype, expected.shape
            )),
            Some(found) if found.data != expected.data => faults.push(format!("{name} has other bytes")),
            Some(_) => {}
        }
    }
    let more = mine.keys().filter(|name| !other.contains_key(*name));
    faults.extend(
        more.filter(|name| checkpoint::tower_tensor(name).is_none())
            .map(|name| format!("{name} is not mlx-lm's")),
    );
    let (mine, other) = (config(ours), config(theirs));
    let scales = tensors(theirs).into_keys();
    let paths: BTreeSet<String> = scales
        .filter_map(|name| name.strip_suffix(".scales").map(str::to_owned))
        .collect();
    if formats(&mine, &paths) != formats(&other, &paths) {
        faults.push("config.json names other formats".into());
    }
    for (field, value) in config(source).as_object().unwrap() {
        if mine.get(field) != Some(value) {
            faults.push(format!("config.json has another `{field}`"));
        }
    }
    let sees = |folder: &Path| checkpoint::check_folder(folder).is_ok_and(|config| config.vision.is_some());
    if sees(ours) != sees(source) {
        faults.push("it sees, or not, other than the original".into());
    }
    let index: Value =
        serde_json::from_str(&std::fs::read_to_string(ours.join("model.safetensors.index.json")).unwrap()).unwrap();
    let listed = index["weight_map"].as_object().unwrap();
    if !tensors(ours).keys().eq(listed.keys().collect::<BTreeSet<_>>()) {
        faults.push("the index lists other tensors".into());
    }
    faults
}

/// The oracle's script, which brings an MLX of its own.
fn oracle(python: &Path) -> Command {
    let mut command = Command::new(python);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/convert.py");
    command.env_remove("LD_LIBRARY_PATH").arg(script);
    command
}

/// Converts and compares; the faults of all, each with its case.
fn faults(python: &Path, models: &Path, cases: &[Case]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    let mut command = Command::new(python);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/convert.py");
    // The oracle brings an MLX of its own.
    command
        .env_remove("LD_LIBRARY_PATH")
        .arg(script)
        .arg("--models")
        .arg(models)
        .arg("--out")
        .arg(&theirs);
    let ran = command.args(cases.iter().map(Case::argument)).output().unwrap();
    assert!(
        ran.status.success(),
        "mlx-lm failed: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let engine = MlxEngine::start();
    let (mut faults, mut made, mut compared) = (Vec::new(), Vec::new(), 0);
    for case in cases {
        let name = case.argument().replace(':', ".");
        if let Ok(reason) = std::fs::read_to_string(theirs.join(format!("{name}.refused"))) {
            let first = reason.lines().next().unwrap_or_default();
            println!("not compared: {name}, which mlx-lm refuses ({first:.120})");
            continue;
        }
        compared += 1;
        let ours = folder.path().join(&name);
        match engine.quantize(
            &models.join(&case.model),
            &ours,
            case.recipe(),
            CancelFlag::default(),
            |_| {},
        ) {
            Err(error) => faults.push(format!("{name}: {}", error.message)),
            Ok(_) => {
                let found = compare(&models.join(&case.model), &ours, &theirs.join(&name));
                faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
                made.push(ours);
            }
        }
    }
    println!(
        "{compared} of {} compared with mlx-lm's, {} faults",
        cases.len(),
        faults.len()
    );
    let loaded = oracle(python).arg("--load").args(&made).output().unwrap();
    assert!(
        loaded.status.success(),
        "mlx-lm loads not all: {}",
        String::from_utf8_lossy(&loaded.stderr)
    );
    assert!(compared * 2 >= cases.len(), "mlx-lm refused most");
    faults
}

fn only() -> Option<Vec<String>> {
    let only = std::env::var("PONDER_ORACLE_ONLY").ok()?;
    Some(only.split(',').map(str::to_owned).collect())
}

#[test]
fn every_family_has_mlx_lms_bytes() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &[], true);
    let wanted = only();
    let plain: Vec<&str> = written
        .variants
        .iter()
        .filter(|variant| !variant.quantized && Conversion::is_possible(&variant.model_type))
        .map(|variant| variant.name.as_str())
        .filter(|name| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted.iter().any(|only| only == name))
        })
        .collect();
    let folder = written.model("");
    let mut all = cases(&plain, &PLAIN);
    // Some have no `down_proj`, by which mixtures choose.
    all.extend(cases(&plain, &MIXED));
    let faults = faults(&python, &folder, &all);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Wrappers of a language part that mlx-lm knows too.
const SEEING: [&str; 10] = [
    "gemma3",
    "gemma4",
    "lfm2-vl",
    "mistral3",
    "pixtral",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_5",
    "qwen3_vl",
    "qwen3_vl_moe",
];

#[test]
fn language_parts_of_models_that_see_have_mlx_lms_bytes() {
    let Some(python) = python() else { return };
    let own = tempfile::tempdir().unwrap();
    let models: PathBuf = computed("vision").unwrap_or_else(|| {
        write(&python, "vision.py", own.path(), seed(), &[], &["--folders"]);
        own.path().to_owned()
    });
    let names = std::fs::read_dir(&models).unwrap().flatten().filter(|entry| {
        let Ok(text) = std::fs::read_to_string(entry.path().join("config.json")) else {
            return false;
        };
        let config: Value = serde_json::from_str(&text).unwrap();
        let is_quantized = ["quantization", "quantization_config"]
            .iter()
            .any(|field| config.get(field).is_some());
        !is_quantized && SEEING.contains(&config["model_type"].as_str().unwrap_or_default())
    });
    let mut names: Vec<String> = names.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(!names.is_empty());
    let faults = faults(&python, &models, &cases(&names, &PLAIN[..4]));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_trained_model_has_mlx_lms_bytes() {
    let (Some(python), Some(model)) = (python(), std::env::var_os("PONDER_SMOLLM2").map(PathBuf::from)) else {
        println!("skipped: PONDER_SMOLLM2 names no folder of SmolLM2; `./dev test` provides one");
        return;
    };
    let name = model.file_name().unwrap().to_str().unwrap();
    let faults = faults(&python, model.parent().unwrap(), &cases(&[name; 4], &TRAINED));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
