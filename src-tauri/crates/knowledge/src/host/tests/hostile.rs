//! Folders that mean harm.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Command;

use api::{CollectionActivity, CollectionFileState, SkipReason};

use super::World;
use crate::folder::{Rules, Source};
use crate::Error;

#[tokio::test]
async fn links_pipes_and_odd_names_do_no_harm() {
    let world = World::new();
    let (folder, outside) = (world.folder.path(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret.txt"), "The secret is heliotrope.").unwrap();
    symlink(outside.path(), folder.join("way-out")).unwrap();
    symlink(outside.path().join("secret.txt"), folder.join("secret.txt")).unwrap();
    symlink(folder, folder.join("circle")).unwrap();
    assert!(Command::new("mkfifo")
        .arg(folder.join("pipe.txt"))
        .status()
        .unwrap()
        .success());
    let longest = format!("{}.txt", "n".repeat(251));
    world.write(&longest, "The longest name has a ferry.");
    world.write("line\nbreak [1] \u{202e}txt.md", "A name of two lines has a ferry.");
    let id = world.added().await;
    let states: BTreeMap<String, CollectionFileState> = world
        .knowledge
        .files(&id)
        .await
        .unwrap()
        .into_iter()
        .map(|file| (file.path, file.state))
        .collect();
    let reason = |name: &str| match &states[name] {
        CollectionFileState::LeftOut { reason } => *reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason("secret.txt"), Some(SkipReason::Link));
    assert_eq!(reason("way-out"), Some(SkipReason::Link));
    assert_eq!(reason("circle"), Some(SkipReason::Link));
    assert_eq!(reason("pipe.txt"), Some(SkipReason::Special));
    assert!(world.found(&id, "heliotrope").await.is_empty());
    assert_eq!(world.found(&id, "ferry").await.len(), 2);
    let (passages, _) = world.ask(&id, "ferry", 1000, &[]).await.unwrap();
    assert!(passages.iter().all(|passage| !passage.place().contains('\n')));
}

#[tokio::test]
async fn a_link_in_the_place_of_a_file_is_not_followed_from_a_citation() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let id = world.added().await;
    let (passages, _) = world.ask(&id, "ferry", 1000, &[]).await.unwrap();
    let path = world.folder.path().join("a.txt");
    std::fs::remove_file(&path).unwrap();
    symlink("/etc/hostname", &path).unwrap();
    assert!(world.knowledge.open_passage(&passages[0]).await.is_err());
}

#[tokio::test]
async fn archives_that_unfold_to_gigabytes_are_told_and_the_rest_is_read() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let make = "import sys, zipfile
for name, part in (('bomb.docx', 'word/document.xml'), ('bomb.epub', 'a.xhtml'), ('bomb.xlsx', 'xl/worksheets/sheet1.xml')):
    with zipfile.ZipFile(sys.argv[1] + '/' + name, 'w', zipfile.ZIP_DEFLATED) as file:
        file.writestr('[Content_Types].xml', '<Types/>')
        file.writestr('META-INF/container.xml', '<container/>')
        with file.open(part, 'w') as inside:
            for _ in range(300):
                inside.write(b'<a>' * (1 << 20))
";
    let folder = world.folder.path().to_str().unwrap();
    let made = Command::new("python3").args(["-c", make, folder]).status().unwrap();
    assert!(made.success());
    let id = world.added().await;
    let view = &world.knowledge.view().await.unwrap().collections[0];
    assert_eq!(
        (view.read, view.failed),
        (1, 3),
        "{:?}",
        world.knowledge.files(&id).await
    );
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
}

#[tokio::test]
async fn a_file_that_grows_is_read_once_it_rests() {
    use std::io::Write;
    let world = World::new();
    world.write("log.txt", "The first line has a ferry.\n");
    let path = world.folder.path().join("log.txt");
    let writing = std::thread::spawn(move || {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        for line in 0..200 {
            writeln!(file, "line {line} of a log that grows").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        writeln!(file, "The last line has a zeppelin.").unwrap();
    });
    let id = world.added().await;
    writing.join().unwrap();
    world.knowledge.update(&id).await.unwrap();
    assert_eq!(world.found(&id, "zeppelin").await.len(), 1);
}

#[tokio::test]
async fn a_full_disk_keeps_what_was_read_and_goes_on_after_room_was_made() {
    let world = World::new();
    for number in 0..300 {
        world.write(
            &format!("{number}.txt"),
            format!("Log {number}. {}", "The wind rose. ".repeat(400)),
        );
    }
    let source = Source::Folder(world.folder.path().into());
    let id = world.knowledge.add("Logs", &source, &Rules::default()).await.unwrap();
    let index = world.knowledge.index().await.unwrap();
    index.limit_pages(200).await;
    let error = world.knowledge.update(&id).await.unwrap_err();
    assert!(matches!(error, Error::DiskFull), "{error}");
    let view = &world.knowledge.view().await.unwrap().collections[0];
    let read = view.read;
    assert!(read > 0 && read < 300 && read + view.waiting == 300, "{read}");
    assert!(matches!(view.activity, CollectionActivity::Failed { .. }));
    assert!(!world.found(&id, "wind").await.is_empty(), "what was read is found");
    index.limit_pages(1_000_000).await;
    let updated = world.knowledge.update(&id).await.unwrap();
    assert_eq!((updated.read + updated.kept, updated.failed), (300, 0));
    let view = &world.knowledge.view().await.unwrap().collections[0];
    assert_eq!((view.read, view.waiting, view.passages >= 300), (300, 0, true));
    index.check().await.unwrap();
}

#[tokio::test]
async fn a_hundred_thousand_empty_files_hide_no_other_one() {
    let world = World::new();
    for number in 0..100_000 {
        std::fs::File::create(world.folder.path().join(format!("{number}.txt"))).unwrap();
    }
    world.write("zebra.txt", "The ferry leaves at seven.");
    let begun = std::time::Instant::now();
    let id = world.added().await;
    println!("report: 100,000 empty files took {:?}", begun.elapsed());
    let view = &world.knowledge.view().await.unwrap().collections[0];
    assert_eq!((view.read, view.skipped), (1, 100_000));
    assert_eq!(view.left_out.iter().map(|left| left.count).sum::<u64>(), 100_000);
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
}
