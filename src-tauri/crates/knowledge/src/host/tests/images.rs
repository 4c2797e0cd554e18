//! Images of a collection: listed, read by a model on demand, kept and forgotten.

use std::time::Duration;

use api::{CollectionFileState, SkipReason};
use protocol::{Error as Failure, ErrorCode, ImageBytes, Priority, Sampling, Thinking};

use super::*;

/// A JPEG file of one color.
fn image(shade: u8) -> ImageBytes {
    let (width, height) = (48, 32);
    let image = media::DecodedImage {
        width,
        height,
        rgb: vec![shade; (width * height * 3) as usize],
        original: (width, height),
        animated: false,
    };
    media::thumbnail(&image, width).unwrap().into()
}

impl World {
    /// Writes an image, of which the engine says this.
    fn write_image(&self, name: &str, shade: u8, response: protocol::Result<String>) {
        let bytes = image(shade);
        self.engine.images.lock().unwrap().insert(bytes.id(), response);
        self.write(name, &*bytes);
    }

    async fn shown(&self) -> api::CollectionView {
        self.knowledge.view().await.unwrap().collections.remove(0)
    }

    async fn states(&self, id: &str) -> Vec<(String, CollectionFileState)> {
        let files = self.knowledge.files(id).await.unwrap();
        files.into_iter().map(|file| (file.path, file.state)).collect()
    }

    /// The requests that the engine was sent with an image.
    fn requests(&self) -> usize {
        self.engine.shown.lock().unwrap().len()
    }
}

async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..4000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never is so");
}

const UNREAD: CollectionFileState = CollectionFileState::LeftOut {
    reason: Some(SkipReason::Image),
};

/// A world with a text and three images, two of which the engine describes.
async fn harbor() -> (World, String) {
    let world = World::new();
    world.write("a.txt", "The lighthouse is green.");
    world.write_image("b.jpg", 10, Ok("FERRY 7:15\n\nA sign of a ferry at a pier.".into()));
    let full = Failure::new(ErrorCode::ContextFull, "the image does not fit this model's context");
    world.write_image("c.png", 20, Err(full));
    world.write_image("deep/d.jpg", 30, Ok(" A zebra\u{c} on a beach.\n".into()));
    let id = world.added().await;
    (world, id)
}

#[tokio::test]
async fn images_are_listed_unread_and_an_update_asks_no_model() {
    let (world, id) = harbor().await;
    let states = world.states(&id).await;
    assert_eq!(states[0].1, CollectionFileState::Read { passages: 1 });
    assert_eq!(
        states[1..],
        ["b.jpg", "c.png", "deep/d.jpg"].map(|name| (name.to_owned(), UNREAD))
    );
    let view = world.shown().await;
    assert_eq!((view.read, view.images, view.failed, view.skipped), (1, 3, 0, 0));
    assert_eq!((view.image_reading, world.requests()), (None, 0));
    let again = world.knowledge.update(&id).await.unwrap();
    assert_eq!((again.kept, again.images, again.read), (4, 0, 0));
    let (_, coverage) = world.ask(&id, "lighthouse", 1000, &[]).await.unwrap();
    assert_eq!((coverage.files, coverage.of_files, coverage.unread), (1, 1, 3));
    world.knowledge.embed().await.unwrap();
    assert_eq!(world.requests(), 0);
}

#[tokio::test]
async fn what_a_model_wrote_of_an_image_is_found_with_its_name_and_a_failure_is_told() {
    let (world, id) = harbor().await;
    let read = world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    let failed: Vec<(String, ErrorCode)> = read
        .failed
        .iter()
        .map(|(path, error)| (path.display().to_string(), error.code))
        .collect();
    assert_eq!((read.read, read.is_stopped), (2, false));
    assert_eq!(failed, [("c.png".to_owned(), ErrorCode::ContextFull)]);
    let (passages, coverage) = world.ask(&id, "When does the ferry leave?", 1000, &[]).await.unwrap();
    assert_eq!((coverage.of_passages, coverage.of_files, coverage.unread), (3, 3, 1));
    let sign = passages.iter().find(|passage| passage.file == "b.jpg").unwrap();
    assert_eq!(sign.headings, "Described by Seer-4B");
    assert!(sign.place().contains("Described by Seer-4B") && sign.text.contains("FERRY 7:15"));
    assert_eq!(world.found(&id, "zebra").await, ["A zebra on a beach."]);
    let states = world.states(&id).await;
    assert!(matches!(&states[2].1, CollectionFileState::Failed { error } if error.code == ErrorCode::ContextFull));
    let view = world.shown().await;
    assert_eq!((view.read, view.images, view.failed, view.passages), (3, 1, 0, 3));
    let reading = view.image_reading.unwrap();
    assert_eq!(
        (reading.done, reading.of, reading.failed, reading.is_running),
        (3, 3, 1, false)
    );
    // A larger model can try once more, and the others are not asked about again.
    let failed = image(20).id();
    world.engine.images.lock().unwrap().insert(failed, Ok("A map.".into()));
    let read = world.knowledge.read_images(&id, "org/Seer-30B").await.unwrap();
    assert_eq!((read.read, read.failed.len(), world.requests()), (1, 0, 4));
    let view = world.shown().await;
    assert_eq!((view.read, view.images, view.image_reading), (4, 0, None));
}

