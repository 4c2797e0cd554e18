//! The imitation has the real hub's shapes: Python's huggingface_hub searches, lists and downloads from it.

use std::process::Command;

use hub_imitation::{Imitation, Origin};
use serde_json::{json, Value};

fn seen_by_python(hub: &Imitation) -> Option<Value> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with huggingface_hub; `./dev test` provides one");
        return None;
    };
    let home = tempfile::tempdir().expect("a temporary folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../oracle/hub_shapes.py");
    let output = Command::new(python)
        .arg(script)
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("HF_TOKEN")
        .env("HF_HOME", home.path())
        .env("HF_ENDPOINT", hub.endpoint())
        .env("HF_HUB_DISABLE_XET", "1")
        .env("HF_HUB_DISABLE_TELEMETRY", "1")
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("it prints JSON"))
}

#[test]
fn huggingface_hub_sees_what_is_there() {
    let hub = Imitation::start();
    hub.let_in("hf_good");
    let pebble = hub.repository("ponder/pebble").pebble().field("downloads", json!(42));
    for (name, downloads) in [("a", 1), ("b", 3), ("c", 2)] {
        let id = format!("many/many-{name}");
        hub.repository(&id)
            .file("config.json", "{}")
            .field("downloads", json!(downloads));
    }
    let long = (0..2_500).map(|number| (format!("folder/{number}.txt"), "text"));
    hub.repository("ponder/long").file("README.md", "# Long").files(long);
    hub.repository("ponder/old-pebble").renamed_to("ponder/pebble");
    hub.repository("ponder/gated").file("config.json", "{}").gated();
    hub.repository("ponder/private").file("config.json", "{}").private();

    let Some(seen) = seen_by_python(&hub) else { return };
    let info = &seen["info"];
    assert_eq!(info["sha"], pebble.commit());
    assert_eq!(
        (&info["id"], &info["author"], &info["gated"]),
        (&json!("ponder/pebble"), &json!("ponder"), &json!(false))
    );
    assert_eq!(
        (&info["downloads"], &info["modified"]),
        (&json!(42), &json!("2026-11-01T12:00:00+00:00"))
    );
    assert!(info["parameters"]
        .as_u64()
        .is_some_and(|parameters| parameters > 1_000_000));
    assert_eq!(
        info["large"]["model.safetensors"],
        json!(pebble.etag("model.safetensors"))
    );
    let mut sizes = 0;
    for path in pebble.paths() {
        let bytes = pebble.bytes(&path).expect("a file has bytes").len() as u64;
        sizes += bytes;
        assert_eq!(info["sizes"][&path], json!(bytes));
        assert_eq!(seen["tree"][&path][0], json!(bytes));
        assert_eq!(seen["blobs"][&path], json!(pebble.etag(&path)), "{path}");
    }
    assert_eq!(info["stored"], json!(sizes));
    assert_eq!(
        seen["files"]["model.safetensors"],
        json!(pebble.etag("model.safetensors"))
    );
    assert_eq!(
        seen["tree"]["model.safetensors"][2],
        json!(pebble.etag("model.safetensors"))
    );
    assert_eq!(seen["search"], json!(["many/many-b", "many/many-c", "many/many-a"]));
    assert_eq!(seen["search_two"], json!(["many/many-b", "many/many-c"]));
    assert_eq!(seen["mlx"], json!(["ponder/pebble"]));
    assert_eq!(seen["long_tree"], json!(2_501));
    assert_eq!(seen["folders"], json!(["README.md", "folder"]));
    for (name, said) in [
        ("again", json!(true)),
        ("old_name", json!(true)),
        ("gated", json!("GatedRepoError")),
        ("not_let_in", json!("GatedRepoError")),
        ("let_in", json!(true)),
        ("private", json!("RepositoryNotFoundError")),
        ("private_seen", json!(true)),
        ("no_repository", json!("RepositoryNotFoundError")),
        ("no_file", json!("RemoteEntryNotFoundError")),
        ("no_revision", json!("RevisionNotFoundError")),
    ] {
        assert_eq!(seen[name], said, "{name}");
    }
    // The token belongs to the hub; the origin of large files must not see it.
    let requests = hub.requests();
    assert!(requests.iter().any(|request| request.origin == Origin::Cdn));
    assert!(requests
        .iter()
        .all(|request| request.origin == Origin::Hub || request.header("authorization").is_none()));
}
