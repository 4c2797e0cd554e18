mod engine;
mod honesty;
#[cfg(unix)]
mod hostile;
mod images;
mod own_chats;
mod pages;
mod programs;
mod reranking;

use std::sync::atomic::Ordering;

use api::ModelShelf;
use protocol::{Content, Coverage, PassageRequest, PassageSource, QuotedPassage, ReadingRequest};

use self::engine::{Shelf, WordEngine};
use super::*;

struct World {
    folder: tempfile::TempDir,
    data: tempfile::TempDir,
    engine: Arc<WordEngine>,
    knowledge: Knowledge,
}

impl World {
    fn new() -> Self {
        Self::with(Shelf::default())
    }

    fn with(shelf: Shelf) -> Self {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let engine = Arc::new(WordEngine::default());
        let knowledge = Knowledge::new(&data.path().join("documents.sqlite"), engine.clone(), Arc::new(shelf));
        Self {
            folder,
            data,
            engine,
            knowledge,
        }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        // A time of change counts only if it lies some seconds back.
        let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        std::fs::File::open(&path).unwrap().set_modified(earlier).unwrap();
    }

    async fn added(&self) -> String {
        let source = Source::Folder(self.folder.path().into());
        let id = self.knowledge.add("Notes", &source, &Rules::default()).await.unwrap();
        self.knowledge.update(&id).await.unwrap();
        id
    }

    async fn found(&self, id: &str, question: &str) -> Vec<String> {
        let found = self.knowledge.search(&[id], question, 10).await.unwrap();
        found.passages.into_iter().map(|passage| passage.text).collect()
    }

    async fn ask(&self, id: &str, question: &str, most: u32, given: &[QuotedPassage]) -> Option<Answer> {
        let request = PassageRequest {
            collections: vec![id.to_owned()],
            chat: None,
            question: question.into(),
            most_tokens: most,
            given: given.to_vec(),
            first_number: given.len() as u32 + 1,
        };
        match self.knowledge.passages(request).await.unwrap()? {
            Content::Passages { passages, coverage } => Some((passages, coverage)),
            other => panic!("{other:?}"),
        }
    }
}

type Answer = (Vec<QuotedPassage>, Coverage);

/// A text of this many paragraphs, each with its number in words of its own.
fn paragraphs(name: &str, count: usize) -> String {
    let filler = "Tides rise and fall with the moon, and boats rise and fall with them. ".repeat(12);
    let paragraph = |number| format!("The code of {name} number {number} is {name}{number}.\n{filler}\n\n");
    (0..count).map(paragraph).collect()
}

#[tokio::test]
async fn a_folder_is_read_and_its_changes_after_it() {
    let world = World::new();
    assert!(world.knowledge.view().await.unwrap().collections.is_empty());
    assert!(
        !world.data.path().join("documents.sqlite").exists(),
        "nobody asked for an index"
    );
    world.write("a.md", "# Harbor\n\nThe ferry leaves at seven.");
    world.write("deep/b.txt", "The lighthouse is green.");
    let id = world.added().await;
    assert!(world.found(&id, "When does the ferry leave?").await[0].contains("seven"));
    world.write("a.md", "# Harbor\n\nThe ferry leaves at nine o'clock.");
    std::fs::remove_file(world.folder.path().join("deep/b.txt")).unwrap();
    world.write("c.txt", "The bakery is closed.");
    let updated = world.knowledge.update(&id).await.unwrap();
    assert_eq!((updated.read, updated.forgotten, updated.kept), (2, 1, 0));
    assert!(world.found(&id, "ferry").await[0].contains("nine"));
    assert!(world.found(&id, "lighthouse").await.is_empty());
    let view = &world.knowledge.view().await.unwrap().collections[0];
    assert_eq!(
        (view.read, view.passages, &view.activity),
        (2, 2, &CollectionActivity::Idle)
    );
    let again = world.knowledge.update(&id).await.unwrap();
    assert_eq!((again.read, again.kept), (0, 2));
}

