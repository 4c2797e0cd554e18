//! Files that are no index, or not one of this version.

use std::os::unix::fs::PermissionsExt;

use knowledge::{Error, Index};

use crate::House;

#[tokio::test]
async fn only_the_user_may_read_the_index() {
    let house = House::new().await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = house.file();
    assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
    assert_eq!(mode(&file.with_extension("sqlite-wal")), 0o600);
}

#[tokio::test]
async fn a_damaged_index_is_told_and_made_anew_with_its_collections() {
    let house = House::new().await;
    house.write("a.md", "Sencha ".repeat(20_000));
    house.update().await;
    house.index.close().await;
    let mut bytes = std::fs::read(house.file()).unwrap();
    // The pages of the collections come first and stay.
    let half = bytes.len() / 2;
    bytes[half..].fill(0x5a);
    std::fs::write(house.file(), &bytes).unwrap();
    let found = match Index::open(&house.file()).await {
        Ok(index) => {
            let checked = index.check().await;
            index.close().await;
            checked
        }
        Err(error) => Err(error),
    };
    let error = found.unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("anew"), "{error}");

    let index = Index::rebuild(&house.file()).await.unwrap();
    assert_eq!(index.counts(None).await.unwrap(), knowledge::Counts::default());
    let collections = index.collections().await.unwrap();
    assert_eq!(
        (collections.len(), collections[0].id.as_str()),
        (1, house.collection.as_str())
    );
    let house = House { index, ..house };
    assert_eq!(house.update().await.read.len(), 1);
    assert!(!house.found("sencha").await.is_empty());
}

#[tokio::test]
async fn whatever_is_no_index_is_damaged_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["no database".repeat(500), "SQLite format 3\0 cut off".to_owned()] {
        let path = folder.path().join("a.sqlite");
        std::fs::write(&path, text).unwrap();
        let error = Index::open(&path).await.unwrap_err();
        assert!(error.is_damage(), "{error}");
        let index = Index::rebuild(&path).await.unwrap();
        assert!(index.collections().await.unwrap().is_empty());
        index.close().await;
    }
}

#[tokio::test]
async fn an_index_of_a_later_version_is_left_alone() {
    let house = House::new().await;
    house.index.close().await;
    let later = sqlx::SqlitePool::connect(&format!("sqlite://{}", house.file().display()))
        .await
        .unwrap();
    sqlx::query("PRAGMA user_version = 7").execute(&later).await.unwrap();
    later.close().await;
    let opened = Index::open(&house.file()).await;
    assert!(matches!(opened, Err(Error::Newer { found: 7, known: 2 })), "{opened:?}");
}

#[tokio::test]
async fn an_index_of_the_first_version_keeps_what_was_read_and_looks_at_failures_again() {
    let house = House::new().await;
    for name in ["a.md", "b.md"] {
        house.write(name, "Sencha is a green tea.");
    }
    house.write("c.png", b"\x89PNG\r\n\x1a\n and what follows");
    house.update().await;
    house.index.close().await;
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", house.file().display()))
        .await
        .unwrap();
    for sql in [
        "ALTER TABLE files DROP COLUMN is_image",
        "ALTER TABLE files DROP COLUMN described_by",
        "ALTER TABLE files DROP COLUMN description",
        "UPDATE files SET state = 'failed', reason = 'an image cannot be read' WHERE state = 'skipped'",
        "PRAGMA user_version = 1",
    ] {
        sqlx::query(sql).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let index = Index::open(&house.file()).await.unwrap();
    let house = House { index, ..house };
    assert_eq!(house.found("sencha").await.len(), 2);
    let changes = house.update().await;
    let again: Vec<&std::path::Path> = changes.read.iter().map(|read| read.file.path.as_path()).collect();
    assert_eq!((again, changes.kept), (vec![std::path::Path::new("c.png")], 2));
    let counts = house.index.counts(None).await.unwrap();
    assert_eq!((counts.read, counts.images, counts.failed), (2, 1, 0));
}

#[tokio::test]
async fn two_processes_may_open_a_new_index_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    let opened = tokio::join!(Index::open(&path), Index::open(&path), Index::open(&path));
    opened.0.unwrap();
    opened.1.unwrap();
    opened.2.unwrap();
}
