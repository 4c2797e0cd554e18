mod moves;

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::walk;

/// Long enough for a signal of a slow machine.
const SOON: Duration = Duration::from_secs(20);
/// Long enough to be sure that none comes.
const NEVER: Duration = Duration::from_millis(900);

fn write(folder: &Path, name: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
}

async fn watch(folder: &Path) -> Watcher {
    watch_with(folder, Rules::default(), WatchOptions::default()).await
}

async fn watch_with(folder: &Path, rules: Rules, options: WatchOptions) -> Watcher {
    let source = Source::Folder(folder.to_owned());
    Watcher::start(source, rules, options).await.unwrap()
}

async fn told(watcher: &mut Watcher) -> Changed {
    let told = tokio::time::timeout(SOON, watcher.changed()).await;
    told.expect("a change was not told").unwrap()
}

async fn is_silent(watcher: &mut Watcher) {
    let told = tokio::time::timeout(NEVER, watcher.changed()).await;
    assert!(told.is_err(), "{told:?}");
}

/// Waits until these paths are told; a slow machine tells one file twice.
async fn tells(watcher: &mut Watcher, names: &[&str]) {
    let mut missing: BTreeSet<PathBuf> = names.iter().map(PathBuf::from).collect();
    while !missing.is_empty() {
        match told(watcher).await {
            Changed::Paths(paths) => missing.retain(|path| !paths.contains(path)),
            Changed::Everything => panic!("everything was told instead of {missing:?}"),
        }
    }
}

async fn tells_everything(watcher: &mut Watcher) {
    while told(watcher).await != Changed::Everything {}
    settles(watcher).await;
}

/// Waits until no more is told; returns how often something was.
async fn settles(watcher: &mut Watcher) -> usize {
    let mut signals = 0;
    while tokio::time::timeout(NEVER, watcher.changed()).await.is_ok() {
        signals += 1;
    }
    signals
}

/// Waits for signals until the walk finds these files. More than one may come while things move.
async fn finds(watcher: &mut Watcher, folder: &Path, names: &[&str]) {
    let mut found = Vec::new();
    for _ in 0..5 {
        told(watcher).await;
        let walk = walk(&Source::Folder(folder.to_owned()), &Rules::default());
        found = walk.map(|walk| walk.files).unwrap_or_default();
        if found.iter().map(|file| &file.path).eq(names.iter().map(Path::new)) {
            settles(watcher).await;
            return;
        }
    }
    panic!("{found:?}");
}

/// True if an inotify of this process watches a folder.
#[cfg(target_os = "linux")]
fn is_watched(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let entry = fs::metadata(folder).unwrap();
    let sign = format!(" ino:{:x} ", entry.ino());
    let open = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let mut texts = open.filter_map(|file| fs::read_to_string(file.path()).ok());
    texts.any(|text| {
        text.lines()
            .any(|line| line.starts_with("inotify") && line.contains(&sign))
    })
}

#[tokio::test]
async fn each_change_of_a_file_is_told_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "sub/a.md");
    let mut watcher = watch(folder).await;
    is_silent(&mut watcher).await;

    write(folder, "sub/b.md");
    tells(&mut watcher, &["sub/b.md"]).await;
    let mut open = File::options().append(true).open(folder.join("sub/a.md")).unwrap();
    open.write_all(b"more").unwrap();
    tells(&mut watcher, &["sub/a.md"]).await;
    drop(open);
    tells(&mut watcher, &["sub/a.md"]).await;
    fs::rename(folder.join("sub/a.md"), folder.join("c.md")).unwrap();
    tells(&mut watcher, &["c.md", "sub/a.md"]).await;
    fs::rename(folder.join("c.md"), outside.path().join("c.md")).unwrap();
    tells(&mut watcher, &["c.md"]).await;
    fs::rename(outside.path().join("c.md"), folder.join("d.md")).unwrap();
    tells(&mut watcher, &["d.md"]).await;
    fs::set_permissions(folder.join("d.md"), Permissions::from_mode(0o600)).unwrap();
    tells(&mut watcher, &["d.md"]).await;
    fs::remove_file(folder.join("d.md")).unwrap();
    tells(&mut watcher, &["d.md"]).await;
    is_silent(&mut watcher).await;
}

