//! Passages by their words.

use crate::House;

async fn tea() -> House {
    let house = House::new().await;
    house.write(
        "guide.md",
        "# Guide\n\n## Installation\n\nRun the setup.\n\n## Café\n\nDer Kaffee heißt crème brûlée.\n",
    );
    house.write(
        "other.md",
        "The installation was long, and people talked about the installation for years.\n",
    );
    house.write("日本.md", "東京は日本の首都です。\n\n京都は古い都です。\n");
    // A word counts little if every second passage has it.
    for number in 0..9 {
        house.write(&format!("{number}.md"), format!("Nothing of all {number}."));
    }
    house.update().await;
    house
}

#[tokio::test]
async fn headings_and_names_count_more_than_texts() {
    let house = tea().await;
    let hits = house
        .index
        .search(&[&house.collection], "How does the install work?", 9)
        .await
        .unwrap();
    assert_eq!(hits[0].passage.headings, "Guide › Installation");
    assert_eq!(hits[0].passage.path.to_str(), Some("guide.md"));
    assert_eq!(hits[0].passage.lines, (1, 5));
    assert_eq!(hits[0].passage.page, None);
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert_eq!(house.found("other").await.len(), 1);
}

#[tokio::test]
async fn accents_and_signs_are_found_as_in_chats() {
    let house = tea().await;
    assert_eq!(house.found("CREME").await.len(), 1);
    assert_eq!(house.found("cafe\u{301}").await.len(), 1);
    assert_eq!(house.found("東京の人口は？").await.len(), 1);
    assert_eq!(house.found("都").await.len(), 1);
    assert!(house.found("?! \"").await.is_empty());
    assert!(house.found("\" OR * NEAR( {text}: \u{0}").await.is_empty());
    assert_eq!(house.found("\"run the setup\"").await.len(), 1);
    assert_eq!(house.found("is it running").await.len(), 1);
}

#[tokio::test]
async fn other_collections_are_not_searched_and_ids_keep_their_order() {
    let house = tea().await;
    assert!(house.index.search(&[], "setup", 9).await.unwrap().is_empty());
    assert!(house.index.search(&["other"], "setup", 9).await.unwrap().is_empty());
    let hits = house
        .index
        .search(&[&house.collection], "installation", 9)
        .await
        .unwrap();
    assert_eq!(hits.len(), 2);
    let ids = [hits[1].passage.id, 12345, hits[0].passage.id];
    let passages = house.index.passages(&ids).await.unwrap();
    assert_eq!(passages, [hits[1].passage.clone(), hits[0].passage.clone()]);
    let text = std::fs::read_to_string(house.documents().join("guide.md")).unwrap();
    let bytes = hits[0].passage.bytes.clone();
    assert_eq!(text[bytes.start as usize..bytes.end as usize], hits[0].passage.text);
}
