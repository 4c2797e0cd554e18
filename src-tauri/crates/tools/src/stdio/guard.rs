//! A process between Ponder and a server, which ends the server and everything that it started as soon as Ponder lets go
//! of it or is killed.
//!
//! Ponder's messages pass through it, so that the end of Ponder is the end of its input. A signal that the system sends
//! at the death of a parent exists on Linux alone, and reaches no grandchild.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{kill_process_group, Pid, Signal};

/// The argument that gives a process its role.
pub(super) const ROLE: &str = "guard-a-tool-server";

/// How long a server may take to end by itself, and once more after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The exit status of a guard whose server could not be started.
pub(super) const NOT_STARTED: u8 = 127;

/// The reason to end.
enum Event {
    /// Ponder let go.
    InputEnded,
    /// The server ended.
    Ended(Option<i32>),
}

/// Plays the role if this process was started for it. Returns `None` for the program itself. A `main` calls it before
/// anything else.
pub fn take_role() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ROLE {
        return None;
    }
    let program = arguments.next()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    Some(ExitCode::from(guard(command)))
}

fn guard(mut command: Command) -> u8 {
    #[cfg(target_os = "linux")]
    {
        // Processes that a server leaves behind become children of the guard.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{error}");
            return NOT_STARTED;
        }
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (events, event) = mpsc::channel();
    if let Some(input) = child.stdin.take() {
        let events = events.clone();
        thread::spawn(move || pass(input, &events));
    }
    thread::spawn(move || wait(child, &events));
    let mut status = None;
    let mut ended = match event.recv() {
        Ok(Event::Ended(code)) => {
            status = code;
            true
        }
        Ok(Event::InputEnded) | Err(_) => false,
    };
    for signal in [None, Some(Signal::TERM)] {
        if ended {
            break;
        }
        if let (Some(signal), Some(group)) = (signal, group) {
            let _ = kill_process_group(group, signal);
        }
        ended = match event.recv_timeout(PATIENCE) {
            Ok(Event::Ended(_)) | Err(RecvTimeoutError::Disconnected) => true,
            // Its input ended meanwhile, which it was waited for.
            Ok(Event::InputEnded) | Err(RecvTimeoutError::Timeout) => false,
        };
    }
    // Those of its group that outlived it, and those that left the group.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    #[cfg(target_os = "linux")]
    kill_children();
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(0)
}

/// Passes on what comes, until nothing does.
fn pass(mut to: ChildStdin, events: &Sender<Event>) {
    let (mut from, mut buffer) = (io::stdin().lock(), vec![0; 64 << 10]);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            // A server that reads no more has ended, or will be ended.
            Ok(count) => {
                let _ = to.write_all(&buffer[..count]).and_then(|()| to.flush());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    drop(to);
    let _ = events.send(Event::InputEnded);
}

fn wait(mut child: Child, events: &Sender<Event>) {
    let status = child.wait().ok().and_then(|status| status.code());
    let _ = events.send(Event::Ended(status));
}

/// Kills every child, and theirs, which become children when their parents end.
#[cfg(target_os = "linux")]
fn kill_children() {
    const ROUNDS: usize = 50;
    for _ in 0..ROUNDS {
        let children = children();
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = rustix::process::kill_process(child, Signal::KILL);
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
        }
    }
}

/// The children of this process, by the process table: `pid (name) state parent …`.
#[cfg(target_os = "linux")]
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?;
        (parent.parse() == Ok(own)).then(|| Pid::from_raw(pid))?
    };
    entries.filter_map(child).collect()
}
