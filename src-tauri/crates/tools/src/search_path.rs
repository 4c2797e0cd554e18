//! The folders of a person's own programs: an app that was started by a click has the search path of the system alone, in
//! which neither `npx` nor `uvx` is found.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{kill_process_group, Pid, Signal};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a shell may take to read what its user made it read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Folders in which package managers put programs, below the home folder where they begin with `~`.
const USUAL: [&str; 7] = [
    "~/.local/bin",
    "~/.volta/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.cargo/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
];

/// The search path of the person's login shell, then the one of this process, then the usual folders that there are.
pub async fn search_path(shell: &Path) -> OsString {
    let of_shell = match timeout(PATIENCE, asked(shell)).await {
        Ok(Some(path)) => path,
        Ok(None) | Err(_) => {
            tracing::warn!(shell = %shell.display(), "the shell did not tell its search path");
            OsString::new()
        }
    };
    let own = std::env::var_os("PATH").unwrap_or_default();
    joined(&[of_shell, own], std::env::var_os("HOME").map(PathBuf::from).as_deref())
}

/// The shell's answer; it and what it started are ended whatever happens.
async fn asked(shell: &Path) -> Option<OsString> {
    // The shell's own files may print something beside it.
    let mark = format!("ponder-{:x}", std::process::id());
    let mut command = Command::new(shell);
    command.args(["-l", "-i", "-c", &format!("printf '\\n{mark}:%s:{mark}\\n' \"$PATH\"")]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn().ok()?;
    let _group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).map(Group);
    let output = child.wait_with_output().await.ok()?.stdout;
    let (begin, end) = (format!("\n{mark}:"), format!(":{mark}\n"));
    let start = find(&output, begin.as_bytes())? + begin.len();
    let length = find(&output[start..], end.as_bytes())?;
    Some(OsString::from_vec(output[start..start + length].to_vec()))
}

/// A group of processes, which ends with this.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}

/// These search paths one after the other and the usual folders, each folder once, and none that is relative.
fn joined(paths: &[OsString], home: Option<&Path>) -> OsString {
    let usual = USUAL.into_iter().filter_map(|folder| match folder.strip_prefix("~/") {
        Some(below) => Some(home?.join(below)),
        None => Some(PathBuf::from(folder)),
    });
    let mut folders: Vec<PathBuf> = Vec::new();
    let all = paths.iter().flat_map(std::env::split_paths);
    for folder in all.chain(usual.filter(|folder| folder.is_dir())) {
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    std::env::join_paths(folders).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shell(script: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shell");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        folder
    }

    async fn of(script: &str) -> Option<OsString> {
        let folder = shell(script);
        timeout(Duration::from_secs(2), asked(&folder.path().join("shell")))
            .await
            .ok()?
    }

    #[tokio::test]
    async fn a_shell_is_asked_whatever_else_it_prints() {
        // As a login shell gets it: -l -i -c TEXT.
        let asks = r#"echo Welcome; PATH=/opt/me:/usr/bin; eval "$4"; echo Bye"#;
        assert_eq!(of(asks).await, Some("/opt/me:/usr/bin".into()));
        assert_eq!(of("echo only this").await, None);
        assert_eq!(of("exit 3").await, None);
        assert_eq!(of("sleep 60").await, None);
        assert_eq!(asked(Path::new("/no/such/shell")).await, None);
    }

    #[test]
    fn each_folder_is_looked_at_once_and_none_depends_on_where_one_is() {
        let path = joined(&["/a:relative:/b".into(), "/b::/c".into()], None);
        assert!(path.to_str().unwrap().starts_with("/a:/b:/c"), "{path:?}");
        assert!(!path.to_str().unwrap().contains("relative"));
    }
}