#[tokio::test]
async fn reading_and_walking_are_no_changes() {
    let folder = tempfile::tempdir().unwrap();
    for part in 0..300 {
        write(folder.path(), &format!("{part}/a.md"));
    }
    let mut watcher = watch(folder.path()).await;
    let source = Source::Folder(folder.path().to_owned());
    for file in walk(&source, &Rules::default()).unwrap().files {
        crate::read(&source, &file, 10).unwrap();
    }
    is_silent(&mut watcher).await;
}

#[tokio::test]
async fn many_files_at_once_give_few_signals() {
    let folder = tempfile::tempdir().unwrap();
    let mut watcher = watch(folder.path()).await;
    for part in 0..2000 {
        write(folder.path(), &format!("{}/{part}.md", part % 10));
    }
    let signals = settles(&mut watcher).await;
    assert!((1..=4).contains(&signals), "{signals}");
    write(folder.path(), "9/last.md");
    tells(&mut watcher, &["9/last.md"]).await;
}

#[tokio::test]
async fn changes_that_never_end_are_told_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let options = WatchOptions {
        longest: Duration::from_secs(1),
        ..WatchOptions::default()
    };
    let mut watcher = watch_with(folder.path(), Rules::default(), options).await;
    let path = folder.path().to_owned();
    let writing = tokio::spawn(async move {
        loop {
            write(&path, "a.md");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    tells(&mut watcher, &["a.md"]).await;
    tells(&mut watcher, &["a.md"]).await;
    writing.abort();
}

#[tokio::test]
async fn nothing_is_lost_between_two_calls_or_when_waiting_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut watcher = watch(folder.path()).await;
    write(folder.path(), "a.md");
    tokio::time::sleep(Duration::from_millis(500)).await;
    write(folder.path(), "b.md");
    tells(&mut watcher, &["a.md", "b.md"]).await;
    write(folder.path(), "new/c.md");
    for wait in 0..400 {
        if tokio::time::timeout(Duration::from_micros(wait * 10), watcher.changed())
            .await
            .is_ok()
        {
            break;
        }
    }
    write(folder.path(), "new/d.md");
    told(&mut watcher).await;
    write(folder.path(), "new/e.md");
    tells(&mut watcher, &["new/e.md"]).await;
}

#[tokio::test]
async fn files_and_folders_that_are_left_out_cost_no_watch_and_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join(".gitignore"), "node_modules/\n*.log\n").unwrap();
    for part in 0..50 {
        write(folder, &format!("node_modules/{part}/a.md"));
        write(folder, &format!(".git/{part}/a.md"));
    }
    write(folder, "drafts/a.md");
    write(folder, "sub/a.md");
    let rules = Rules {
        patterns: vec!["!drafts/".to_owned()],
        ..Rules::default()
    };
    let mut watcher = watch_with(folder, rules, WatchOptions::default()).await;
    let first = watcher.watches();
    if cfg!(target_os = "linux") {
        assert_eq!(first, 2 + folder.canonicalize().unwrap().ancestors().count() - 1);
    }
    #[cfg(target_os = "linux")]
    for (name, is_read) in [
        (".", true),
        ("sub", true),
        ("node_modules", false),
        (".git/1", false),
        ("drafts", false),
    ] {
        assert_eq!(is_watched(&folder.join(name)), is_read, "{name}");
    }
    for name in [
        "node_modules/b.md",
        "sub/b.log",
        ".hidden",
        "drafts/b.md",
        "sub/node_modules/c.md",
    ] {
        write(folder, name);
    }
    is_silent(&mut watcher).await;
    assert_eq!(watcher.watches(), first);

    fs::write(folder.join(".gitignore"), "*.log\n").unwrap();
    tells_everything(&mut watcher).await;
    if cfg!(target_os = "linux") {
        assert_eq!(watcher.watches(), first + 52);
    }
    write(folder, "node_modules/7/b.md");
    tells(&mut watcher, &["node_modules/7/b.md"]).await;
}

