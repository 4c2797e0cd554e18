//! The user's own chats as a collection.

use std::sync::Mutex;

use api::CollectionSource;
use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{ChatText, ChatTexts, Error, ErrorCode, OWN_CHATS};
use tokio::sync::watch;

use super::*;

/// Chats by their ids, with a revision and a text.
#[derive(Default)]
struct Chats {
    kept: Mutex<Vec<(String, u64, String)>>,
    changes: watch::Sender<()>,
}

impl Chats {
    fn say(&self, id: &str, text: &str) {
        let mut kept = self.kept.lock().unwrap();
        let revision = kept.iter().find(|chat| chat.0 == id).map_or(1, |chat| chat.1 + 1);
        kept.retain(|chat| chat.0 != id);
        kept.push((id.into(), revision, text.into()));
        self.changes.send_replace(());
    }
}

impl ChatTexts for Chats {
    fn list(&self) -> BoxFuture<'_, protocol::Result<Vec<ChatText>>> {
        let kept = self.kept.lock().unwrap();
        let listed = kept.iter().map(|(id, revision, _)| ChatText {
            id: id.clone(),
            revision: *revision,
            updated_at: 1_700_000_000_000,
        });
        std::future::ready(Ok(listed.collect())).boxed()
    }

    fn text(&self, chat: String) -> BoxFuture<'_, protocol::Result<String>> {
        let kept = self.kept.lock().unwrap();
        let found = kept.iter().find(|known| known.0 == chat).map(|known| known.2.clone());
        let found = found.ok_or_else(|| Error::new(ErrorCode::NotFound, "there is no such chat"));
        std::future::ready(found).boxed()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

fn text(title: &str, said: &str) -> String {
    format!("# {title}\n\n## The user, 2026-11-01 10:00\n\n{said}\n")
}

async fn with_chats() -> (World, Arc<Chats>) {
    let (world, chats) = (World::new(), Arc::new(Chats::default()));
    world.knowledge.set_chats(chats.clone());
    chats.say("one", &text("Trip to Rome", "The train to Rome leaves at seven."));
    chats.say("two", &text("Garden", "The roses need water."));
    (world, chats)
}

fn request(chat: Option<&str>, question: &str) -> PassageRequest {
    PassageRequest {
        collections: vec![OWN_CHATS.to_owned()],
        chat: chat.map(str::to_owned),
        question: question.into(),
        most_tokens: 100_000,
        given: Vec::new(),
        first_number: 1,
    }
}

async fn given(world: &World, request: PassageRequest) -> Vec<QuotedPassage> {
    match world.knowledge.passages(request).await.unwrap() {
        Some(Content::Passages { passages, .. }) => passages,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn chats_are_read_when_they_change_and_forgotten_with_their_chat() {
    let (world, chats) = with_chats().await;
    assert!(
        world.knowledge.collections().await.unwrap().is_empty(),
        "off by default"
    );
    world.knowledge.add_own_chats("My chats").await.unwrap();
    world.knowledge.add_own_chats("My chats").await.unwrap();
    let updated = world.knowledge.update(OWN_CHATS).await.unwrap();
    assert_eq!((updated.read, updated.kept), (2, 0));
    let view = &world.knowledge.view().await.unwrap().collections[..];
    assert_eq!(
        (view.len(), view[0].id.as_str(), &view[0].source),
        (1, OWN_CHATS, &CollectionSource::Chats)
    );
    assert!(world.found(OWN_CHATS, "When does the train leave?").await[0].contains("seven"));
    chats.say("one", &text("Trip to Rome", "The train to Rome leaves at nine."));
    chats.kept.lock().unwrap().retain(|chat| chat.0 != "two");
    let updated = world.knowledge.update(OWN_CHATS).await.unwrap();
    assert_eq!((updated.read, updated.kept, updated.forgotten), (1, 0, 1));
    assert!(world.found(OWN_CHATS, "train").await[0].contains("nine"));
    assert!(world.found(OWN_CHATS, "roses").await.is_empty());
    world.knowledge.rebuild().await.unwrap();
    assert!(world.found(OWN_CHATS, "train").await[0].contains("nine"));
    world.knowledge.remove(OWN_CHATS).await.unwrap();
    assert!(world.knowledge.collections().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_chat_quotes_others_and_never_itself() {
    let (world, _chats) = with_chats().await;
    world.knowledge.add_own_chats("My chats").await.unwrap();
    world.knowledge.update(OWN_CHATS).await.unwrap();
    let found = given(&world, request(Some("two"), "train to Rome, roses")).await;
    assert_eq!(found.len(), 1, "not everything that fits, and not itself: {found:?}");
    assert!(
        found[0].place().starts_with("a chat of the user, line"),
        "{}",
        found[0].place()
    );
    assert!(found[0].headings.starts_with("Trip to Rome"), "{found:?}");
    let shown = world.knowledge.open_passage(&found[0]).await.unwrap();
    assert!(
        shown.path.is_empty() && !shown.is_changed && shown.passage.contains("leaves at seven"),
        "{shown:?}"
    );
    assert!(given(&world, request(None, "roses")).await[0].text.contains("water"));
}

#[tokio::test]
async fn changes_are_followed() {
    let (world, chats) = with_chats().await;
    world.knowledge.add_own_chats("My chats").await.unwrap();
    world.knowledge.follow(OWN_CHATS);
    let until_found = async |question: &str| {
        for _ in 0..600 {
            if !world.found(OWN_CHATS, question).await.is_empty() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{question} is not found");
    };
    until_found("roses").await;
    chats.say("three", &text("Bread", "The bakery is closed on Mondays."));
    until_found("bakery").await;
    world.knowledge.shut_down().await;
}