#[tokio::test]
async fn what_fits_is_given_whole_and_once() {
    let world = World::new();
    world.write("a.md", "# Harbor\n\nThe ferry leaves at seven.");
    world.write("b.txt", "The lighthouse is green.");
    world.write("empty.txt", "");
    let id = world.added().await;
    let (passages, coverage) = world.ask(&id, "How many files are there?", 1000, &[]).await.unwrap();
    assert!(coverage.is_whole());
    assert_eq!(
        (coverage.passages, coverage.files, coverage.of_files, coverage.unread),
        (2, 2, 2, 1)
    );
    let places: Vec<String> = passages.iter().map(QuotedPassage::place).collect();
    assert_eq!(places, ["a.md, lines 1 to 3, Harbor", "b.txt, line 1"]);
    assert!(world.ask(&id, "And the ferry?", 1000, &passages).await.is_none());
    world.write("b.txt", "The lighthouse is red.");
    world.knowledge.update(&id).await.unwrap();
    let (changed, coverage) = world.ask(&id, "What color?", 1000, &passages).await.unwrap();
    assert_eq!(
        (changed.len(), changed[0].number, &*changed[0].text),
        (1, 3, "The lighthouse is red.")
    );
    assert_eq!((coverage.passages, coverage.of_passages), (2, 2));
}

#[tokio::test]
async fn of_much_the_best_is_given_and_the_extent_is_exact() {
    let world = World::new();
    for file in 0..6 {
        world.write(&format!("{file}.txt"), paragraphs(&format!("pier{file}"), 8));
    }
    let id = world.added().await;
    let view = world.knowledge.view().await.unwrap();
    let of = view.collections[0].passages as u32;
    assert!(of >= 48, "{of}");
    let (passages, coverage) = world
        .ask(&id, "What is the code of pier3 number 5?", 900, &[])
        .await
        .unwrap();
    assert!(passages[0].text.contains("pier35"), "{}", passages[0].text);
    let files: std::collections::BTreeSet<_> = passages.iter().map(|passage| &passage.file).collect();
    let expected = Coverage {
        passages: passages.len() as u32,
        of_passages: of,
        files: files.len() as u32,
        of_files: 6,
        unread: 0,
    };
    assert_eq!(coverage, expected);
    assert!((2..6).contains(&passages.len()), "{}", passages.len());
    let (next, coverage) = world
        .ask(&id, "What is the code of pier3 number 5?", 900, &passages)
        .await
        .unwrap();
    assert!(next.iter().all(|new| !passages.iter().any(|old| old.is_same(new))));
    assert_eq!(next[0].number, passages.len() as u32 + 1);
    assert_eq!(coverage.passages as usize, passages.len() + next.len());
}

#[tokio::test]
async fn meaning_is_searched_once_there_are_embeddings() {
    let world = World::new();
    world.write("a.txt", paragraphs("pier", 9));
    world.write("b.txt", "Boats that leave: the ferry, at seven.");
    let id = world.added().await;
    assert!(!world.knowledge.search(&[&id], "ferry", 3).await.unwrap().by_meaning);
    world.knowledge.choose_model(Some("words".into()));
    let embedded = world.knowledge.embed().await.unwrap();
    let view = world.knowledge.view().await.unwrap();
    assert_eq!(
        (view.embeddings.done, view.embeddings.of),
        (embedded, view.collections[0].passages)
    );
    let found = world
        .knowledge
        .search(&[&id], "ferry seven leave boats that the at", 3)
        .await
        .unwrap();
    assert!(found.by_meaning && found.passages[0].text.contains("ferry"));
    // One that comes, and one that goes.
    world.write("c.txt", "Zebras graze inland.");
    std::fs::remove_file(world.folder.path().join("b.txt")).unwrap();
    world.knowledge.update(&id).await.unwrap();
    assert_eq!(world.knowledge.embed().await.unwrap(), 1);
    let found = world.found(&id, "zebras graze inland").await;
    assert!(found[0].contains("Zebras"), "{found:?}");
    assert!(found.iter().all(|text| !text.contains("ferry")));
}