#[tokio::test]
async fn the_request_is_a_plain_one_behind_every_other_work() {
    let (world, id) = harbor().await;
    world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    let request = world.engine.shown.lock().unwrap()[0].clone();
    assert_eq!(request.model.reference(), "org/Seer-4B");
    assert_eq!(
        (request.priority, request.thinking),
        (Priority::Background, Some(Thinking::Off))
    );
    assert_eq!(
        (&request.sampling, request.max_tokens),
        (&Sampling::greedy(), Some(1000))
    );
    let shown: Vec<_> = request.shown_images().collect();
    assert_eq!(shown, [(image(10).id().as_str(), &image(10))]);
}

#[tokio::test]
async fn an_unchanged_image_keeps_its_text_and_a_changed_one_is_unread() {
    let (world, id) = harbor().await;
    world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    let asked = world.requests();
    // The same bytes at another time, after a restart.
    let shelf = world.knowledge.shared.shelf.clone();
    world.knowledge.shut_down().await;
    let path = world.data.path().join("documents.sqlite");
    let knowledge = Knowledge::new(&path, world.engine.clone(), shelf);
    let world = World { knowledge, ..world };
    world.write("b.jpg", &*image(10));
    world.knowledge.update(&id).await.unwrap();
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
    // Passages that were made in another way are made anew of the same text.
    let index = world.knowledge.index().await.unwrap();
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display()))
        .await
        .unwrap();
    sqlx::query("UPDATE files SET recipe = 'another'")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let updated = world.knowledge.update(&id).await.unwrap();
    assert_eq!((updated.read, updated.images), (3, 1));
    let (passages, _) = world.ask(&id, "ferry", 1000, &[]).await.unwrap();
    let sign = passages.iter().find(|passage| passage.file == "b.jpg").unwrap();
    assert_eq!(sign.headings, "Described by Seer-4B");
    assert_eq!(world.requests(), asked);
    // Another image in its place.
    world.write_image("b.jpg", 99, Ok("A tram.".into()));
    let updated = world.knowledge.update(&id).await.unwrap();
    assert_eq!((updated.images, world.requests()), (1, asked));
    assert!(world.found(&id, "ferry").await.is_empty());
    let opened = world.knowledge.open_passage(sign).await.unwrap();
    assert!(opened.is_changed && opened.is_image && opened.passage == sign.text);
    world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    assert_eq!(world.found(&id, "tram").await.len(), 1);
    // A text in its place is read as one, and nothing of the image is left.
    world.write("b.jpg", "The canteen is closed.");
    assert_eq!(world.knowledge.update(&id).await.unwrap().read, 1);
    assert!(world.found(&id, "tram").await.is_empty());
    assert_eq!(index.described(&id, std::path::Path::new("b.jpg")).await.unwrap(), None);
}

#[tokio::test]
async fn building_anew_forgets_texts_of_images_and_asks_no_model() {
    let (world, id) = harbor().await;
    world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    let asked = world.requests();
    world.knowledge.rebuild().await.unwrap();
    assert!(world.found(&id, "ferry").await.is_empty());
    assert_eq!((world.shown().await.images, world.requests()), (3, asked));
}

#[tokio::test]
async fn stopping_keeps_what_was_read() {
    let (world, id) = harbor().await;
    // The engine never ends with this one.
    world.engine.images.lock().unwrap().remove(&image(20).id());
    world.knowledge.begin_images(&id, "org/Seer-4B").await.unwrap();
    let busy = world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap_err();
    assert!(
        matches!(&busy, Error::Model(error) if error.code == ErrorCode::Busy),
        "{busy}"
    );
    until(|| !world.engine.open.lock().unwrap().is_empty()).await;
    let reading = world.knowledge.image_reading(&id).unwrap();
    assert_eq!((reading.done, reading.of, reading.is_running), (1, 3, true));
    world.knowledge.stop_images(&id);
    until(|| world.knowledge.image_reading(&id).is_none()).await;
    assert!(world.engine.open.lock().unwrap()[0].1.is_cancelled());
    assert_eq!(world.found(&id, "ferry").await.len(), 1);
    let view = world.shown().await;
    assert_eq!((view.read, view.images, view.image_reading), (2, 2, None));
    assert_eq!(world.requests(), 2);
}

