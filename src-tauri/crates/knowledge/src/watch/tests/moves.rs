//! Folders that come, go and change places, those of the collection and those around it.

use super::*;

#[tokio::test]
async fn folders_come_and_go_with_their_files() {
    let base = tempfile::tempdir().unwrap();
    let (folder, outside) = (base.path().join("folder"), base.path().join("outside"));
    write(&folder, "a.md");
    write(&outside, "in/deep/b.md");
    let mut watcher = watch(&folder).await;
    let first = watcher.watches();

    fs::rename(outside.join("in"), folder.join("in")).unwrap();
    tells_everything(&mut watcher).await;
    assert_eq!(watcher.watches(), first + 2 * usize::from(cfg!(target_os = "linux")));
    write(&folder, "in/deep/c.md");
    tells(&mut watcher, &["in/deep/c.md"]).await;

    // The new path of a folder, and another folder at its old one.
    fs::rename(folder.join("in"), folder.join("moved")).unwrap();
    write(&folder, "in/e.md");
    finds(
        &mut watcher,
        &folder,
        &["a.md", "in/e.md", "moved/deep/b.md", "moved/deep/c.md"],
    )
    .await;
    write(&folder, "moved/deep/d.md");
    tells(&mut watcher, &["moved/deep/d.md"]).await;
    write(&folder, "in/f.md");
    tells(&mut watcher, &["in/f.md"]).await;

    fs::rename(folder.join("moved"), outside.join("moved")).unwrap();
    tells_everything(&mut watcher).await;
    write(&outside, "moved/deep/g.md");
    is_silent(&mut watcher).await;
    fs::remove_dir_all(folder.join("in")).unwrap();
    finds(&mut watcher, &folder, &["a.md"]).await;
    assert_eq!(watcher.watches(), first);
}

#[tokio::test]
async fn folders_that_change_places_keep_being_watched() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("folder");
    write(&folder, "one/a.md");
    write(&folder, "two/in/b.md");
    let mut watcher = watch(&folder).await;
    fs::rename(folder.join("one"), folder.join("three")).unwrap();
    fs::rename(folder.join("two"), folder.join("one")).unwrap();
    fs::rename(folder.join("three"), folder.join("two")).unwrap();
    finds(&mut watcher, &folder, &["one/in/b.md", "two/a.md"]).await;
    write(&folder, "one/in/c.md");
    tells(&mut watcher, &["one/in/c.md"]).await;
    // Into a folder that is new at the same time.
    fs::create_dir_all(folder.join("new/er")).unwrap();
    fs::rename(folder.join("one"), folder.join("new/er/one")).unwrap();
    finds(
        &mut watcher,
        &folder,
        &["new/er/one/in/b.md", "new/er/one/in/c.md", "two/a.md"],
    )
    .await;
    write(&folder, "new/er/one/in/d.md");
    tells(&mut watcher, &["new/er/one/in/d.md"]).await;
}

#[tokio::test]
async fn folders_that_grow_while_they_are_watched_lose_nothing() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().to_owned();
    let options = WatchOptions {
        quiet: Duration::from_millis(5),
        longest: Duration::from_millis(20),
        ..WatchOptions::default()
    };
    let mut watcher = watch_with(&folder, Rules::default(), options).await;
    let writer = {
        let folder = folder.clone();
        std::thread::spawn(move || {
            for part in 0..300 {
                let (here, there) = (
                    format!("{}/{part}", part % 7),
                    format!("{}/moved-{part}", (part + 1) % 7),
                );
                write(&folder, &format!("{here}/deep/a.md"));
                if part % 3 == 0 {
                    fs::create_dir_all(folder.join(&there).parent().unwrap()).unwrap();
                    fs::rename(folder.join(&here), folder.join(&there)).unwrap();
                }
                if part % 3 != 0 && part % 5 == 1 {
                    fs::remove_dir_all(folder.join(&here)).unwrap();
                }
            }
        })
    };
    let mut signals = 0;
    while tokio::time::timeout(Duration::from_secs(2), watcher.changed())
        .await
        .is_ok()
    {
        signals += 1;
    }
    writer.join().unwrap();
    assert!(signals > 1);
    // Every folder has a watch now: a change of each is told.
    let files = walk(&Source::Folder(folder.clone()), &Rules::default()).unwrap().files;
    assert_eq!(files.len(), 260);
    for file in files {
        fs::write(folder.join(&file.path), "xy").unwrap();
        tells(&mut watcher, &[file.path.to_str().unwrap()]).await;
    }
}

