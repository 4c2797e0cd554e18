//! Everyday tasks of the command line: each file of `tests/tasks` is a session in a shell, which is run as it stands
//! and must print what stands there. `tests/tasks/README.md` has the form.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hub_imitation::Imitation;
use snapbox::{Assert, Data, Redactions};

use crate::support::at_home;
use crate::support::pebble::pebble;

/// A byte that ends what a command printed; its exit code follows.
const END: char = '\u{1e}';

/// The lines of a session.
enum Line<'a> {
    /// Outside the blocks of `console`, and their fences.
    Prose(&'a str),
    /// A command, with its continued lines.
    Command(Vec<&'a str>),
}

/// Commands and prose in their order, without what the commands are expected to print.
fn lines(session: &str) -> Vec<Line<'_>> {
    let (mut lines, mut inside) = (Vec::new(), false);
    for line in session.lines() {
        let fence = line == "```console" || (inside && line == "```");
        let continued = line.strip_prefix("> ").or((line == ">").then_some(""));
        match (inside, line.strip_prefix("$ "), continued, lines.last_mut()) {
            _ if fence => {
                inside = !inside;
                lines.push(Line::Prose(line));
            }
            (false, ..) => lines.push(Line::Prose(line)),
            (true, Some(command), ..) => lines.push(Line::Command(vec![command])),
            (true, None, Some(more), Some(Line::Command(command))) => command.push(more),
            _ => {}
        }
    }
    lines
}

/// The commands as one script of a shell, so that variables last from one to the next.
fn script(lines: &[Line]) -> String {
    let commands = lines.iter().filter_map(|line| match line {
        Line::Command(command) => Some(command.join("\n")),
        Line::Prose(_) => None,
    });
    let each = |command: String| format!("{{ {command}\n}} </dev/null\nprintf '\\n\\036%s\\n' $?\n");
    // A server that a session began ends with it.
    "exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned() + &commands.map(each).collect::<String>()
}

/// The session with what was printed this time.
fn told(lines: &[Line], printed: &str) -> String {
    let end = format!("\n{END}");
    let (mut rest, mut text) = (printed, String::new());
    for line in lines {
        match line {
            Line::Prose(prose) => text += &format!("{prose}\n"),
            Line::Command(command) => {
                text += &format!("$ {}\n", command.join("\n> "));
                let (output, after) = rest.split_once(&end).unwrap_or((rest, "not run\n"));
                let (code, after) = after.split_once('\n').unwrap_or((after, ""));
                rest = after;
                text += output;
                if !output.is_empty() && !output.ends_with('\n') {
                    text.push('\n');
                }
                if code != "0" {
                    text += &format!("? {code}\n");
                }
            }
        }
    }
    text
}

/// Runs a session in a folder of its own, with a hub that has Pebble as `owner/model`.
fn run(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tasks").join(name);
    let session = fs::read_to_string(&file).unwrap();
    let lines = lines(&session);
    // The system's folder for such things may be a link.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (work, home) = (folder.join("work"), folder.join("home"));
    fs::create_dir(&work).unwrap();
    let hub = Imitation::start();
    hub.repository("owner/model").pebble();
    let program = Path::new(crate::PROGRAM).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([program.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    let mut shell = Command::new("sh");
    at_home(&mut shell, &home);
    let output = shell
        .args(["-c", &script(&lines)])
        .current_dir(&work)
        .env("PATH", path.unwrap())
        .env("HF_ENDPOINT", hub.endpoint())
        .env("PEBBLE", pebble())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut places = Redactions::new();
    places.insert("[WORK]", work).unwrap();
    places.insert("[HOME]", home).unwrap();
    let told = told(&lines, &String::from_utf8_lossy(&output.stdout));
    let assert = Assert::new()
        .action_env("TASKS")
        .normalize_paths(false)
        .redact_with(places);
    assert.eq(told, Data::read_from(&file, None));
}

/// A test for each file.
macro_rules! sessions {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(concat!(stringify!($name), ".md"));
        })*

        #[test]
        fn every_session_is_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tasks");
            let there = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            let mut there: Vec<String> = there.filter(|name| name != "README.md").collect();
            there.sort();
            assert_eq!(there, [$(concat!(stringify!($name), ".md")),*]);
        }
    };
}

sessions! { ask chat docs documents endpoints history mcp misuse models scripts serve tools }
