//! Every model that the list names is found by its name, however a client writes it into a path.

use std::sync::Arc;

use api::{LocalModel, ModelShelf};
use protocol::{FolderSource, ModelSource};
use server::ServerConfig;

use crate::client::get;
use crate::harness::{listed, Harness};

/// Folders with the names that people give them, two of them alike.
const REFERENCES: [&str; 11] = [
    "pebble",
    "org/model",
    "/models/model 2",
    "/models/unload",
    "/models/100%",
    "/models/a%20b",
    "/models/größe",
    "/models/what? #1",
    "/home/a/twin",
    "/home/b/twin",
    "/models/models",
];

struct Folders;

impl ModelShelf for Folders {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        Ok(FolderSource {
            reference: reference.into(),
            path: "/models".into(),
            revision: None,
            adapter: None,
        }
        .into())
    }

    fn list(&self) -> Vec<LocalModel> {
        REFERENCES.map(listed).into()
    }
}

/// The text with all but unreserved letters and these percent-encoded.
fn encoded(text: &str, kept: &str) -> String {
    let letter = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) || kept.as_bytes().contains(&b) => {
            char::from(b).to_string()
        }
        b => format!("%{b:02X}"),
    };
    text.bytes().map(letter).collect()
}

#[tokio::test]
async fn a_model_of_the_list_is_found_by_its_name() {
    let config = ServerConfig {
        fallback_model: Some("/elsewhere/one more".into()),
        ..ServerConfig::default()
    };
    let harness = Harness::serving(config, Arc::new(Folders)).await;
    let list = get(harness.address, "/v1/models").await.json();
    let ids: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), REFERENCES.len() + 1);
    for id in ids {
        // encodeURIComponent, encodeURI, and a proxy or a client that takes two slashes for one.
        let whole = encoded(id, "");
        let by_part = encoded(id, "/");
        for path in [whole, by_part.clone(), by_part.trim_start_matches('/').to_owned()] {
            for before in ["/v1/models", "/models"] {
                let response = get(harness.address, &format!("{before}/{path}")).await;
                assert_eq!(response.head.status, 200, "{id}: {path}");
                assert_eq!(response.json()["id"], id, "{path}");
            }
        }
    }
    // A client that encodes only what cannot stand in a path leaves a percent sign of the name.
    assert_eq!(get(harness.address, "/v1/models/a%20b").await.json()["id"], "a%20b");
    let unknown = get(harness.address, "/v1/models/nothing").await;
    assert_eq!(
        (unknown.head.status, unknown.json()["error"]["code"].as_str()),
        (404, Some("model_not_found"))
    );
}
