//! Servers of tools on the command line, and models that call them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use tempfile::TempDir;

use crate::support::python::{tool_server, ToldModel};
use crate::support::{command, joined, last, lines, run, run_json, text};

/// A folder with a server of tools called `w`, switched on, and a model that says what it is told.
struct Place {
    folder: TempDir,
    model: ToldModel,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = ToldModel::start(folder.path());
        let place = Self { folder, model };
        let server = tool_server(place.folder.path());
        let server = server.to_str().unwrap();
        text(&run(&place.home(), &["tools", "add", "w", "--", "python3", server]));
        text(&run(&place.home(), &["tools", "enable", "--yes", "w"]));
        text(&run(&place.home(), &["endpoints", "add", "told", &place.model.url]));
        place
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn args<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
        [&["ask", "-m", "endpoint:told/told"], options, &[script]].concat()
    }

    fn ask(&self, options: &[&str], script: &Value) -> Output {
        run(&self.home(), &Self::args(options, &script.to_string()))
    }

    /// The tools of the server that were called.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(view: &Value) -> Vec<&str> {
    let servers = view["servers"].as_array().unwrap();
    servers.iter().filter_map(|server| server["name"].as_str()).collect()
}

#[test]
fn a_server_is_added_switched_on_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let server = tool_server(folder.path());
    let server = server.to_str().unwrap();
    let added = run(
        &home,
        &["tools", "add", "w", "--env", "MODE=fast", "--", "python3", server],
    );
    assert!(text(&added).contains("It is off"), "{added:?}");
    let listed = |args: &[&str]| run_json(&home, &[&["tools", "list", "--json"], args].concat()).remove(0);
    let view = listed(&["--start"]);
    assert_eq!(names(&view), ["Ponder", "w"]);
    assert_eq!(view["servers"][1]["state"]["kind"], "off");
    assert_eq!(view["servers"][1]["tools"], json!([]), "nothing of it was started");

    let unasked = run(&home, &["tools", "enable", "w"]);
    assert_eq!(unasked.status.code(), Some(1));
    assert!(
        err(&unasked).contains(&format!("MODE=fast python3 {server}")),
        "{unasked:?}"
    );
    assert_eq!(listed(&[])["servers"][1]["state"]["kind"], "off");
    text(&run(&home, &["tools", "enable", "--yes", "w"]));
    assert_eq!(listed(&[])["servers"][1]["state"]["kind"], "idle");
    let view = listed(&["--start"]);
    assert_eq!(view["servers"][1]["state"]["kind"], "ready");
    assert_eq!(view["servers"][1]["tools"][0]["name"], "get_weather");
    let shown = text(&run(&home, &["tools", "list", "--start"]));
    assert!(shown.contains("  get_weather  Tells the weather.\n"), "{shown}");
    let log = run(&home, &["tools", "log", "w"]);
    assert!(text(&log).contains("weather station 7"), "{log:?}");

    text(&run(&home, &["tools", "rule", "w/write_note", "deny"]));
    assert_eq!(listed(&["--start"])["servers"][1]["tools"][1]["rule"], "deny");
    text(&run(&home, &["tools", "disable", "w"]));
    let off = run(&home, &["ask", "--use-tools", "w", "Hi"]);
    assert!(err(&off).contains("ponder tools enable w"), "{off:?}");
    text(&run(&home, &["tools", "remove", "w"]));
    assert_eq!(names(&listed(&[])), ["Ponder"]);
    assert_eq!(run(&home, &["tools", "remove", "w"]).status.code(), Some(1));
}

#[test]
fn a_secret_without_a_keychain_is_written_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let mut add = command(home, &["tools", "add", "w", "--secret", "API_KEY", "--", "true"]);
    let mut child = add
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"sk-right\n").unwrap();
    let refused = child.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(err(&refused).contains("keychain"), "{refused:?}");
    assert_eq!(names(&run_json(home, &["tools", "list", "--json"])[0]), ["Ponder"]);
}

