//! The model types of mlx-lm and mlx-vlm, read from their packages: each is loaded here or refused by its name.
//!
//! `PONDER_ORACLE_PYTHON` runs the reader; `PONDER_PEERS`, a folder with both packages, takes the place of the pinned
//! ones (`./dev new-models` fetches the newest).

use std::process::Command;

use checkpoint::{Error, ModelConfig, KNOWN_MODEL_TYPES};

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/oracle/peer_types.py");

/// `package type`, as the reader prints it.
fn types_of_peers(python: &str) -> Vec<(String, String)> {
    let mut reader = Command::new(python);
    reader.arg("-B").arg(READER).args(std::env::var_os("PONDER_PEERS"));
    let output = reader.output().expect("the reader runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rows = text.lines().filter_map(|line| line.split_once(' '));
    rows.map(|(package, model_type)| (package.to_owned(), model_type.to_owned()))
        .collect()
}

#[test]
fn every_type_of_the_peers_is_loaded_or_refused_by_its_name() {
    let Ok(python) = std::env::var("PONDER_ORACLE_PYTHON") else {
        eprintln!("skipped: PONDER_ORACLE_PYTHON names no Python with mlx-lm and mlx-vlm");
        return;
    };
    let peers = types_of_peers(&python);
    assert!(peers.len() > 300, "{} types were read", peers.len());
    let (mut loaded, mut refused, mut unheard_of) = (0, 0, Vec::new());
    for (package, model_type) in &peers {
        // Names of Python modules have no hyphens and no capitals; those of configs may.
        let module = |known: &str| known.replace('-', "_").to_lowercase();
        if KNOWN_MODEL_TYPES
            .iter()
            .any(|known| known == model_type || module(known) == *model_type)
        {
            loaded += 1;
            continue;
        }
        match ModelConfig::parse(&format!(r#"{{"model_type": "{model_type}"}}"#)) {
            Err(Error::NotYet { .. } | Error::OtherWork { .. }) => refused += 1,
            other => unheard_of.push(format!("{model_type} ({package}): {other:?}")),
        }
    }
    println!(
        "report: of {} types of mlx-lm and mlx-vlm {loaded} are loaded, {refused} refused by name",
        peers.len()
    );
    assert!(unheard_of.is_empty(), "{}", unheard_of.join("\n"));
}
