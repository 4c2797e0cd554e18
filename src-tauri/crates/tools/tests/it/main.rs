//! Servers as real processes behind the real guard.
#![allow(clippy::unwrap_used)]

mod asks;
mod bundles;
mod conformance;
mod editing;
mod host;
mod http;
mod injections;
mod own_tools;
mod pages;
mod real_servers;
mod searches;
mod shelf;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use net::Net;
use protocol::CallProgress;
use serde_json::json;
use tokio::sync::watch;
use tools::outcome::{Outcome, ResultPart};
use tools::session::{CallError, Caller, Limits, Session};
use tools::stdio::{Guard, Launch, StartError};

/// Short, so that a call is given up soon, and long enough for a busy computer.
const LIMITS: Limits = Limits {
    start: Duration::from_secs(5),
    list: Duration::from_secs(2),
    call: Duration::from_secs(2),
    whole_call: Duration::from_secs(8),
};

fn example(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn guard() -> Guard {
    Guard::of(example("guard"))
}

/// The client for addresses, with nothing of this computer's settings.
fn net() -> Net {
    Net::open(net::Settings::of_a_test("https://hub.invalid"))
}

/// A misbehaving server, with an argument by which its processes are found.
fn bad(way: &str, marker: &str) -> Launch {
    Launch {
        command: example("bad_server").display().to_string(),
        args: vec![way.to_owned(), marker.to_owned()],
        env: Default::default(),
        path: "/usr/bin:/bin".into(),
    }
}

/// The command lines of processes with this marker.
#[cfg(target_os = "linux")]
fn running(marker: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(marker))
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn running(marker: &str) -> Vec<String> {
    let table = std::process::Command::new("ps")
        .args(["-A", "-ww", "-o", "args="])
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    table
        .lines()
        .filter(|line| line.contains(marker))
        .map(str::to_owned)
        .collect()
}

/// Fails if a process with this marker goes on running.
fn none_is_left(marker: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !running(marker).is_empty() {
        assert!(Instant::now() < deadline, "{:?} runs on", running(marker));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn marker() -> String {
    use std::hash::{BuildHasher, Hasher};
    format!("marker-{:x}", std::hash::RandomState::new().build_hasher().finish())
}

async fn call(session: &Session) -> Result<Outcome, CallError> {
    let (_stop, stopped) = watch::channel(false);
    session
        .call("echo", &json!({ "n": 1 }), Caller::default(), stopped)
        .await
}

/// A server's start, its list and a call, each in a word.
async fn tried(way: &str) -> [String; 3] {
    let (marker, begun) = (marker(), Instant::now());
    let word = match Session::start(&bad(way, &marker), &guard(), LIMITS).await {
        Err(error) => [format!("{error}"), String::new(), String::new()],
        Ok(session) => {
            let list = match session.tools().await {
                Ok(listing) => format!("{} tools, {} problems", listing.tools.len(), listing.problems.len()),
                Err(error) => error.to_string(),
            };
            let called = match call(&session).await {
                Ok(outcome) => outcome.for_model(60),
                Err(error) => error.to_string(),
            };
            session.close().await;
            ["ready".to_owned(), list, called]
        }
    };
    none_is_left(&marker);
    println!(
        "report: {way}: {} in {:.1} s",
        word.join(" | "),
        begun.elapsed().as_secs_f64()
    );
    assert!(begun.elapsed() < Duration::from_secs(20), "{way} took too long");
    word
}

#[tokio::test]
async fn every_way_to_misbehave_costs_the_servers_own_calls_and_nothing_else() {
    let silent = "nothing came for 2 s, so the call was given up; it may or may not have been done";
    let ended = "the server ended while it worked, so it may or may not have been done";
    let echo = r#"{"n":1}"#;
    let ways = [
        ("good", ["ready", "1 tools, 0 problems", echo]),
        ("mute", ["the program said nothing for 5 s", "", ""]),
        ("mute in list", ["ready", silent, echo]),
        ("mute in call", ["ready", "1 tools, 0 problems", silent]),
        (
            "dies",
            [
                "the program ended before it was ready; it said: bad_server: API_KEY is not set",
                "",
                "",
            ],
        ),
        ("dies in call", ["ready", "1 tools, 0 problems", ended]),
        ("wrong json", ["the program said nothing for 5 s", "", ""]),
        ("floods", ["ready", "1 tools, 0 problems", echo]),
        ("lying schema", ["ready", "2 tools, 2 problems", "still"]),
        ("changing", ["ready", "1 tools, 0 problems", echo]),
        ("pages", ["ready", "1 tools, 31 problems", echo]),
        ("late", ["ready", "1 tools, 0 problems", "late"]),
        ("long line", ["ready", "1 tools, 0 problems", silent]),
        ("second answer", ["ready", "1 tools, 0 problems", "first"]),
        ("after cancel", ["ready", "1 tools, 0 problems", silent]),
        ("asks", ["ready", "1 tools, 0 problems", echo]),
        ("stays", ["ready", "1 tools, 0 problems", echo]),
        ("grandchild", ["ready", "1 tools, 0 problems", echo]),
    ];
    for (way, expected) in ways {
        assert_eq!(tried(way).await, expected, "{way}");
    }
    let [refused, ..] = tried("refuses").await;
    assert!(refused.contains("no license"), "{refused}");
}

#[tokio::test]
async fn a_server_that_ignores_every_request_to_end_is_killed_with_what_it_started() {
    let marker = marker();
    let server = example("bad_server").display().to_string();
    let launch = Launch {
        command: "sh".to_owned(),
        // A process that ignores a signal hands that on.
        args: vec![
            "-c".to_owned(),
            format!("trap '' TERM; (sleep 1000; : {marker}) & exec '{server}' stays {marker}"),
        ],
        ..bad("", "")
    };
    let session = Session::start(&launch, &guard(), LIMITS).await.unwrap();
    assert!(call(&session).await.is_ok());
    assert!(running(&marker).len() >= 2);
    let closing = Instant::now();
    session.close().await;
    assert!(closing.elapsed() < Duration::from_secs(8));
    none_is_left(&marker);
}

#[tokio::test]
async fn a_call_is_stopped_and_progress_is_heard() {
    let marker = marker();
    let session = Session::start(&bad("late", &marker), &guard(), LIMITS).await.unwrap();
    let (progress, mut heard) = watch::channel(CallProgress::default());
    let (stop, stopped) = watch::channel(false);
    let arguments = json!({});
    let called = session.call("echo", &arguments, progress, stopped);
    let stopping = async {
        heard.wait_for(|progress| progress.done >= Some(2.0)).await.unwrap();
        stop.send_replace(true);
        heard.borrow().clone()
    };
    let (called, heard) = tokio::join!(called, stopping);
    assert_eq!(called, Err(CallError::Stopped));
    assert_eq!((heard.total, heard.message.as_deref()), (Some(10.0), Some("working")));
    // It goes on with the next one.
    assert_eq!(
        call(&session).await.unwrap().parts,
        [ResultPart::Text("late".to_owned())]
    );
    session.close().await;
    none_is_left(&marker);
}

#[tokio::test]
async fn a_list_that_changes_is_told() {
    let session = Session::start(&bad("changing", &marker()), &guard(), LIMITS)
        .await
        .unwrap();
    let mut anew = session.list_changes();
    let first = session.tools().await.unwrap();
    tokio::time::timeout(Duration::from_secs(2), anew.changed())
        .await
        .unwrap()
        .unwrap();
    assert_ne!(session.tools().await.unwrap(), first);
    session.close().await;
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let missing = Launch {
        command: "no-such-program".to_owned(),
        ..bad("", "")
    };
    let error = Session::start(&missing, &guard(), LIMITS).await.err().unwrap();
    assert!(
        matches!(&error, StartError::NotFound { looked_in, .. } if looked_in == &["/usr/bin", "/bin"]),
        "{error}"
    );
    // Found, but what it needs is not.
    let broken = tempfile::tempdir().unwrap();
    let script = broken.path().join("server");
    std::fs::write(&script, "#!/usr/bin/env no-such-interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let broken = Launch {
        command: script.display().to_string(),
        ..bad("", "")
    };
    let error = Session::start(&broken, &guard(), LIMITS).await.err().unwrap();
    assert!(error.to_string().contains("no-such-interpreter"), "{error}");
    // A relative path would depend on the folder that Ponder was started in.
    let relative = Launch {
        command: "./server".to_owned(),
        ..bad("", "")
    };
    assert!(matches!(
        Session::start(&relative, &guard(), LIMITS).await,
        Err(StartError::NotFound { .. })
    ));
}

#[tokio::test]
async fn a_server_gets_nothing_of_the_environment_but_what_it_needs() {
    std::env::set_var("PONDER_TEST_SECRET", "of another program");
    let marker = marker();
    let launch = Launch {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), format!("env >&2; exit 1; : {marker}")],
        env: [("OWN".to_owned(), "value".to_owned())].into(),
        ..bad("", "")
    };
    let error = Session::start(&launch, &guard(), LIMITS)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("it said") && !error.contains("PONDER_TEST_SECRET"),
        "{error}"
    );
    assert!(
        error.contains("OWN=value") && error.contains("PATH=/usr/bin:/bin"),
        "{error}"
    );
    none_is_left(&marker);
}

/// The app is killed, and nothing that it started stays.
#[test]
fn a_host_that_is_killed_leaves_nothing() {
    let marker = marker();
    let server = example("bad_server").display().to_string();
    let script = format!("trap '' TERM; (sleep 1000; : {marker}) & exec '{server}' stays {marker}");
    let mut host = std::process::Command::new(example("host"))
        .args(["sh", "-c", &script])
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let serves = |line: &String| line.contains("bad_server stays");
    while !running(&marker).iter().any(serves) {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    // On Unix this is SIGKILL.
    host.kill().unwrap();
    host.wait().unwrap();
    none_is_left(&marker);
}
