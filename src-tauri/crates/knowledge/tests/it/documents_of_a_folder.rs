//! A folder that changes, and the index that follows it.

use std::path::{Path, PathBuf};

use knowledge::{walk, Counts, Error, FileState, Outcome, Rules, SkipReason, Source, StoredVector, Text};

use crate::{no_text, write, House, RECIPE};

fn counts(read: u64, failed: u64, skipped: u64, passages: u64, text_bytes: u64) -> Counts {
    Counts {
        read,
        waiting: 0,
        failed,
        skipped,
        images: 0,
        passages,
        text_bytes,
    }
}

#[tokio::test]
async fn the_index_follows_the_folder() {
    let house = House::new().await;
    house.write("a.md", "# Green\n\nSencha.\n\n# Black\n\nAssam.\n");
    house.write("sub/b.md", "Oolong.");
    house.write("bad.md", b"\xff\xfe");
    house.write("empty.md", "");
    let sync = house.update().await;
    assert_eq!(
        (sync.read.len(), sync.kept, sync.forgotten.len(), sync.skipped),
        (3, 0, 0, 1)
    );
    let all = house.index.counts(Some(&house.collection)).await.unwrap();
    assert_eq!(all, counts(2, 1, 1, 3, 41));
    let files = house.index.files(&house.collection).await.unwrap();
    let states: Vec<(&str, FileState)> = files
        .iter()
        .map(|file| (file.path.to_str().unwrap(), file.state.clone()))
        .collect();
    let read = |passages, text_bytes| FileState::Read { passages, text_bytes };
    assert_eq!(
        states,
        [
            ("a.md", read(2, 34)),
            ("bad.md", FileState::Failed(no_text())),
            ("empty.md", FileState::Skipped(Some(SkipReason::Empty))),
            ("sub/b.md", read(1, 7)),
        ]
    );
    assert_eq!(house.found("sencha").await, ["# Green\n\nSencha."]);

    // Nothing changed; one file cannot be read again as it could not before.
    let sync = house.update().await;
    assert_eq!((sync.read.len(), sync.kept), (0, 3));

    house.write("a.md", "# Green\n\nMatcha.\n");
    std::fs::remove_file(house.documents().join("sub/b.md")).unwrap();
    house.write("empty.md", "Rooibos");
    house.write("bad.md", "Mate");
    let sync = house.look().await;
    assert_eq!(sync.forgotten, [Path::new("sub/b.md")]);
    assert_eq!(sync.read.len(), 3);
    // The old text is found until the new one is there.
    assert_eq!(house.found("sencha").await.len(), 1);
    assert_eq!(house.found("oolong").await.len(), 0);
    house.update().await;
    assert_eq!(house.found("sencha").await.len(), 0);
    assert_eq!(house.found("matcha rooibos mate").await.len(), 3);
    assert_eq!(house.index.counts(None).await.unwrap(), counts(3, 0, 0, 3, 28));
    house.index.check().await.unwrap();
}

#[tokio::test]
async fn equal_bytes_are_not_read_again_and_another_recipe_reads_all() {
    let house = House::new().await;
    house.write("a.md", "Sencha");
    house.update().await;
    write(&house.documents().join("a.md"), b"Sencha", 30);
    let sync = house.look().await;
    let collection = house.index.collection(&house.collection).await.unwrap();
    let file = &sync.read[0];
    let never = |_: Vec<u8>, _: &str| -> Result<Text, protocol::Error> { unreachable!("it is known") };
    let outcome = knowledge::prepare(
        &collection.source,
        &collection.rules,
        &file.file,
        file.known,
        &never,
        crate::SIZE,
    );
    assert!(matches!(outcome, Outcome::Same { .. }), "{outcome:?}");
    let path = &file.file.path;
    assert!(house
        .index
        .store(&house.collection, path, &outcome, RECIPE)
        .await
        .unwrap());
    assert_eq!(house.look().await.kept, 1);
    assert_eq!(house.found("sencha").await.len(), 1);

    let found = walk(&collection.source, &collection.rules).unwrap();
    let sync = house.index.sync(&house.collection, &found, "another").await.unwrap();
    assert_eq!((sync.read.len(), sync.read[0].known), (1, None));
}

