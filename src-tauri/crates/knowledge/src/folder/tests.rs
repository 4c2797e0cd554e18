use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::*;
use crate::Error;

fn write(folder: &Path, name: impl AsRef<OsStr>, text: &str) {
    let path = folder.join(Path::new(name.as_ref()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn look(folder: &Path, rules: &Rules) -> Walk {
    walk(&Source::Folder(folder.to_owned()), rules).unwrap()
}

fn names(walk: &Walk) -> Vec<String> {
    walk.files
        .iter()
        .map(|file| file.path.to_string_lossy().into_owned())
        .collect()
}

fn found(folder: &Path, name: &str) -> FoundFile {
    FoundFile {
        path: name.into(),
        stamp: Stamp::of(&fs::metadata(folder.join(name)).unwrap()),
    }
}

#[test]
fn ignore_files_patterns_and_dots_leave_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, ".gitignore", "*.log\n/build/\n[bad\n");
    write(folder, "sub/.ponderignore", "!keep.log\nsecret.md\n");
    for name in [
        "a.md",
        "b.log",
        "build/c.md",
        "sub/build/d.md",
        "sub/keep.log",
        "sub/secret.md",
        ".hidden/e.md",
        "f.txt",
    ] {
        write(folder, name, "x");
    }
    let walk = look(folder, &Rules::default());
    assert_eq!(names(&walk), ["a.md", "f.txt", "sub/build/d.md", "sub/keep.log"]);
    let left_out: Vec<(SkipReason, u64)> = walk.left_out.into_iter().collect();
    assert_eq!(left_out, [(SkipReason::Hidden, 3), (SkipReason::Ignored, 3)]);
    assert!(walk.skipped.is_empty());

    let rules = |patterns: &[&str]| Rules {
        patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
        ..Rules::default()
    };
    assert_eq!(names(&look(folder, &rules(&["*.md"]))), ["a.md", "sub/build/d.md"]);
    assert_eq!(names(&look(folder, &rules(&["*.md", "!sub/"]))), ["a.md"]);
    let wrong = walk_of(folder, &rules(&["[z-a]"]));
    assert!(matches!(wrong, Err(Error::Pattern(_))), "{wrong:?}");
}

fn walk_of(folder: &Path, rules: &Rules) -> crate::Result<Walk> {
    walk(&Source::Folder(folder.to_owned()), rules)
}

#[test]
fn links_pipes_sockets_and_large_files_are_told_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, outside) = (folder.path(), tempfile::tempdir().unwrap());
    write(outside.path(), "secret.md", "secret");
    symlink(outside.path(), folder.join("linked")).unwrap();
    symlink(outside.path().join("secret.md"), folder.join("link.md")).unwrap();
    symlink(folder, folder.join("loop")).unwrap();
    // Through the command, because rustix has none for pipes on macOS.
    let mut pipes = Command::new("mkfifo");
    pipes.arg(folder.join("pipe.md")).arg(folder.join(".gitignore"));
    assert!(pipes.status().unwrap().success());
    let _socket = UnixListener::bind(folder.join("socket")).unwrap();
    write(folder, "large.md", "12345");
    write(folder, "empty.md", "");
    write(folder, "fits.md", "1234");
    let rules = Rules {
        most_bytes: 4,
        ..Rules::default()
    };
    let walk = look(folder, &rules);
    assert_eq!(names(&walk), ["fits.md"]);
    let skipped: Vec<(&str, SkipReason)> = walk
        .skipped
        .iter()
        .map(|file| (file.path.to_str().unwrap(), file.reason))
        .collect();
    assert_eq!(
        skipped,
        [
            ("empty.md", SkipReason::Empty),
            ("large.md", SkipReason::TooLarge),
            ("link.md", SkipReason::Link),
            ("linked", SkipReason::Link),
            ("loop", SkipReason::Link),
            ("pipe.md", SkipReason::Special),
            ("socket", SkipReason::Special),
        ]
    );

    // Whatever takes the place of a file after it was found.
    let source = Source::Folder(folder.to_owned());
    let reading = |path: &str| {
        let file = FoundFile {
            path: path.into(),
            stamp: UNKNOWN,
        };
        read(&source, &file, 4).map(|reading| reading.bytes)
    };
    assert_eq!(reading("fits.md"), Ok(b"1234".to_vec()));
    assert_eq!(reading("link.md"), Err(SkipReason::Link));
    assert!(reading("linked/secret.md").is_err());
    assert!(reading("../secret.md").is_err());
    assert_eq!(reading("pipe.md"), Err(SkipReason::Special));
    assert_eq!(reading("socket"), Err(SkipReason::Unreadable));
    assert_eq!(reading("large.md"), Err(SkipReason::TooLarge));
    assert_eq!(reading("empty.md"), Err(SkipReason::Empty));
    assert_eq!(reading("gone.md"), Err(SkipReason::Gone));
}