#[tokio::test]
async fn another_model_takes_the_place_of_the_first_and_a_broken_one_is_told() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let id = world.added().await;
    world.knowledge.choose_model(Some("first".into()));
    assert_eq!(world.knowledge.embed().await.unwrap(), 1);
    world.engine.is_broken.store(true, Ordering::SeqCst);
    world.knowledge.choose_model(Some("second".into()));
    assert_eq!(world.knowledge.embed().await.unwrap(), 0);
    let problem = world.knowledge.view().await.unwrap().embeddings.problem;
    assert_eq!(problem.as_deref(), Some("a file of the model is missing"));
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
    world.engine.is_broken.store(false, Ordering::SeqCst);
    assert_eq!(world.knowledge.embed().await.unwrap(), 1);
    let index = world.knowledge.index().await.unwrap();
    let models: Vec<String> = index
        .vector_models()
        .await
        .unwrap()
        .into_iter()
        .map(|(model, ..)| model)
        .collect();
    assert_eq!(models, ["second"]);
    assert_eq!(world.knowledge.view().await.unwrap().embeddings.problem, None);
}

#[tokio::test]
async fn the_earlier_model_is_searched_until_another_one_has_as_many_vectors() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    world.write("b.txt", "The lighthouse is green.");
    let id = world.added().await;
    let knowledge = &world.knowledge;
    let searched = async || knowledge.view().await.unwrap().embeddings.searched;
    assert_eq!(searched().await, None);
    assert!(knowledge.choose_model(Some("first".into())));
    assert_eq!(knowledge.embed().await.unwrap(), 2);
    assert!(knowledge.choose_model(Some("second".into())) && !knowledge.choose_model(Some("second".into())));
    let view = knowledge.view().await.unwrap().embeddings;
    assert_eq!((view.model.as_deref(), view.done, view.of), (Some("second"), 0, 2));
    assert_eq!(view.searched.as_deref(), Some("first"));
    // One of two passages has a vector of the new model: it finds no more than half.
    let index = knowledge.index().await.unwrap();
    let (passage, ..) = index.without_vectors("second", 0, 1).await.unwrap().remove(0);
    let vector = crate::vectors::encode(&[1.0; 64]).unwrap();
    let vectors = [crate::index::StoredVector { passage, vector }];
    index.store_vectors("second", 64, &vectors).await.unwrap();
    let found = knowledge.search(&[&id], "leaves ferry at seven the", 2).await.unwrap();
    assert!(found.by_meaning && found.passages[0].text.contains("ferry"));
    let asked = world.engine.models.lock().unwrap().last().cloned();
    assert_eq!(
        asked.as_deref(),
        Some("first"),
        "the question is embedded as its passages are"
    );
    assert_eq!(knowledge.embed().await.unwrap(), 1);
    assert_eq!(searched().await.as_deref(), Some("second"));
    knowledge.search(&[&id], "ferry", 2).await.unwrap();
    let asked = world.engine.models.lock().unwrap().last().cloned();
    assert_eq!(asked.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_passage_that_is_longer_than_the_context_is_embedded_as_far_as_it_fits() {
    let world = World::new();
    world.write("a.txt", "lighthouse ".repeat(200));
    world.added().await;
    world.knowledge.choose_model(Some("words".into()));
    let passages = world.knowledge.view().await.unwrap().collections[0].passages;
    assert_eq!(world.knowledge.embed().await.unwrap(), passages);
}

#[tokio::test]
async fn a_paused_collection_is_left_alone_and_found() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let id = world.added().await;
    world.knowledge.pause(&id, true).await.unwrap();
    world.write("b.txt", "The ferry is blue.");
    assert!(world.knowledge.update(&id).await.unwrap().is_stopped);
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
    let activity = world.knowledge.view().await.unwrap().collections[0].activity.clone();
    assert_eq!(activity, CollectionActivity::Paused);
    world.knowledge.pause(&id, false).await.unwrap();
    assert_eq!(world.knowledge.update(&id).await.unwrap().read, 1);
    assert_eq!(world.found(&id, "ferry").await.len(), 2);
}