#[tokio::test]
async fn an_image_that_changes_while_a_model_looks_stays_unread() {
    let (world, id) = harbor().await;
    world.engine.images.lock().unwrap().remove(&image(10).id());
    let knowledge = world.knowledge.clone();
    let reading = {
        let id = id.clone();
        tokio::spawn(async move { knowledge.read_images(&id, "org/Seer-4B").await })
    };
    until(|| !world.engine.open.lock().unwrap().is_empty()).await;
    world.write_image("b.jpg", 99, Ok("A tram.".into()));
    world.knowledge.update(&id).await.unwrap();
    let (sender, _) = world.engine.open.lock().unwrap().remove(0);
    engine::say(&sender, "FERRY 7:15".into());
    assert_eq!(reading.await.unwrap().unwrap().read, 1);
    assert!(world.found(&id, "ferry").await.is_empty());
    assert_eq!(world.states(&id).await[1].1, UNREAD);
}

#[tokio::test]
async fn only_a_model_of_this_computer_that_supports_images_is_asked() {
    let (world, id) = harbor().await;
    world.engine.fake.make_blind("org/Blind-1B");
    for (reference, code) in [
        ("org/Blind-1B", ErrorCode::ImageNotSeen),
        ("endpoint:cloud/seer", ErrorCode::BadRequest),
        ("", ErrorCode::ModelNotFound),
    ] {
        let error = world.knowledge.read_images(&id, reference).await.unwrap_err();
        assert!(matches!(&error, Error::Model(error) if error.code == code), "{error}");
    }
    let gone = world.knowledge.begin_images("nowhere", "org/Seer-4B").await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
    assert_eq!((world.requests(), world.shown().await.image_reading), (0, None));
}

#[tokio::test]
async fn a_model_that_fails_as_a_whole_is_asked_once_and_its_images_stay_unread() {
    let (world, id) = harbor().await;
    let broken = Failure::new(ErrorCode::ModelBroken, "a file of the model is missing");
    for (_, response) in world.engine.images.lock().unwrap().iter_mut() {
        *response = Err(broken.clone());
    }
    let error = world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap_err();
    assert_eq!((error.told(), world.requests()), (broken.clone(), 1));
    let view = world.shown().await;
    let reading = view.image_reading.unwrap();
    assert_eq!(
        (view.images, reading.is_running, reading.problem),
        (3, false, Some(broken))
    );
}

#[tokio::test]
async fn files_that_only_pretend_to_be_images_do_no_harm() {
    let world = World::new();
    world.write("words.png", "The ferry leaves at seven.");
    world.write("program.png", b"\x7fELF\x02\x01\x01\0\0\0");
    world.write("BM.txt", "BMW and other makers of cars with a ferry.");
    world.write(
        "drawing.svg",
        "<svg xmlns='http://www.w3.org/2000/svg'><text>zebra</text></svg>",
    );
    let mut cut = image(7).to_vec();
    cut.truncate(40);
    world.write("cut.jpg", &cut);
    let mut huge = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    huge.extend([0xff; 8]);
    huge.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
    world.write("huge.png", &huge);
    let id = world.added().await;
    let view = world.shown().await;
    assert_eq!((view.read, view.failed, view.images), (3, 1, 2));
    assert_eq!(world.found(&id, "ferry").await.len(), 2);
    let read = world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    let codes: Vec<ErrorCode> = read.failed.iter().map(|(_, error)| error.code).collect();
    assert_eq!(codes, [ErrorCode::ImageBroken, ErrorCode::ImageBroken]);
    // No model was shown them, and none is once more.
    let view = world.shown().await;
    assert_eq!((view.failed, view.images, world.requests()), (3, 0, 0));
}

#[tokio::test]
async fn a_cited_image_is_shown_beside_its_text() {
    let (world, id) = harbor().await;
    world.knowledge.read_images(&id, "org/Seer-4B").await.unwrap();
    let (passages, _) = world.ask(&id, "ferry", 1000, &[]).await.unwrap();
    let sign = passages.iter().find(|passage| passage.file == "b.jpg").unwrap();
    let opened = world.knowledge.open_passage(sign).await.unwrap();
    assert!(
        opened.is_image && !opened.is_changed && opened.passage == sign.text,
        "{opened:?}"
    );
    let text = passages.iter().find(|passage| passage.file == "a.txt").unwrap();
    assert!(!world.knowledge.open_passage(text).await.unwrap().is_image);
    for (width, size) in [(24, (24, 16)), (4000, (48, 32)), (0, (1, 1))] {
        let page = world.knowledge.page_image(sign, 1, width).await.unwrap();
        assert_eq!((page.pages, (page.width, page.height)), (1, size));
        let bytes = ImageBytes::from_data_url(&page.image).unwrap();
        let measured = media::measure(&bytes).unwrap();
        assert_eq!((measured.width, measured.height), size);
    }
    assert!(world.knowledge.page_image(sign, 2, 100).await.is_err());
    std::fs::remove_file(world.folder.path().join("b.jpg")).unwrap();
    assert!(world.knowledge.page_image(sign, 1, 100).await.is_err());
}
