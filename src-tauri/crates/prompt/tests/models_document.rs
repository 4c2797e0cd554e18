//! The tables of `docs/models.md`, written from the families, the oracles' models and the cases of formats.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use checkpoint::{refused_models, supported_families, SupportedFamily, KNOWN_MODEL_TYPES};
use protocol::ModelKind;
use serde_json::Value;

type Types = BTreeSet<&'static str>;

/// The columns of what was measured, and the checks that they show.
const CHECKS: [(&str, &str); 6] = [
    ("logits", "logits"),
    ("KV 8", "kv 8"),
    ("batch", "batch"),
    ("turns", "turns"),
    ("drafts", "drafts"),
    ("memory", "memory"),
];

/// Those of them that models with images have.
const CHECKS_WITH_IMAGES: [&str; 4] = ["logits", "kv 8", "batch", "turns"];

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn known(word: &str) -> Option<&'static str> {
    KNOWN_MODEL_TYPES.iter().copied().find(|model_type| *model_type == word)
}

/// The model types in quotes in these scripts of the oracles, without those of vision encoders.
fn quoted(scripts: &[&str]) -> Types {
    let texts: Vec<String> = scripts
        .iter()
        .map(|name| read(&format!("tests/oracle/{name}.py")))
        .collect();
    let lines = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| !line.contains("vision_config"));
    lines
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter_map(known)
        .collect()
}

/// The models that the engine is compared on.
struct Compared {
    /// With mlx-lm.
    text: Types,
    /// With the language parts of mlx-vlm, where mlx-lm has none.
    language_parts: Types,
    /// With mlx-vlm.
    vision: Types,
    /// With references that the scripts compute from descriptions.
    described: Types,
    /// Embeddings, with a reference computed by the equations of transformers.
    embeddings: Types,
    /// Embeddings, with mlx-vlm.
    embedders: Types,
}

impl Compared {
    /// By the sources of the oracles.
    fn written() -> Self {
        let mut compared = Self {
            text: quoted(&[
                "shapes",
                "further_shapes",
                "dense_shapes",
                "expert_shapes",
                "recurrent_shapes",
                "variants",
            ]),
            language_parts: quoted(&["vlm_shapes", "wrapped_shapes"]),
            vision: Types::new(),
            described: Types::new(),
            embeddings: quoted(&["embeddings"]),
            embedders: quoted(&["embedders"]),
        };
        compared.embeddings.retain(|name| !compared.embedders.contains(name));
        for script in fs::read_dir(root("tests/oracle/vision_rows")).unwrap() {
            let script = script.unwrap().path();
            if script.extension().is_none_or(|extension| extension != "py") {
                continue;
            }
            let text = fs::read_to_string(script).unwrap();
            let Some((code, rows)) = text.split_once("\nROWS = [") else {
                continue;
            };
            // A row is called by the model type and what differs from the first row of that type.
            let names = rows
                .lines()
                .filter_map(|row| known(row.split('"').nth(1)?.split('-').next()?));
            match code.contains("unverified=True") {
                true => compared.described.extend(names),
                false => compared.vision.extend(names),
            }
        }
        compared
    }

    /// By the figures that the oracles have computed.
    fn computed(figures: &Path) -> (Types, Types, Types, Types) {
        let table = |name: &str| -> Value {
            let text = fs::read_to_string(figures.join(name).join("table.json")).unwrap();
            serde_json::from_str(&text).unwrap()
        };
        let (families, vision) = (table("families"), table("vision"));
        let types = |rows: &Value, unverified: bool| -> Types {
            let rows = rows.as_array().unwrap().iter();
            let rows = rows.filter(|row| row["unverified"].as_bool().unwrap_or(false) == unverified);
            rows.filter_map(|row| known(row["model_type"].as_str().unwrap()))
                .collect()
        };
        let of_peer = |peer: &str| -> Types {
            let rows = families["variants"].as_array().unwrap().iter();
            let rows = rows.filter(|row| row["peer"].as_str().unwrap_or("mlx-lm") == peer);
            rows.filter_map(|row| known(row["model_type"].as_str().unwrap()))
                .collect()
        };
        (
            of_peer("mlx-lm"),
            of_peer("mlx-vlm"),
            types(&vision["rows"], false),
            types(&vision["rows"], true),
        )
    }
}