#[tokio::test]
async fn a_folder_that_is_gone_is_told_and_what_was_read_is_found() {
    let world = World::new();
    world.write("sub/a.txt", "The ferry leaves at seven.");
    let source = Source::Folder(world.folder.path().join("sub"));
    let id = world.knowledge.add("Notes", &source, &Rules::default()).await.unwrap();
    world.knowledge.update(&id).await.unwrap();
    std::fs::rename(world.folder.path().join("sub"), world.folder.path().join("elsewhere")).unwrap();
    let error = world.knowledge.update(&id).await.unwrap_err();
    assert!(matches!(error, Error::NoFolder { .. }), "{error}");
    let view = world.knowledge.view().await.unwrap();
    let CollectionActivity::Failed { error } = &view.collections[0].activity else {
        panic!("{view:?}");
    };
    assert_eq!(error.reason, Some(protocol::Reason::FolderGone));
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
    std::fs::rename(world.folder.path().join("elsewhere"), world.folder.path().join("sub")).unwrap();
    assert_eq!(world.knowledge.update(&id).await.unwrap().kept, 1);
    let nowhere = Source::Folder("/no/such/folder".into());
    let none = world.knowledge.add("No", &nowhere, &Rules::default()).await;
    assert!(matches!(none, Err(Error::NoFolder { .. })));
}

#[tokio::test]
async fn a_damaged_index_is_made_anew_with_its_collections() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let id = world.added().await;
    world.knowledge.shut_down().await;
    let path = world.data.path().join("documents.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end / 2..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let knowledge = Knowledge::new(&path, world.engine.clone(), Arc::new(Shelf::default()));
    knowledge.rebuild().await.unwrap();
    let found = knowledge.search(&[&id], "ferry", 3).await.unwrap();
    assert_eq!(found.passages.len(), 1);
}

#[tokio::test]
async fn a_citation_opens_its_file_with_the_passage_in_it() {
    let world = World::new();
    world.write(
        "a.md",
        "# Harbor\n\nThe ferry leaves at seven.\n\n# Town\n\nThe bakery is closed.\n",
    );
    let id = world.added().await;
    let (passages, _) = world.ask(&id, "bakery", 1000, &[]).await.unwrap();
    let bakery = passages.iter().find(|passage| passage.text.contains("bakery")).unwrap();
    let shown = world.knowledge.open_passage(bakery).await.unwrap();
    assert!(
        shown.before.ends_with("seven.\n\n") && shown.passage == "# Town\n\nThe bakery is closed.",
        "{shown:?}"
    );
    assert_eq!((shown.first_line, shown.is_changed), (5, false));
    world.write("a.md", "Nothing is left.");
    assert!(world.knowledge.open_passage(bakery).await.unwrap().is_changed);
    let mut outside = bakery.clone();
    outside.file = "../../etc/passwd".into();
    assert!(matches!(
        world.knowledge.open_passage(&outside).await,
        Err(Error::NotFound(_))
    ));
}