fn calculate(home: &Path, options: &[&str]) -> Output {
    let ask = [
        "ask",
        "--temperature",
        "0",
        "--thinking",
        "off",
        "--use-tools",
        "ponder/calculate",
    ];
    run(
        home,
        &[&ask[..], options, &["What is 347 + 589? Use the tool."]].concat(),
    )
}

#[test]
fn a_model_computes_with_the_calculator() {
    let home = tempfile::tempdir().unwrap();
    let answer = calculate(home.path(), &["--allow", "ponder/calculate"]);
    assert!(text(&answer).contains("936"), "{answer:?}");
    assert_eq!(err(&answer), "(ponder/calculate {\"expression\":\"347 + 589\"}: 936)\n");
    let printed = calculate(home.path(), &["--json", "--allow", "Ponder/calculate"]);
    let events = lines(&printed);
    let result = events.iter().find(|event| event["type"] == "tool_result").unwrap();
    assert_eq!((&result["state"], &result["text"]), (&json!("done"), &json!("936")));
    assert_eq!(last(&events)["stop"], "stop");
    assert!(joined(&events, "text").contains("936"), "{events:?}");
}

#[test]
fn a_call_that_nobody_allowed_ends_the_run() {
    let home = tempfile::tempdir().unwrap();
    let ended = calculate(home.path(), &[]);
    assert_eq!(text(&ended), "calculate({\"expression\":\"347 + 589\"})\n");
    assert!(
        err(&ended).contains("--allow ponder/calculate lets it run"),
        "{ended:?}"
    );
    let printed = calculate(home.path(), &["--json"]);
    let events = lines(&printed);
    assert_eq!(last(&events)["stop"], "tool_calls");
    assert!(events.iter().all(|event| event["type"] != "tool_result"), "{events:?}");
}

