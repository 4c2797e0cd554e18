//! The walls on macOS: a profile of `sandbox-exec`, and a parent that looks at the memory.

use std::io;
use std::process::{Child, Command};
use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Everything that Apple's decoders need, but no network, no programs, no writing, nothing of the user's folders and no
/// keychain.
const PROFILE: &str = r#"(version 1)
(allow default)
(deny network*)
(deny file-write*)
(deny file-read* (subpath (param "HOME")))
(allow file-read* (subpath (param "FONTS")) (literal (param "PROGRAM")))
(deny process-fork)
(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd.xpc"))
"#;

/// The program in its profile.
pub(crate) fn command() -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let home = std::env::var("HOME").unwrap_or_else(|_| "/Users".into());
    let mut command = Command::new("/usr/bin/sandbox-exec");
    command.args(["-p", PROFILE]);
    command.args([
        "-D",
        &format!("FONTS={home}/Library/Fonts"),
        "-D",
        &format!("HOME={home}"),
    ]);
    command
        .arg("-D")
        .arg(format!("PROGRAM={}", program.display()))
        .arg(&program);
    Ok(command)
}

/// Nothing is left to do inside of the profile.
pub(crate) fn raise() -> Vec<String> {
    Vec::new()
}

/// The parent keeps the time.
pub(crate) fn allow(_: Duration) {}

/// The memory that a process has, in bytes. macOS has no limit for it.
pub(crate) fn memory(child: &Child) -> u64 {
    let pid = Pid::from_u32(child.id());
    let Ok(mut system) = System::new() else {
        return 0;
    };
    let only_memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, only_memory);
    system.process(pid).map_or(0, sysinfo::Process::memory)
}
