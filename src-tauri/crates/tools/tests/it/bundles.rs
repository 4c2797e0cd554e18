//! Servers in files: looked into, added, run and removed, and files that mean harm.

use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{BundleValue, ToolServerState};
use net::{Keychain, MemoryKeychain};
use protocol::{Error, ToolRef, Toolbox};
use serde_json::{json, Value};
use tempfile::TempDir;
use tools::host::Tools;
use zip::write::SimpleFileOptions;
use zip::ZipWriter;

use crate::example;
use crate::host::open;

struct Host {
    folder: TempDir,
    keychain: Arc<MemoryKeychain>,
    tools: Tools,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keychain = Arc::new(MemoryKeychain::default());
        let tools = open(&folder.path().join("data"), keychain.clone(), true);
        std::fs::create_dir(folder.path().join("data")).unwrap();
        Self {
            folder,
            keychain,
            tools,
        }
    }

    /// Writes a bundle with this manifest and these files, which may be started or not.
    fn bundle(&self, manifest: &Value, files: &[(&str, &[u8], u32)]) -> PathBuf {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let manifest = manifest.to_string();
        for (name, content, mode) in [("manifest.json", manifest.as_bytes(), 0o644)].iter().chain(files) {
            let options = SimpleFileOptions::default().unix_permissions(*mode);
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
        let path = self.folder.path().join("server.mcpb");
        std::fs::write(&path, writer.finish().unwrap().into_inner()).unwrap();
        path
    }

    /// A bundle with a program that is a server, and writes down its environment.
    fn working_bundle(&self) -> PathBuf {
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$API_KEY\" \"$LEVEL\" \"$1\" > \"$OUT\"\nexec '{}' plain\n",
            example("shelf_server").display()
        );
        let manifest = json!({
            "manifest_version": "0.3", "name": "shelf", "version": "1.0.0", "description": "A \u{202e}shelf.",
            "author": { "name": "Ada" },
            "server": { "type": "binary", "entry_point": "bin/server", "mcp_config": {
                "command": "${__dirname}/bin/server", "args": ["${user_config.folder}"],
                "env": { "API_KEY": "${user_config.key}", "LEVEL": "${user_config.level}", "OUT": "${user_config.out}" }
            } },
            "user_config": {
                "folder": { "type": "directory", "default": "/" }, "out": { "type": "string", "required": true },
                "key": { "type": "string", "title": "Key", "sensitive": true, "required": true },
                "level": { "type": "number", "default": 3 }
            }
        });
        // Some tools that make bundles forget that a program may be started.
        self.bundle(
            &manifest,
            &[
                ("bin/server", script.as_bytes(), 0o644),
                ("lib/data.txt", b"data", 0o644),
            ],
        )
    }

    fn values(&self) -> Vec<BundleValue> {
        let out = self.folder.path().join("out").display().to_string();
        [("key", "s3cret-value"), ("out", out.as_str()), ("level", "5")]
            .map(|(key, value)| BundleValue {
                key: key.to_owned(),
                values: vec![value.to_owned()],
            })
            .into()
    }

    /// The files of bundles in the data folder.
    fn unfolded(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.folder.path().join("data/tool-bundles"));
        folder
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    }
}

fn message(error: tools::error::Error) -> String {
    Error::from(error).message
}

