//! The kernel's list of mounts.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{pipe, PipeReader, PipeWriter};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags};

use crate::watch::pending::Pending;
use crate::Source;

/// The list of mounts, which polls as a file with urgent data when it changes.
const LIST: &str = "/proc/self/mountinfo";

/// A thread that sleeps until a mount near a collection comes or goes.
pub(crate) struct Mounts {
    /// Its other end tells the thread when this one is dropped.
    _end: PipeWriter,
}

impl Mounts {
    /// `None` where the list cannot be had. May wait for a disk that does not answer.
    pub fn watch(source: &Source, pending: &Arc<Pending>) -> Option<Self> {
        let mut folders: Vec<PathBuf> = match source {
            Source::Folder(folder) => vec![folder.clone()],
            Source::Files(files) => {
                let folders = files.iter().filter_map(|file| file.parent());
                folders.map(Path::to_owned).collect()
            }
        };
        folders.sort();
        folders.dedup();
        // Open first: what comes after is told.
        let list = File::open(LIST).ok()?;
        let near = near(&folders);
        let (ended, end) = pipe().ok()?;
        let pending = Arc::clone(pending);
        let thread = std::thread::Builder::new().name("mounts".to_owned());
        let thread = thread.spawn(move || tell(&list, &ended, &folders, near, &pending));
        thread.ok().map(|_| Self { _end: end })
    }
}

/// Tells changes until the other end of the pipe is closed. Mounts of the rest of the computer are passed over.
fn tell(list: &File, ended: &PipeReader, folders: &[PathBuf], mut before: Vec<Vec<u8>>, pending: &Pending) {
    loop {
        let mut both = [PollFd::new(list, PollFlags::PRI), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) if !both[1].revents().is_empty() => return,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let after = near(folders);
        if after != before {
            before = after;
            pending.anew();
        }
    }
}

/// The lines of the mounts around and below the folders.
fn near(folders: &[PathBuf]) -> Vec<Vec<u8>> {
    let list = std::fs::read(LIST).unwrap_or_default();
    let real = folders.iter().filter_map(|folder| folder.canonicalize().ok());
    let named = folders.iter().filter_map(|folder| std::path::absolute(folder).ok());
    let folders: Vec<PathBuf> = real.chain(named).collect();
    lines_near(&list, &folders)
}

pub(crate) fn lines_near(list: &[u8], folders: &[PathBuf]) -> Vec<Vec<u8>> {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| escaped(folder)).collect();
    let is_near = |line: &&[u8]| {
        let Some(place) = line.split(|&byte| byte == b' ').nth(4) else {
            return false;
        };
        let place = Path::new(OsStr::from_bytes(place));
        let mut folders = folders.iter();
        folders.any(|folder| folder.starts_with(place) || place.starts_with(folder))
    };
    let lines = list.split(|&byte| byte == b'\n').filter(is_near);
    lines.map(<[u8]>::to_vec).collect()
}

/// A path as the list has it: white space and backslashes in octal digits.
fn escaped(path: &Path) -> PathBuf {
    let mut bytes = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => bytes.extend(format!("\\{byte:03o}").bytes()),
            _ => bytes.push(byte),
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}