#[tokio::test]
async fn links_pipes_and_sockets_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut watcher = watch(folder).await;
    let first = watcher.watches();
    symlink(outside.path(), folder.join("linked")).unwrap();
    symlink(folder, folder.join("loop")).unwrap();
    let mut pipe = Command::new("mkfifo");
    assert!(pipe
        .arg(folder.join("pipe.md"))
        .arg(folder.join(".ponderignore"))
        .status()
        .unwrap()
        .success());
    let _socket = UnixListener::bind(folder.join("socket")).unwrap();
    tells_everything(&mut watcher).await;
    assert_eq!(watcher.watches(), first);
    write(outside.path(), "secret.md");
    is_silent(&mut watcher).await;
    drop(watcher);
    let mut watcher = watch(folder).await;
    assert_eq!(watcher.watches(), first);
    write(outside.path(), "secret.md");
    is_silent(&mut watcher).await;
}

#[tokio::test]
async fn more_folders_than_the_most_are_told_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let way = folder.path().canonicalize().unwrap().ancestors().count() - 1;
    write(folder.path(), "a/a.md");
    let options = WatchOptions {
        most_watches: way + 3,
        ..WatchOptions::default()
    };
    let mut watcher = watch_with(folder.path(), Rules::default(), options).await;
    if cfg!(target_os = "macos") {
        return;
    }
    write(folder.path(), "b/a.md");
    tells_everything(&mut watcher).await;
    write(folder.path(), "c/a.md");
    let error = loop {
        match tokio::time::timeout(SOON, watcher.changed()).await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, Error::TooManyFolders { most } if most == way + 3),
        "{error}"
    );
    assert!(error.to_string().contains("patterns"), "{error}");
    assert_eq!(watcher.watches(), 0);
    #[cfg(target_os = "linux")]
    assert!(!is_watched(&folder.path().join("a")));
    let source = Source::Folder(folder.path().to_owned());
    assert_eq!(walk(&source, &Rules::default()).unwrap().files.len(), 3);
    let again = Watcher::start(source, Rules::default(), options).await;
    assert!(matches!(again, Err(Error::TooManyFolders { .. })));
}

#[test]
fn limits_of_the_system_name_its_settings() {
    let watches = notify::Error::new(notify::ErrorKind::MaxFilesWatch);
    assert!(place::sentence(watches).contains("fs.inotify.max_user_watches"));
    let many = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    assert!(place::sentence(notify::Error::io(many)).contains("fs.inotify.max_user_instances"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_ends_the_watching() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = watch(folder.path()).await;
    assert!(is_watched(folder.path()));
    // Its thread has the view, too.
    let view = watcher.placed.view();
    drop(watcher);
    for _ in 0..200 {
        if view.upgrade().is_none() && !is_watched(folder.path()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the folder is still watched");
}

#[tokio::test]
async fn single_files_are_watched_where_they_are() {
    let base = tempfile::tempdir().unwrap();
    let (one, two) = (base.path().join("one"), base.path().join("away/two"));
    write(&one, "a.md");
    let named = [one.join("a.md"), one.join("later.md"), two.join("b.md")];
    let source = Source::Files(named.to_vec());
    let mut watcher = Watcher::start(source, Rules::default(), WatchOptions::default())
        .await
        .unwrap();
    write(&one, "other.md");
    is_silent(&mut watcher).await;
    write(&one, "new.md");
    fs::rename(one.join("new.md"), &named[0]).unwrap();
    tells(&mut watcher, &[named[0].to_str().unwrap()]).await;
    write(&one, "later.md");
    tells(&mut watcher, &[named[1].to_str().unwrap()]).await;
    if cfg!(target_os = "linux") {
        write(&two, "b.md");
        tells_everything(&mut watcher).await;
        fs::remove_file(&named[2]).unwrap();
        tells(&mut watcher, &[named[2].to_str().unwrap()]).await;
    }
    fs::rename(&one, base.path().join("gone")).unwrap();
    tells_everything(&mut watcher).await;
}