#[tokio::test]
async fn a_bundle_is_looked_into_added_run_and_removed() {
    let host = Host::new();
    let path = host.working_bundle();
    let bundle = host.tools.look_into_bundle(path).await.unwrap();
    assert_eq!(
        (bundle.name.as_str(), bundle.author.as_str(), bundle.files),
        ("shelf", "Ada", 3)
    );
    assert_eq!(bundle.description, "A ⟨U+202E⟩shelf.");
    assert!(
        bundle
            .command
            .ends_with(&format!("{}/bin/server '${{user_config.folder}}'", bundle.hash)),
        "{}",
        bundle.command
    );
    assert_eq!(bundle.missing, None);
    assert!(host.unfolded().is_empty(), "nothing is written by looking");

    // A missing field is named, and nothing is left behind.
    let refused = host.tools.add_bundle(&bundle.hash, "", Vec::new()).await.unwrap_err();
    assert!(message(refused).contains("filled in"));
    assert!(host.unfolded().is_empty() && host.tools.view().await.unwrap().servers.len() == 1);

    let id = host
        .tools
        .add_bundle(&bundle.hash, "My shelf", host.values())
        .await
        .unwrap();
    let view = host.tools.view().await.unwrap();
    let server = view.servers.iter().find(|server| server.id == id).unwrap();
    assert_eq!(
        (server.name.as_str(), &server.state),
        ("My shelf", &ToolServerState::Off)
    );
    let [unfolded] = &host.unfolded()[..] else {
        panic!("{:?}", host.unfolded())
    };
    let mode = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&unfolded.join("bin/server")), mode(&unfolded.join("lib/data.txt"))),
        (0o700, 0o600)
    );
    assert_eq!(mode(unfolded), 0o700);
    assert!(!host.folder.path().join("out").exists(), "nothing ran");
    let kept = std::fs::read_to_string(host.folder.path().join("data/tools.json")).unwrap();
    assert!(!kept.contains("s3cret-value"), "{kept}");

    // It runs once a person switched it on.
    assert!(host.tools.start(&id).await.is_err());
    let (_, command) = host.tools.command_of(&id).unwrap();
    host.tools.switch_on(&id, &command).unwrap();
    host.tools.start(&id).await.unwrap();
    let said = std::fs::read_to_string(host.folder.path().join("out")).unwrap();
    assert_eq!(said, "s3cret-value\n5\n/\n");
    let tool = ToolRef {
        server: id.clone(),
        tool: "picture".to_owned(),
    };
    assert_eq!(host.tools.offer(&[tool]).await.len(), 1);

    host.tools.remove(&id).await.unwrap();
    assert!(host.unfolded().is_empty());
    let secret = host.keychain.get(&format!("tool-server/{id}/API_KEY")).unwrap();
    assert_eq!(secret, None);
}

#[tokio::test]
async fn files_that_two_servers_are_of_stay_until_the_last_is_removed() {
    let host = Host::new();
    let path = host.working_bundle();
    let hash = host.tools.look_into_bundle(path).await.unwrap().hash;
    let first = host.tools.add_bundle(&hash, "one", host.values()).await.unwrap();
    let second = host.tools.add_bundle(&hash, "two", host.values()).await.unwrap();
    let taken = host.tools.add_bundle(&hash, "two", host.values()).await.unwrap_err();
    assert!(message(taken).contains("called two already"));
    host.tools.remove(&first).await.unwrap();
    assert_eq!(host.unfolded().len(), 1);
    host.tools.remove(&second).await.unwrap();
    assert!(host.unfolded().is_empty());
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_shown_is_not_added() {
    let host = Host::new();
    let path = host.working_bundle();
    let hash = host.tools.look_into_bundle(path.clone()).await.unwrap().hash;
    host.bundle(
        &json!({ "name": "other", "server": { "type": "node", "entry_point": "x" } }),
        &[],
    );
    let refused = host.tools.add_bundle(&hash, "", host.values()).await.unwrap_err();
    assert!(message(refused).contains("changed meanwhile"));
    let unseen = host
        .tools
        .add_bundle(&"0".repeat(64), "", host.values())
        .await
        .unwrap_err();
    assert!(message(unseen).contains("choose it again"));
    let gone = host
        .tools
        .look_into_bundle(path.with_extension("gone"))
        .await
        .unwrap_err();
    assert!(message(gone).contains("nothing was added"));
    assert!(host
        .tools
        .look_into_bundle(host.folder.path().to_owned())
        .await
        .is_err());
    assert!(host.unfolded().is_empty());
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let host = Host::new();
    let server =
        |command: &str| json!({ "name": "x", "server": { "type": "node", "mcp_config": { "command": command } } });
    for (command, missing) in [
        ("no-such-program-7", Some("no-such-program-7")),
        ("sh", None),
        ("${__dirname}/a", None),
    ] {
        let path = host.bundle(&server(command), &[]);
        let bundle = host.tools.look_into_bundle(path).await.unwrap();
        assert_eq!(bundle.missing.as_deref(), missing, "{command}");
    }
}

#[tokio::test]
async fn a_bundle_that_means_harm_writes_nothing() {
    let host = Host::new();
    let manifest = json!({ "name": "x", "server": { "type": "node", "entry_point": "x" } });
    let outside = host.folder.path().join("escaped");
    for name in [
        "../../../escaped",
        "/escaped",
        "a/../../../../escaped",
        "..\\..\\escaped",
    ] {
        let path = host.bundle(&manifest, &[(name, b"x", 0o644)]);
        let refused = host.tools.look_into_bundle(path).await.unwrap_err();
        assert!(message(refused).contains("leads elsewhere"), "{name}");
    }
    assert!(!outside.exists() && host.unfolded().is_empty());
    for manifest in [
        json!([]),
        json!({ "name": "x" }),
        json!({ "name": "x", "server": { "type": "shell" } }),
    ] {
        let path = host.bundle(&manifest, &[]);
        assert!(message(host.tools.look_into_bundle(path).await.unwrap_err()).contains("manifest"));
    }
}