#[tokio::test]
async fn a_followed_folder_is_read_as_it_changes() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let source = Source::Folder(world.folder.path().into());
    let id = world.knowledge.add("Notes", &source, &Rules::default()).await.unwrap();
    world.knowledge.follow(&id);
    let found = async |words: &str, count: usize| {
        for _ in 0..600 {
            if world.found(&id, words).await.len() == count {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{words} is found {:?}", world.found(&id, words).await);
    };
    found("ferry", 1).await;
    world.write("deep/b.txt", "The lighthouse is green.");
    found("lighthouse", 1).await;
    std::fs::remove_file(world.folder.path().join("a.txt")).unwrap();
    found("ferry", 0).await;
    world.knowledge.remove(&id).await.unwrap();
    assert!(world.knowledge.collections().await.unwrap().is_empty());
}

#[tokio::test]
async fn reading_everything_finds_every_entry_whatever_the_size() {
    for (files, entries) in [(1, 1), (3, 7), (12, 9), (40, 3)] {
        let world = World::new();
        for file in 0..files {
            let filler = "Boats rise and fall with the tide. ".repeat(20);
            let entry = |number| format!("Entry {file}-{number} of the log.\n\n{filler}\n\n");
            world.write(&format!("{file}.txt"), (0..entries).map(entry).collect::<String>());
        }
        let id = world.added().await;
        let request = ReadingRequest {
            collections: vec![id.clone(), "gone".into()],
            question: "Count the entries.".into(),
            model: Shelf::default().resolve("reader").unwrap(),
            most_tokens: 600,
            first_number: 5,
        };
        let cost = world.knowledge.reading_cost(&[&id], request.most_tokens).await.unwrap();
        let passages = world.knowledge.view().await.unwrap().collections[0].passages;
        assert_eq!(u64::from(cost.passages), passages);
        assert!(
            cost.tokens <= u64::from(cost.parts) * 600 && cost.note_tokens >= 400,
            "{cost:?}"
        );
        let tell: protocol::TellProgress = Arc::new(drop);
        let read = world.knowledge.read_through(&request, &tell).await.unwrap();
        let found: std::collections::BTreeSet<&str> = read
            .notes
            .lines()
            .filter_map(|line| line.split(" of the log").next())
            .collect();
        assert_eq!(found.len(), files * entries, "{}", read.notes);
        assert!(read.coverage.is_whole() && read.coverage.of_files as usize == files);
        assert_eq!(read.parts, cost.parts);
        assert!(world.engine.asked.load(Ordering::SeqCst) >= cost.parts as usize);
        assert!(read
            .passages
            .iter()
            .all(|passage| passage.number >= 5 && passage.text.contains("Entry")));
        let cited: usize = read
            .passages
            .iter()
            .map(|passage| passage.text.matches("Entry").count())
            .sum();
        assert_eq!(cited, files * entries);
        // The notes and passages that a question or a tool is given fit its context, whatever the notes cite.
        let given = PassageSource::read_all(&world.knowledge, request, tell).await.unwrap();
        let size: usize = given
            .passages
            .iter()
            .map(|passage| super::size::quoted_tokens(&passage.text))
            .sum();
        assert!(size <= 600 && given.coverage.is_whole(), "{size}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_watched_is_no_failure_and_is_told() {
    let world = World::new();
    world.write("a.txt", "The ferry leaves at seven.");
    let id = world.added().await;
    let knowledge = &world.knowledge;
    let shown = async || knowledge.view().await.unwrap().collections.remove(0);
    assert_eq!(shown().await.unwatched, None);
    let limit = Error::WatchLimit {
        setting: "fs.inotify.max_user_watches",
    };
    knowledge.set_unwatched(&id, following::unwatched(&limit));
    let view = shown().await;
    let told = Unwatched::WatchLimit {
        setting: "fs.inotify.max_user_watches".into(),
    };
    assert_eq!((view.unwatched, view.activity), (Some(told), CollectionActivity::Idle));
    assert_eq!(following::unwatched(&Error::Damaged), None);
    // It is taken back once the folder is watched.
    knowledge.follow(&id);
    for _ in 0..600 {
        if shown().await.unwatched.is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the folder is watched and nobody says so");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_says_why_by_a_reason() {
    let world = World::new();
    world.write("drawing.dwg", "AC1032\0\0\0");
    let id = world.added().await;
    let file = world.knowledge.files(&id).await.unwrap().remove(0);
    let api::CollectionFileState::Failed { error } = file.state else {
        panic!("{file:?}");
    };
    assert_eq!(error.reason, Some(protocol::Reason::FileKind));
    assert!(
        error.arguments.contains_key("kind") && !error.message.is_empty(),
        "{error:?}"
    );
}