const UNKNOWN: Stamp = Stamp { size: 0, modified: 0 };

#[test]
fn names_of_every_kind_keep_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long = "é".repeat(127) + "x";
    write(folder, &long, "x");
    let is_linux = cfg!(target_os = "linux");
    if is_linux {
        write(folder, OsStr::from_bytes(b"\xff\xfe.md"), "x");
    }
    write(folder, "line\nfeed.md", "x");
    write(folder, "b/a", "x");
    write(folder, "b.md", "x");
    let first = look(folder, &Rules::default());
    assert_eq!(first.files.len(), if is_linux { 5 } else { 4 });
    assert_eq!(first, look(folder, &Rules::default()));
    let source = Source::Folder(folder.to_owned());
    for file in &first.files {
        assert_eq!(read(&source, file, 10).unwrap().bytes, b"x");
    }
}

#[test]
fn a_hundred_thousand_empty_files_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for part in 0..100 {
        let part = folder.join(part.to_string());
        fs::create_dir(&part).unwrap();
        for name in 0..1000 {
            File::create(part.join(name.to_string())).unwrap();
        }
    }
    write(folder, "z", "x");
    let rules = Rules {
        most_files: 5000,
        ..Rules::default()
    };
    let walk = look(folder, &rules);
    assert_eq!(names(&walk), ["z"]);
    assert_eq!(walk.left_out[&SkipReason::Empty], 100_000);
    assert_eq!(walk.skipped.len(), 5000);
}

#[test]
fn more_than_the_most_files_are_left_out_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["c", "a", "b/x", "d"] {
        write(folder.path(), name, "x");
    }
    let rules = Rules {
        most_files: 2,
        ..Rules::default()
    };
    let walk = look(folder.path(), &rules);
    assert_eq!(names(&walk), ["a", "c"]);
    assert_eq!(walk.left_out[&SkipReason::TooMany], 2);
}

#[test]
fn a_file_that_grows_is_not_read_by_half() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "grows.log", &"line\n".repeat(400_000));
    let file = found(folder, "grows.log");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut grows = File::options().append(true).open(folder.join("grows.log")).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                grows.write_all(b"line\n").unwrap();
            }
        });
        for _ in 0..20 {
            match read(&Source::Folder(folder.to_owned()), &file, 100_000_000) {
                Ok(reading) => assert_eq!(reading.bytes.len() as u64, reading.stamp.size),
                Err(reason) => assert_eq!(reason, SkipReason::Changing),
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_time_is_sure_only_some_time_after_the_change() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a", "x");
    let source = Source::Folder(folder.to_owned());
    assert_eq!(read(&source, &found(folder, "a"), 9).unwrap().stamp.modified, 0);
    let earlier = SystemTime::now() - Duration::from_secs(60);
    File::options()
        .write(true)
        .open(folder.join("a"))
        .unwrap()
        .set_modified(earlier)
        .unwrap();
    let file = found(folder, "a");
    assert_eq!(read(&source, &file, 9).unwrap().stamp, file.stamp);
}

#[test]
fn a_folder_that_cannot_be_listed_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let gone = walk_of(&folder.path().join("gone"), &Rules::default());
    assert!(matches!(gone, Err(Error::Folder { .. })), "{gone:?}");
    write(folder.path(), "shut/a.md", "x");
    fs::set_permissions(folder.path().join("shut"), Permissions::from_mode(0o000)).unwrap();
    let walk = look(folder.path(), &Rules::default());
    // The administrator may list every folder.
    if walk.files.is_empty() {
        assert_eq!(walk.unlisted, [Path::new("shut")]);
    }
    fs::set_permissions(folder.path().join("shut"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn single_files_are_gone_only_if_their_folder_is_there() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), ".a.md", "x");
    let paths = [".a.md", "gone.md", "away/b.md", "."].map(|name| folder.path().join(name));
    let source = Source::Files(paths.to_vec());
    let walk = walk(&source, &Rules::default()).unwrap();
    assert_eq!(walk.files.len(), 1);
    assert_eq!(walk.unlisted, [folder.path().join("away/b.md")]);
    assert_eq!(read(&source, &walk.files[0], 9).unwrap().bytes, b"x");
}
