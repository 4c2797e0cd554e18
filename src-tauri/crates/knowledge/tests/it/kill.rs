//! A process that is killed while it writes.

use std::process::{Command, Stdio};
use std::time::Duration;

use knowledge::{Index, Outcome, Rules, Source};

use crate::{as_markdown, House, RECIPE, SIZE};

const FILE: &str = "PONDER_KNOWLEDGE_KILLED";

/// The process that is killed: reads all documents again and again.
#[tokio::test]
#[ignore = "a process of the test beside it"]
async fn works_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let index = Index::open(file.as_ref()).await.unwrap();
    let collection = index.collections().await.unwrap().remove(0);
    for round in 0_u64.. {
        let found = knowledge::walk(&collection.source, &collection.rules).unwrap();
        let recipe = round.to_string();
        let sync = index.sync(&collection.id, &found, &recipe).await.unwrap();
        for file in sync.read {
            let outcome = knowledge::prepare(
                &collection.source,
                &Rules::default(),
                &file.file,
                None,
                &as_markdown,
                SIZE,
            );
            index
                .store(&collection.id, &file.file.path, &outcome, &recipe)
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn nothing_is_there_twice_or_by_half_after_a_kill() {
    let house = House::new().await;
    for file in 0..20 {
        let text: String = (0..200)
            .map(|line| format!("## Heading {line}\n\nword{file} and others.\n\n"))
            .collect();
        house.write(&format!("{file}.md"), text);
    }
    for round in 0..6_u64 {
        let mut worker = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::works_until_it_is_killed", "--ignored"])
            .env(FILE, house.file())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(150 + 170 * round)).await;
        worker.kill().unwrap();
        worker.wait().unwrap();
        whole(&house).await;
    }
    // Every file is read in the end.
    house.update().await;
    let counts = house.index.counts(None).await.unwrap();
    assert_eq!((counts.read, counts.waiting, counts.passages), (20, 0, 4000));
    assert_eq!(
        house
            .index
            .search(&[&house.collection], "word7", 1000)
            .await
            .unwrap()
            .len(),
        200
    );
    // And a file that is stored twice is there once.
    let sync = house.look().await;
    assert_eq!((sync.read.len(), sync.kept), (0, 20));
    let source = Source::Folder(house.documents());
    let found = knowledge::walk(&source, &Rules::default()).unwrap();
    for _ in 0..2 {
        let outcome = knowledge::prepare(&source, &Rules::default(), &found.files[0], None, &as_markdown, SIZE);
        assert!(matches!(outcome, Outcome::Read { .. }));
        house
            .index
            .store(&house.collection, &found.files[0].path, &outcome, RECIPE)
            .await
            .unwrap();
    }
    assert_eq!(house.index.counts(None).await.unwrap(), counts);
    whole(&house).await;
}

/// Checks that rows, counts and words say the same.
async fn whole(house: &House) {
    house.index.check().await.unwrap();
    let database = sqlx::SqlitePool::connect(&format!("sqlite://{}", house.file().display()))
        .await
        .unwrap();
    let number = |sql: &'static str| {
        let database = database.clone();
        async move { sqlx::query_as::<_, (i64,)>(sql).fetch_one(&database).await.unwrap().0 }
    };
    let passages = number("SELECT count(*) FROM passages").await;
    assert_eq!(number("SELECT count(*) FROM words").await, passages);
    assert_eq!(
        number("SELECT count(*) FROM words WHERE words MATCH 'heading'").await,
        passages
    );
    assert_eq!(number("SELECT coalesce(sum(passages), 0) FROM files").await, passages);
    let wrong = "SELECT count(*) FROM files f
                  WHERE passages <> (SELECT count(*) FROM passages p WHERE p.file = f.id)
                     OR state = 'read' AND passages <> 200";
    assert_eq!(number(wrong).await, 0);
    database.close().await;
}
