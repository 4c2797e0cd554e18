//! The floors inside rooms, as `tests/floors.toml` lists them, bottom first.

use std::collections::{BTreeMap, BTreeSet};

use tidy::modules::Crate;
use tidy::{read, root};

/// A crate's folder of sources.
fn src(room: &str) -> std::path::PathBuf {
    match room {
        "shell" => root().join("src-tauri/src"),
        room => root().join("src-tauri/crates").join(room).join("src"),
    }
}

/// Each room's layers, and within each the modules that stand beside each other.
fn floors() -> BTreeMap<String, Vec<Vec<String>>> {
    let listed: toml::Table = read("tests/floors.toml").parse().expect("floors.toml is TOML");
    let name = |value: &toml::Value| value.as_str().expect("a module's name").to_owned();
    listed
        .iter()
        .filter(|(room, _)| *room != "ui")
        .map(|(room, entry)| {
            let layers = entry["layers"].as_array().expect("a list").iter();
            let layers = layers.map(|layer| match layer {
                toml::Value::Array(names) => names.iter().map(name).collect(),
                one => vec![name(one)],
            });
            (room.clone(), layers.collect())
        })
        .collect()
}

#[test]
fn every_room_with_several_modules_lists_its_floors() {
    let listed = floors();
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root().join("src-tauri/crates"))
        .expect("a folder")
        .flatten()
    {
        let room = entry.file_name().to_string_lossy().into_owned();
        let modules = Crate::read(&src(&room)).top_level().len();
        if modules > 3 && !listed.contains_key(&room) {
            missing.push(format!("{room} has {modules} modules"));
        }
    }
    assert!(missing.is_empty(), "tests/floors.toml lacks:\n{}", missing.join("\n"));
}

#[test]
fn modules_import_only_from_floors_below() {
    let mut wrong = Vec::new();
    for (room, layers) in floors() {
        let code = Crate::read(&src(&room));
        let floor: BTreeMap<&str, usize> = layers
            .iter()
            .enumerate()
            .flat_map(|(floor, names)| names.iter().map(move |name| (name.as_str(), floor)))
            .collect();
        for name in code.top_level() {
            if !floor.contains_key(name.as_str()) {
                wrong.push(format!("{room}: {name} stands on no floor"));
            }
        }
        for name in floor.keys().filter(|name| !code.top_level().contains(**name)) {
            wrong.push(format!("{room}: {name} is listed and does not exist"));
        }
        for (from, to) in code.imports() {
            // The root puts its modules together, so it sees all of them.
            let Some(own) = from.first() else { continue };
            let Some(other) = to.first() else {
                wrong.push(format!(
                    "{room}: {} takes {} from the root",
                    code.path(&from).display(),
                    to.join("::")
                ));
                continue;
            };
            let (Some(own_floor), Some(floor)) = (floor.get(own.as_str()), floor.get(other.as_str())) else {
                continue;
            };
            if own != other && floor >= own_floor {
                wrong.push(format!(
                    "{room}: {} imports {} upward",
                    code.path(&from).display(),
                    to.join("::")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} imports:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for room in floors().keys() {
        for circle in Crate::read(&src(room)).circles() {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            circles.push(format!("{room}: {}", names.join(", ")));
        }
    }
    assert!(circles.is_empty(), "{} circles:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn each_readme_names_the_modules_of_its_room() {
    let mut missing = Vec::new();
    for (room, layers) in floors() {
        let readme = match room.as_str() {
            "shell" => "src-tauri/src/README.md".to_owned(),
            room => format!("src-tauri/crates/{room}/README.md"),
        };
        let text = read(&readme);
        let named: BTreeSet<&str> = text
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|word| {
                word.trim_start_matches("src/")
                    .trim_end_matches('/')
                    .trim_end_matches(".rs")
            })
            .collect();
        let modules = layers.iter().flatten();
        missing.extend(
            modules
                .filter(|name| !named.contains(name.as_str()))
                .map(|name| format!("{readme}: {name}")),
        );
    }
    assert!(missing.is_empty(), "not in their README:\n{}", missing.join("\n"));
}
