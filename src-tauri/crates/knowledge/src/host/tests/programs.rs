use protocol::DocumentSearch;

use super::*;

async fn searched(
    world: &World,
    id: &str,
    most_tokens: u32,
    given: &[QuotedPassage],
    most: usize,
) -> Vec<QuotedPassage> {
    let request = PassageRequest {
        collections: vec![id.to_owned()],
        chat: None,
        question: "When does the ferry leave?".into(),
        most_tokens,
        given: given.to_vec(),
        first_number: given.len() as u32 + 1,
    };
    DocumentSearch::search(&world.knowledge, request, most).await.unwrap()
}

#[tokio::test]
async fn a_program_finds_passages_once_and_learns_no_folder() {
    let world = World::new();
    world.write("deep/a.md", "# Harbor\n\nThe ferry leaves at seven.");
    world.write("b.txt", "The ferry is green, and it will leave.");
    world.write("c.txt", "The bakery is closed.");
    let folder = world.added().await;
    let first = searched(&world, &folder, 1000, &[], 1).await;
    assert_eq!(first.len(), 1);
    let rest = searched(&world, &folder, 1000, &first, 9).await;
    assert_eq!((rest.len(), rest[0].number), (1, 2));
    assert!(!rest[0].is_same(&first[0]));
    assert!(searched(&world, &folder, 20, &[], 9).await.is_empty(), "nothing fits");

    let file = world.folder.path().join("deep/a.md");
    let source = Source::Files(vec![file]);
    let files = world.knowledge.add("File", &source, &Rules::default()).await.unwrap();
    world.knowledge.update(&files).await.unwrap();
    let found = searched(&world, &files, 1000, &[], 9).await;
    let names: Vec<&str> = found.iter().map(|passage| passage.file.as_str()).collect();
    assert_eq!(names, ["a.md"]);
    assert!(
        searched(&world, &files, 1000, &found, 9).await.is_empty(),
        "it was given"
    );

    let listed = DocumentSearch::collections(&world.knowledge).await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|one| (one.id.as_str(), one.name.as_str(), one.read))
        .collect();
    assert_eq!(listed, [(folder.as_str(), "Notes", 3), (files.as_str(), "File", 1)]);
}