fn code(model_types: &[&str]) -> String {
    let words: Vec<String> = model_types.iter().map(|name| format!("`{name}`")).collect();
    words.join(", ")
}

/// The references of a family, in words; types are named if others of the family are not compared.
fn references(family: &SupportedFamily, compared: &Compared) -> String {
    let peers = [
        ("mlx-lm", &compared.text, true),
        ("mlx-vlm", &compared.language_parts, true),
        ("mlx-vlm", &compared.vision, family.vision),
        (
            "a reference written from its description",
            &compared.described,
            family.vision,
        ),
        ("mlx-vlm", &compared.embedders, true),
        ("the equations of transformers", &compared.embeddings, true),
    ];
    let mut found = Vec::new();
    for (peer, types, applies) in peers {
        let of_family: Vec<&str> = family
            .model_types
            .iter()
            .copied()
            .filter(|name| applies && types.contains(name))
            .collect();
        if of_family.len() == family.model_types.len() {
            found.push(peer.to_owned());
        } else if !of_family.is_empty() {
            found.push(format!("{peer} ({})", code(&of_family)));
        }
    }
    // The same one for text and for images.
    found.dedup();
    match found.is_empty() {
        true => "–".to_owned(),
        false => found.join(", "),
    }
}

/// The figures of model types that `./dev model-figures` measured: by check, the largest one of a type's variants.
struct Measured(BTreeMap<(String, String), f32>);

impl Measured {
    fn read() -> Self {
        let text = read("tests/oracle/model_figures.tsv");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let figure = |line: &str| {
            let [model_type, check, figure] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("a line without three columns: {line}");
            };
            ((model_type.to_owned(), check.to_owned()), figure.parse().unwrap())
        };
        Self(lines.map(figure).collect())
    }

    /// The largest figure of a family in a check.
    fn of(&self, family: &SupportedFamily, check: &str) -> Option<f32> {
        let figure = |name: &&str| self.0.get(&((*name).to_owned(), check.to_owned())).copied();
        family.model_types.iter().filter_map(figure).reduce(f32::max)
    }

    fn cell(&self, family: &SupportedFamily, check: &str) -> String {
        match self.of(family, check) {
            Some(off) if check == "memory" => format!("{:.0}%", off * 100.0),
            Some(0.0) => "✓".to_owned(),
            Some(figure) => format!("{figure:.0e}"),
            None => "–".to_owned(),
        }
    }
}

fn mark(holds: bool) -> &'static str {
    match holds {
        true => "✓",
        false => "–",
    }
}

fn families() -> String {
    let compared = Compared::written();
    // Drafts have a section of their own.
    let mut rows: Vec<SupportedFamily> = supported_families()
        .filter(|family| family.kind != ModelKind::Draft)
        .collect();
    rows.sort_by_key(|family| family.name.to_lowercase());
    let measured = Measured::read();
    let heads = [
        "models",
        "`model_type`",
        "chat",
        "vision",
        "embeddings",
        "compared with",
    ];
    let heads = [&heads[..], &CHECKS.map(|(head, _)| head)].concat();
    let mut table = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for family in rows {
        let embeds = family.kind == ModelKind::Embedding
            || family.model_types.iter().any(|name| compared.embeddings.contains(name));
        writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} |",
            family.name,
            code(family.model_types),
            mark(family.kind == ModelKind::Chat),
            mark(family.vision),
            mark(embeds),
            references(&family, &compared),
            CHECKS.map(|(_, check)| measured.cell(&family, check)).join(" | ")
        )
        .unwrap();
    }
    table
}

