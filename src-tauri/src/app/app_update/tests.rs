use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

use base64::prelude::{Engine, BASE64_STANDARD};
use minisign::KeyPair;
use serde_json::{json, Value};
use tauri::test::{mock_builder, mock_context, noop_assets, MockRuntime};
use tempfile::TempDir;

use super::*;

/// A package that the updater takes for an app: it begins as a program does, and is longer than a program's header.
const PACKAGE: &[u8] = b"\x7fELF\x02\x01\x01\0 the new version, and after it as much as a header of a program has";

/// A file that is served, and how much of it before the connection is cut.
#[derive(Clone)]
struct File {
    body: Vec<u8>,
    sent: usize,
}

impl From<Vec<u8>> for File {
    fn from(body: Vec<u8>) -> Self {
        Self { sent: body.len(), body }
    }
}

/// A server of releases on loopback.
struct Releases {
    address: String,
    files: Arc<Mutex<BTreeMap<String, File>>>,
}

impl Releases {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let files: Arc<Mutex<BTreeMap<String, File>>> = Arc::default();
        let served = files.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let path = lines.next().unwrap().unwrap().split(' ').nth(1).unwrap().to_owned();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let file = served.lock().unwrap().get(&path).cloned();
                let Some(File { body, sent }) = file else {
                    stream
                        .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                        .unwrap();
                    continue;
                };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&body[..sent]).unwrap();
            }
        });
        Self { address, files }
    }

    fn serve(&self, path: &str, file: impl Into<File>) {
        self.files.lock().unwrap().insert(path.to_owned(), file.into());
    }

    /// Lists a version whose package has this signature.
    fn list(&self, version: &str, signature: &str) {
        let package = json!({ "url": format!("{}/package", self.address), "signature": signature });
        let target = tauri_plugin_updater::target().unwrap();
        let list = json!({
            "version": version,
            "notes": "Faster.",
            "pub_date": "2026-11-20T12:00:00Z",
            "platforms": { target: package },
        });
        self.serve("/latest.json", list.to_string().into_bytes());
    }
}

/// The app, version 0.1.0, with a key of its own, and a server of releases.
struct Setup {
    releases: Releases,
    key: KeyPair,
    app: tauri::App<MockRuntime>,
    updates: AppUpdates,
    folder: TempDir,
}

impl Setup {
    fn new() -> Self {
        let releases = Releases::start();
        let key = KeyPair::generate_unencrypted_keypair().unwrap();
        let mut context = mock_context(noop_assets());
        context.package_info_mut().version = "0.1.0".parse().unwrap();
        let updater = json!({
            "pubkey": BASE64_STANDARD.encode(key.pk.to_box().unwrap().to_string()),
            "endpoints": [format!("{}/latest.json", releases.address)],
            "dangerousInsecureTransportProtocol": true,
        });
        context.config_mut().plugins.0.insert("updater".to_owned(), updater);
        let address = address(context.config());
        let app = mock_builder()
            .plugin(tauri_plugin_updater::Builder::new().build())
            .build(context)
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let installed = folder.path().join("ponder");
        std::fs::write(&installed, "the old version").unwrap();
        let mut updates = AppUpdates::new(Net::open(net::Settings::of_a_test("http://127.0.0.1:9")), address);
        updates.replaced = Some(installed);
        Self {
            releases,
            key,
            app,
            updates,
            folder,
        }
    }

    fn sign(&self, key: &KeyPair, package: &[u8], version: &str) -> String {
        let comment = format!("timestamp:1700000000\tfile:ponder\tversion:{version}");
        let signature = minisign::sign(Some(&key.pk), &key.sk, package, Some(&comment), None).unwrap();
        BASE64_STANDARD.encode(signature.to_string())
    }

    /// Offers `PACKAGE` as version 0.2.0, signed rightly.
    fn offer(&self) {
        self.releases.serve("/package", PACKAGE.to_vec());
        self.releases.list("0.2.0", &self.sign(&self.key, PACKAGE, "0.2.0"));
    }

    async fn ask(&self) -> Result<AppUpdate> {
        self.updates.ask(self.app.handle()).await
    }

    /// The refusal of what was offered; the old version is in its place afterwards, and can be offered again.
    async fn refused(&self) -> Error {
        assert!(matches!(self.ask().await.unwrap(), AppUpdate::Available { .. }));
        let error = self.updates.install().await.unwrap_err();
        assert_eq!(self.installed(), b"the old version");
        assert!(matches!(self.updates.state(), AppUpdate::Available { .. }));
        error
    }

    fn installed(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("ponder")).unwrap()
    }
}

#[tokio::test]
async fn a_newer_version_is_offered_and_installed_when_it_is_wanted() {
    let setup = Setup::new();
    assert_eq!(setup.updates.state(), AppUpdate::NotAsked);
    assert_eq!(setup.updates.install().await.unwrap_err().code, ErrorCode::NotFound);
    setup.offer();
    let release = AppRelease {
        version: "0.2.0".into(),
        notes: "Faster.".into(),
        at: Some(1_795_176_000_000),
    };
    assert_eq!(
        setup.ask().await,
        Ok(AppUpdate::Available {
            release: release.clone()
        })
    );
    assert_eq!(setup.installed(), b"the old version");
    let follow = setup.updates.follow();
    assert_eq!(setup.updates.install().await, Ok(AppUpdate::Installed { release }));
    assert!(follow.has_changed().unwrap());
    assert_eq!(setup.installed(), PACKAGE);
    let purposes: Vec<Purpose> = setup
        .updates
        .net
        .requests()
        .iter()
        .map(|request| request.purpose)
        .collect();
    assert_eq!(purposes, [Purpose::AppUpdate; 2]);
    // An installed version is not fetched again.
    assert!(matches!(setup.ask().await, Ok(AppUpdate::Installed { .. })));
}