#[tokio::test]
async fn a_collection_is_forgotten_with_all_that_was_read() {
    let house = House::new().await;
    house.write("a.md", "Sencha");
    house.update().await;
    let other = Source::Files(vec![house.documents().join("a.md"), PathBuf::from("/gone/b.md")]);
    let other = house
        .index
        .add_collection("Single", &other, &Rules::default())
        .await
        .unwrap();
    let collection = house.index.collection(&other).await.unwrap();
    let found = walk(&collection.source, &collection.rules).unwrap();
    let sync = house.index.sync(&other, &found, RECIPE).await.unwrap();
    assert_eq!((sync.read.len(), sync.skipped), (1, 1));

    house.index.remove_collection(&house.collection).await.unwrap();
    let again = house.index.remove_collection(&house.collection).await;
    assert!(matches!(again, Err(Error::NotFound("collection"))));
    assert_eq!(house.found("sencha").await.len(), 0);
    let counts = house.index.counts(None).await.unwrap();
    assert_eq!(
        (counts.read, counts.waiting, counts.skipped, counts.passages),
        (0, 1, 1, 0)
    );
    let gone = Outcome::Skipped(SkipReason::Unreadable);
    assert!(!house
        .index
        .store(&house.collection, Path::new("a.md"), &gone, RECIPE)
        .await
        .unwrap());
    assert!(matches!(
        house.index.sync(&house.collection, &found, RECIPE).await,
        Err(Error::NotFound("collection"))
    ));
    house.index.check().await.unwrap();
}

#[tokio::test]
async fn files_of_a_folder_that_cannot_be_listed_stay() {
    let house = House::new().await;
    house.write("sub/a.md", "Sencha");
    house.write("b.md", "Oolong");
    house.update().await;
    let collection = house.index.collection(&house.collection).await.unwrap();
    let mut found = walk(&collection.source, &collection.rules).unwrap();
    found.files.clear();
    found.unlisted.push("sub".into());
    let sync = house.index.sync(&house.collection, &found, RECIPE).await.unwrap();
    assert_eq!(sync.forgotten, [Path::new("b.md")]);
    assert_eq!(house.found("sencha oolong").await, ["Sencha"]);
}

#[tokio::test]
async fn vectors_go_with_their_passages() {
    let house = House::new().await;
    house.write("a.md", "Sencha");
    house.write("b.md", "Oolong");
    house.update().await;
    let open = house.index.without_vectors("m", 0, 10).await.unwrap();
    assert_eq!(
        open.iter().map(|(_, _, text)| text.as_str()).collect::<Vec<_>>(),
        ["Sencha", "Oolong"]
    );
    let vector = |passage, bytes: &[u8]| StoredVector {
        passage,
        vector: bytes.to_vec(),
    };
    let both = [
        vector(open[0].0, b"1234"),
        vector(open[1].0, b"5678"),
        vector(999, b"1234"),
    ];
    assert_eq!(house.index.store_vectors("m", 2, &both).await.unwrap(), 2);
    let wrong = house.index.store_vectors("m", 3, &both).await;
    assert!(
        matches!(
            wrong,
            Err(Error::Vector {
                bytes: 4,
                dimensions: 3
            })
        ),
        "{wrong:?}"
    );
    assert!(house.index.store_vectors("m", 0, &both).await.is_err());
    let mine = [house.collection.as_str()];
    assert_eq!(house.index.vectors(&mine, ("m", 2), 0, 9).await.unwrap(), both[..2]);
    assert_eq!(
        house.index.vectors(&mine, ("m", 2), open[0].0, 9).await.unwrap(),
        both[1..2]
    );
    assert!(house.index.vectors(&mine, ("n", 2), 0, 9).await.unwrap().is_empty());
    assert!(house.index.vectors(&mine, ("m", 4), 0, 9).await.unwrap().is_empty());
    assert!(house.index.vectors(&[], ("m", 2), 0, 9).await.unwrap().is_empty());

    std::fs::remove_file(house.documents().join("a.md")).unwrap();
    house.write("b.md", "Oolong!");
    house.update().await;
    assert!(house.index.vectors(&mine, ("m", 2), 0, 9).await.unwrap().is_empty());
    let open = house.index.without_vectors("m", 0, 10).await.unwrap();
    assert_eq!(open.len(), 1);
    assert!(open[0].0 > both[1].passage, "a number is never used twice");
    house
        .index
        .store_vectors("m", 4, &[vector(open[0].0, b"1234")])
        .await
        .unwrap();
    assert_eq!(house.index.forget_other_vectors("n").await.unwrap(), 1);
}

#[tokio::test]
async fn documents_are_read_as_the_room_of_documents_reads_them() {
    let house = House::new().await;
    house.write("page.html", "<title>Tea</title><h2>Brewing</h2><p>Pour it.</p>");
    house.write("main.rs", "fn main() {\n    steep();\n}\n");
    let sync = house.look().await;
    let collection = house.index.collection(&house.collection).await.unwrap();
    let reader = |bytes: Vec<u8>, name: &str| Ok(Text::of(documents::read(bytes, name)?, name));
    for file in &sync.read {
        let outcome = knowledge::prepare(
            &collection.source,
            &collection.rules,
            &file.file,
            file.known,
            &reader,
            crate::SIZE,
        );
        house
            .index
            .store(&house.collection, &file.file.path, &outcome, RECIPE)
            .await
            .unwrap();
    }
    let hits = house.index.search(&[&house.collection], "pour", 5).await.unwrap();
    assert_eq!(hits[0].passage.headings, "Brewing");
    assert_eq!(house.found("steep").await.len(), 1);
}