/// The models that are refused by their names, those that do not run yet first.
fn refused() -> String {
    let mut rows: Vec<_> = refused_models().collect();
    rows.sort_by_key(|model| (model.other_work, model.name.to_lowercase()));
    let mut table = "| models | `model_type` | why |\n|---|---|---|\n".to_owned();
    for model in rows {
        let why = model.other_work.unwrap_or("not yet");
        writeln!(table, "| {} | {} | {why} |", model.name, code(model.model_types)).unwrap();
    }
    table
}

/// The cases of each format: whether they read a thought, and a call.
fn formats() -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let json = |path: &Path| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let mut formats: BTreeMap<String, Value> =
        serde_json::from_value(json(&fixtures.join("channels.json"))["formats"].clone()).unwrap();
    for entry in fs::read_dir(fixtures.join("formats")).unwrap() {
        let path = entry.unwrap().path();
        formats.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), json(&path));
    }
    let mut table = "| format | thinking | tool calls |\n|---|---|---|\n".to_owned();
    for (name, cases) in formats {
        let events = cases.as_array().unwrap().iter();
        let events: Vec<&str> = events
            .flat_map(|case| case["events"].as_array().unwrap())
            .filter_map(Value::as_str)
            .collect();
        let has = |kind: &str| mark(events.iter().any(|event| event.starts_with(kind)));
        writeln!(table, "| {name} | {} | {} |", has("T:"), has("C:")).unwrap();
    }
    table
}

/// The document with this table between its two marks.
fn with_table(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn the_tables_of_supported_models_are_fresh() {
    let document = read("docs/models.md");
    let fresh = with_table(&document, "families", &families());
    let fresh = with_table(&fresh, "refused", &refused());
    let fresh = with_table(&fresh, "formats", &formats());
    if fresh != document {
        fs::write(root("docs/models.md"), fresh).unwrap();
        panic!("docs/models.md was stale and is written anew: commit it");
    }
}

#[test]
fn every_type_that_is_compared_was_measured() {
    let (compared, measured) = (Compared::written(), Measured::read());
    let lacks = |family: &SupportedFamily, types: &Types, checks: &[&str]| {
        let mut names = family.model_types.iter();
        names.any(|name| types.contains(name)) && checks.iter().any(|check| measured.of(family, check).is_none())
    };
    // Memory is not measured yet for most models whose layers carry states.
    let checks = CHECKS.map(|(_, check)| check);
    let checks: Vec<&str> = checks.into_iter().filter(|check| *check != "memory").collect();
    let missing: Vec<_> = supported_families()
        .filter(|family| {
            lacks(family, &compared.text, &checks)
                || (family.vision && lacks(family, &compared.vision, &CHECKS_WITH_IMAGES))
        })
        .map(|family| family.name)
        .collect();
    assert!(missing.is_empty(), "`./dev model-figures` has not measured {missing:?}");
}

/// Sources are read as text, because the scripts need MLX; the figures show that they were read right.
#[test]
fn the_families_called_compared_have_figures() {
    let Some(figures) = std::env::var_os("PONDER_ORACLE_FIGURES") else {
        println!("skipped: PONDER_ORACLE_FIGURES names no figures; `./dev test` computes them");
        return;
    };
    let (text, language_parts, vision, described) = Compared::computed(Path::new(&figures));
    let written = Compared::written();
    assert_eq!(written.text, text);
    assert_eq!(written.language_parts, language_parts);
    assert_eq!(written.described, described);
    // A row is called by one of its family's types, and may have another.
    let sees = |types: Types| -> Types {
        let of = |name: &str| supported_families().find(|family| family.vision && family.model_types.contains(&name));
        types
            .into_iter()
            .filter_map(|name| of(name).map(|family| family.name))
            .collect()
    };
    assert_eq!(sees(written.vision), sees(vision));
}