#[tokio::test]
async fn only_a_newer_version_is_an_update() {
    let setup = Setup::new();
    setup.releases.serve("/package", PACKAGE.to_vec());
    for version in ["0.0.9", "0.1.0", "0.1.0-beta.1"] {
        setup.releases.list(version, &setup.sign(&setup.key, PACKAGE, version));
        assert_eq!(setup.ask().await, Ok(AppUpdate::Newest), "{version}");
    }
}

#[tokio::test]
async fn what_is_not_signed_for_this_app_and_version_is_thrown_away() {
    let setup = Setup::new();
    setup.offer();
    let other = KeyPair::generate_unencrypted_keypair().unwrap();
    let unnamed = minisign::sign(Some(&setup.key.pk), &setup.key.sk, PACKAGE, Some("timestamp:1"), None).unwrap();
    for (what, signature) in [
        ("another key", setup.sign(&other, PACKAGE, "0.2.0")),
        (
            "another package",
            setup.sign(&setup.key, b"\x7fELF and something else", "0.2.0"),
        ),
        (
            "an older version under a new number",
            setup.sign(&setup.key, PACKAGE, "0.1.5"),
        ),
        ("no version", BASE64_STANDARD.encode(unnamed.to_string())),
        ("no signature", "hello".to_owned()),
        ("an empty one", String::new()),
    ] {
        setup.releases.list("0.2.0", &signature);
        let error = setup.refused().await;
        assert_eq!(error.code, ErrorCode::Corrupt, "{what}: {error}");
        assert!(error.message.contains("nothing was changed"), "{what}: {error}");
    }
    // Signed, but no app.
    setup.releases.serve("/package", b"words".to_vec());
    setup.releases.list("0.2.0", &setup.sign(&setup.key, b"words", "0.2.0"));
    assert_eq!(setup.refused().await.code, ErrorCode::Storage);
}

#[tokio::test]
async fn a_download_that_is_cut_changes_nothing_and_can_be_tried_again() {
    let setup = Setup::new();
    setup.offer();
    let cut = File {
        body: PACKAGE.to_vec(),
        sent: 9,
    };
    setup.releases.serve("/package", cut);
    assert_eq!(setup.refused().await.code, ErrorCode::Network);
    setup.releases.files.lock().unwrap().remove("/package");
    assert_eq!(setup.refused().await.code, ErrorCode::NotFound);
    setup.offer();
    assert!(matches!(setup.updates.install().await, Ok(AppUpdate::Installed { .. })));
}

#[tokio::test]
async fn while_offline_nothing_is_asked() {
    let setup = Setup::new();
    setup.offer();
    setup.updates.net.set_offline(true).unwrap();
    assert_eq!(setup.ask().await.unwrap_err().code, ErrorCode::Offline);
    setup.updates.net.set_offline(false).unwrap();
    assert!(matches!(setup.ask().await, Ok(AppUpdate::Available { .. })));
    setup.updates.net.set_offline(true).unwrap();
    assert_eq!(setup.updates.install().await.unwrap_err().code, ErrorCode::Offline);
    assert_eq!(setup.installed(), b"the old version");
}

#[tokio::test]
async fn a_list_that_makes_no_sense_is_told() {
    let setup = Setup::new();
    let elsewhere = json!({ "version": "0.2.0", "platforms": { "plan9-mips": { "url": "http://127.0.0.1:9/x", "signature": "" } } });
    for list in [json!({}), json!({ "version": "much newer" }), elsewhere, Value::Null] {
        setup.releases.serve("/latest.json", list.to_string().into_bytes());
        assert_eq!(setup.ask().await.unwrap_err().code, ErrorCode::Corrupt, "{list}");
        assert_eq!(setup.updates.state(), AppUpdate::NotAsked);
    }
    setup.releases.serve("/latest.json", b"<html>log in</html>".to_vec());
    assert_eq!(setup.ask().await.unwrap_err().code, ErrorCode::Network);
    setup.releases.serve("/latest.json", vec![b' '; 2 << 20]);
    assert_eq!(setup.ask().await.unwrap_err().code, ErrorCode::Network);
}

#[tokio::test]
async fn a_build_without_a_key_takes_no_updates() {
    let config = |updater: Value| {
        let mut context = mock_context::<MockRuntime, _>(noop_assets());
        context.config_mut().plugins.0.insert("updater".to_owned(), updater);
        address(context.config())
    };
    assert_eq!(
        config(json!({ "pubkey": "", "endpoints": ["https://example.org/latest.json"] })),
        None
    );
    assert_eq!(config(json!({ "pubkey": "a key", "endpoints": [] })), None);
    assert_eq!(address(mock_context::<MockRuntime, _>(noop_assets()).config()), None);
    let app = mock_builder().build(mock_context(noop_assets())).unwrap();
    let updates = AppUpdates::new(Net::open(net::Settings::of_a_test("http://127.0.0.1:9")), None);
    assert_eq!(updates.state(), AppUpdate::Off);
    assert_eq!(updates.ask(app.handle()).await.unwrap_err().code, ErrorCode::NotFound);
    assert!(updates.net.requests().is_empty());
}