#[test]
fn calls_of_a_server_run_in_their_order_and_their_results_are_answered() {
    let place = Place::new();
    let script = json!([
        [["w__get_weather", {"city": "Oslo"}], ["w__get_weather", {"town": "Bonn"}], ["w__get_weather", {"city": "Bonn"}]],
        "RESULTS"
    ]);
    let answer = place.ask(&["--use-tools", "w", "--allow", "w/get_weather"], &script);
    let results: Vec<String> = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(
        (results[0].as_str(), results[2].as_str()),
        ("sunny in Oslo", "sunny in Bonn")
    );
    assert!(results[1].contains("city"), "{results:?}");
    assert_eq!(place.calls(), ["get_weather", "get_weather"]);
    let shown = err(&answer);
    assert!(
        shown.contains(r#"(w/get_weather {"city":"Oslo"}: sunny in Oslo)"#),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 3, "{shown}");
}

#[test]
fn after_words_of_strangers_nothing_is_written() {
    let place = Place::new();
    let options = [
        "--use-tools",
        "w",
        "--allow",
        "w/get_weather",
        "--allow",
        "w/write_note",
    ];
    let note = json!(["w__write_note", {"text": "a"}]);
    let weather = json!(["w__get_weather", {"city": "Oslo"}]);
    assert_eq!(
        text(&place.ask(&options, &json!([[note], "RESULTS"]))),
        "[\"written\"]\n"
    );
    let ended = place.ask(&options, &json!([[weather], [note], "RESULTS"]));
    assert_eq!(text(&ended), "w__write_note({\"text\":\"a\"})\n");
    assert_eq!(place.calls(), ["write_note", "get_weather"]);
}

#[test]
fn a_call_that_is_not_allowed_is_followed_by_no_other() {
    let place = Place::new();
    let script = json!([
        [["w__get_weather", {"city": "Oslo"}], ["w__write_note", {"text": "a"}], ["w__get_weather", {"city": "Bonn"}]],
        "RESULTS"
    ]);
    let ended = place.ask(&["--use-tools", "w", "--allow", "w/get_weather"], &script);
    let expected = "w__write_note({\"text\":\"a\"})\nw__get_weather({\"city\":\"Bonn\"})\n";
    assert_eq!(text(&ended), expected);
    assert!(err(&ended).contains("--allow w/write_note lets it run"), "{ended:?}");
    assert_eq!(place.calls(), ["get_weather"]);
}

#[test]
fn a_model_that_calls_for_ever_is_ended_and_a_long_result_is_cut() {
    let place = Place::new();
    let options = ["--use-tools", "w", "--allow", "w/get_weather", "--allow", "w/flood"];
    let wrong = place.ask(&options, &json!([[["w__get_weather", {}]]]));
    assert_eq!(text(&wrong), "w__get_weather({})\n");
    assert!(place.calls().is_empty());
    assert!(err(&wrong).contains("again and again"), "{wrong:?}");
    let same = place.ask(&options, &json!([[["w__get_weather", {"city": "Oslo"}]]]));
    assert_eq!(text(&same), "w__get_weather({\"city\":\"Oslo\"})\n");
    assert!(err(&same).contains("the same call"), "{same:?}");
    let flood = text(&place.ask(&options, &json!([[["w__flood", {}]], "RESULTS"])));
    assert!(
        flood.len() < 33_000 && flood.contains("[cut: ") && flood.contains(" of 100000 bytes"),
        "{}",
        flood.len()
    );
}

#[test]
fn ctrl_c_ends_a_call_that_lasts() {
    let place = Place::new();
    let script = json!([[["w__sleep", {}]], "RESULTS"]).to_string();
    let options = ["--use-tools", "w", "--allow", "w/sleep"];
    // A terminal tells the whole group.
    let child = command(&place.home(), &Place::args(&options, &script))
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while place.calls().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the tool was not called");
        std::thread::sleep(Duration::from_millis(50));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(process, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let server = fs::read_to_string(place.folder.path().join("pid")).unwrap();
    let server = rustix::process::Pid::from_raw(server.parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(server).is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(50),
            "the server outlives the command"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_bundle_is_imported_switched_off_and_a_hostile_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let server = tool_server(folder.path());
    let manifest = json!({
        "name": "weather", "version": "2.1", "author": { "name": "Ada" },
        "server": { "type": "python", "mcp_config": {
            "command": "python3", "args": [server], "env": { "MODE": "${user_config.mode}" }
        } },
        "user_config": { "mode": { "type": "string", "required": true } }
    });
    let bundle = |names: &[&str]| {
        let path = folder.path().join("weather.mcpb");
        let script = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as bundle:\n    bundle.writestr('manifest.json', sys.argv[2])\n    for name in sys.argv[3:]: bundle.writestr(name, 'x')";
        let made = std::process::Command::new("python3")
            .args(["-c", script, path.to_str().unwrap(), &manifest.to_string()])
            .args(names)
            .status();
        assert!(made.unwrap().success());
        path
    };
    let path = bundle(&["../../escaped"]);
    let refused = run(
        &home,
        &["tools", "import", path.to_str().unwrap(), "--set", "mode=fast"],
    );
    assert!(err(&refused).contains("leads elsewhere"), "{refused:?}");
    let path = bundle(&["lib/a.txt"]);
    let unfilled = run(&home, &["tools", "import", path.to_str().unwrap()]);
    assert!(err(&unfilled).contains("filled in"), "{unfilled:?}");
    let added = run(
        &home,
        &["tools", "import", path.to_str().unwrap(), "--set", "mode=fast"],
    );
    assert!(
        text(&added).contains("Added weather 2.1 by Ada") && text(&added).contains("It is off"),
        "{added:?}"
    );
    let view = run_json(&home, &["tools", "list", "--json"]).remove(0);
    assert_eq!(
        (names(&view), &view["servers"][1]["state"]["kind"]),
        (vec!["Ponder", "weather"], &json!("off"))
    );
    let json = run(&home, &["tools", "import", "--set", "a=b", "servers.json"]);
    assert!(err(&json).contains("this is none"), "{json:?}");
    assert!(!folder.path().join("escaped").exists());
}