#[tokio::test]
async fn a_folder_that_is_moved_is_told_and_so_is_the_one_in_its_place() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("way/folder");
    write(&folder, "sub/a.md");
    let mut watcher = watch(&folder).await;
    fs::rename(&folder, base.path().join("away")).unwrap();
    tells_everything(&mut watcher).await;
    write(base.path(), "away/sub/b.md");
    is_silent(&mut watcher).await;
    write(&folder, "sub/c.md");
    finds(&mut watcher, &folder, &["sub/c.md"]).await;
    write(&folder, "sub/d.md");
    tells(&mut watcher, &["sub/d.md"]).await;

    // Both at once.
    fs::rename(&folder, base.path().join("again")).unwrap();
    fs::rename(base.path().join("away"), &folder).unwrap();
    finds(&mut watcher, &folder, &["sub/a.md", "sub/b.md"]).await;
    write(&folder, "sub/e.md");
    tells(&mut watcher, &["sub/e.md"]).await;

    fs::remove_dir_all(&folder).unwrap();
    tells_everything(&mut watcher).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_parent_that_is_moved_is_told_and_so_is_a_folder_that_comes_later() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("one/two/folder");
    let mut watcher = watch(&folder).await;
    fs::create_dir_all(base.path().join("one/other")).unwrap();
    told(&mut watcher).await;
    write(base.path(), "one/other/a.md");
    is_silent(&mut watcher).await;
    write(&folder, "a.md");
    finds(&mut watcher, &folder, &["a.md"]).await;
    fs::rename(base.path().join("one"), base.path().join("three")).unwrap();
    tells_everything(&mut watcher).await;
    fs::rename(base.path().join("three"), base.path().join("one")).unwrap();
    finds(&mut watcher, &folder, &["a.md"]).await;
    write(&folder, "b.md");
    tells(&mut watcher, &["b.md"]).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_link_to_the_folder_leads_to_where_it_points_now() {
    let base = tempfile::tempdir().unwrap();
    write(base.path(), "one/.gitignore");
    fs::write(base.path().join("one/.gitignore"), "/left/\n").unwrap();
    write(base.path(), "one/left/a.md");
    write(base.path(), "one/a.md");
    write(base.path(), "two/b.md");
    let link = base.path().join("link");
    symlink("one", &link).unwrap();
    let mut watcher = watch(&link).await;
    assert!(!is_watched(&base.path().join("one/left")));
    write(base.path(), "one/c.md");
    tells(&mut watcher, &["c.md"]).await;
    fs::remove_file(&link).unwrap();
    symlink(base.path().join("two"), &link).unwrap();
    finds(&mut watcher, &link, &["b.md"]).await;
    write(base.path(), "two/d.md");
    tells(&mut watcher, &["d.md"]).await;
    fs::rename(base.path().join("two"), base.path().join("three")).unwrap();
    tells_everything(&mut watcher).await;
}

#[tokio::test]
async fn a_folder_that_may_be_read_again_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "shut/a.md");
    let shut = folder.path().join("shut");
    fs::set_permissions(&shut, Permissions::from_mode(0o000)).unwrap();
    let mut watcher = watch(folder.path()).await;
    fs::set_permissions(&shut, Permissions::from_mode(0o700)).unwrap();
    tells_everything(&mut watcher).await;
    write(folder.path(), "shut/b.md");
    tells(&mut watcher, &["shut/b.md"]).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_disk_that_comes_or_goes_is_told() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("a disk");
    write(&folder, "below.md");
    let mut watcher = watch(&folder).await;
    // Only the administrator may mount.
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "tmpfs"]).arg(&folder);
    if !mount.status().is_ok_and(|status| status.success()) {
        return;
    }
    let mounted = Mounted(folder.clone());
    tells_everything(&mut watcher).await;
    write(&folder, "on-it.md");
    tells(&mut watcher, &["on-it.md"]).await;
    drop(mounted);
    finds(&mut watcher, &folder, &["below.md"]).await;
    write(&folder, "more.md");
    tells(&mut watcher, &["more.md"]).await;
}

#[cfg(target_os = "linux")]
struct Mounted(PathBuf);

#[cfg(target_os = "linux")]
impl Drop for Mounted {
    fn drop(&mut self) {
        // Also while a watch holds it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn mounts_near_a_folder_are_those_around_and_below_it() {
    let list = b"1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /media/a\\040disk rw - ext4 b rw\n\
        3 1 8:3 / /media/other rw - ext4 c rw\n4 2 8:4 / /media/a\\040disk/docs/in rw - ext4 d rw\n";
    let near = mounts::lines_near(list, &["/media/a disk/docs".into()]);
    let first: Vec<u8> = near.iter().map(|line| line[0]).collect();
    assert_eq!(first, *b"124");
}
