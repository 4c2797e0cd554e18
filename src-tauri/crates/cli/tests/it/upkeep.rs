//! `ponder models`, `verify`, `repair`, `remove` and `import` as processes, on a model from the hub imitation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use hub_imitation::Imitation;
use serde_json::Value;

use crate::support;
use crate::support::pebble::pebble;

const ID: &str = "owner/model";

struct Home {
    folder: tempfile::TempDir,
    hub: Imitation,
}

impl Home {
    /// A home with the model fetched.
    fn new() -> Self {
        let home = Self {
            folder: tempfile::tempdir().expect("a folder"),
            hub: Imitation::start(),
        };
        home.hub.repository(ID).pebble();
        home.ok(&["pull", ID]);
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ponder(&self, args: &[&str]) -> Output {
        let mut command = support::command(self.path(), args);
        command
            .env("HF_ENDPOINT", self.hub.endpoint())
            .output()
            .expect("it starts")
    }

    /// The output of a run that must succeed.
    fn ok(&self, args: &[&str]) -> String {
        support::text(&self.ponder(args))
    }

    /// The error line of a run that must fail.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.ponder(args);
        assert_eq!(output.status.code(), Some(1), "ponder {args:?}");
        let errors = String::from_utf8(output.stderr).expect("text");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        errors
    }

    fn models(&self) -> Vec<Value> {
        let models: Value = serde_json::from_str(&self.ok(&["models", "--json"])).expect("JSON");
        let models = models["models"].as_array().expect("a list");
        models
            .iter()
            .filter(|model| model["built_in"] == false)
            .cloned()
            .collect()
    }

    fn file(&self, path: &str) -> PathBuf {
        let model = self.models();
        let snapshot = PathBuf::from(model[0]["path"].as_str().expect("a path"));
        snapshot.join(path).canonicalize().expect("a file")
    }
}

#[test]
fn a_damaged_model_is_found_repaired_and_removed() {
    let home = Home::new();
    assert!(home.ok(&["verify", ID]).contains("files verified ("));
    let weights = home.file("model.safetensors");
    let right = fs::read(&weights).expect("weights");
    let mut bytes = right.clone();
    bytes[7_000_000] ^= 1;
    fs::write(&weights, &bytes).expect("written");

    let error = home.fails(&["verify", ID]);
    assert!(
        error.contains("ponder repair") && error.contains("1 file of owner/model is damaged or missing"),
        "{error}"
    );
    let json = home.ponder(&["verify", ID, "--json"]);
    let lines = support::lines(&json);
    let verified = lines
        .iter()
        .find(|line| line["type"] == "verified")
        .expect("what was found");
    assert_eq!(verified["wrong"][0]["path"], "model.safetensors");
    assert!(lines.iter().any(|line| line["type"] == "progress"));
    assert_eq!(lines.last().expect("a line")["code"], "model_broken");

    home.hub.forget_requests();
    assert!(home.ok(&["repair", ID]).contains("files verified ("));
    assert_eq!(fs::read(&weights).expect("weights"), right);
    let again = home.hub.requests();
    assert!(again
        .iter()
        .filter(|request| request.path.contains("/resolve/"))
        .all(|request| request.path.ends_with("model.safetensors")));

    let question = home.fails(&["remove", ID]);
    assert!(
        question.contains("frees 22 MB") && question.contains("--yes"),
        "{question}"
    );
    assert_eq!(home.models().len(), 1);
    assert!(home.ok(&["remove", ID, "--yes"]).contains("(freed 22 MB)"));
    assert!(home.models().is_empty() && !weights.exists());
    for gone in [["verify", ID], ["repair", ID], ["remove", ID]] {
        assert!(home.fails(&gone).contains("no model called owner/model"));
    }
}

#[test]
fn the_table_tells_size_use_and_problem() {
    let home = Home::new();
    home.ok(&["ask", "--model", ID, "--max-tokens", "1", "Hi"]);
    let table = home.ok(&["models"]);
    let row = table.lines().find(|line| line.starts_with(ID)).expect("a row");
    assert!(
        row.contains("22 MB") && row.contains("-") && !row.contains("never"),
        "{row}"
    );
    let model = &home.models()[0];
    assert!(model["last_used_at"].is_i64() && model["place"] == "cache" && model["revisions"][0]["refs"][0] == "main");
    fs::remove_file(home.file("tokenizer.json")).expect("removed");
    assert!(home.ok(&["models"]).contains("tokenizer.json is missing"));
    assert!(home.fails(&["ask", "--model", ID, "Hi"]).contains("repair"));
    home.ok(&["repair", ID]);
    assert_eq!(home.models()[0]["problem"], Value::Null);
}

#[test]
fn a_folder_is_imported_answers_and_goes() {
    let home = Home::new();
    let from = home.path().join("from here");
    fs::create_dir(&from).expect("made");
    for entry in fs::read_dir(pebble()).expect("Pebble").flatten() {
        fs::copy(entry.path(), from.join(entry.file_name())).expect("copied");
    }
    let from = from.to_str().expect("text");
    assert!(home.ok(&["import", from]).contains("Use it with --model"));
    let imported = home
        .models()
        .into_iter()
        .find(|model| model["place"] == "imported")
        .expect("it is listed");
    let reference = imported["reference"].as_str().expect("a reference");
    assert!(!home
        .ok(&["ask", "--model", reference, "--max-tokens", "2", "Hi"])
        .is_empty());
    assert!(home.ok(&["verify", reference]).contains("well-formed"));
    assert!(home.ok(&["repair", from]).contains("well-formed"));
    home.ok(&["remove", reference, "--yes"]);
    assert!(home.fails(&["remove", from, "--yes"]).contains("a folder of yours"));
    assert!(home
        .fails(&["import", "/nowhere/at/all"])
        .contains("nothing was copied"));
    fs::remove_file(Path::new(from).join("tokenizer.json")).expect("removed");
    assert!(home.fails(&["import", from]).contains("tokenizer.json is missing"));
}
