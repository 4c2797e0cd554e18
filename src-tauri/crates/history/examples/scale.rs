//! Prints what a large history costs: `./dev bench history`. Speed is printed and never asserted, because machines differ.

use std::time::{Duration, Instant};

use history::{read_import, History};
use protocol::HistoryQuery;
use serde_json::json;

/// Chats, with so many messages each.
const CHATS: usize = 5_000;
const MESSAGES: usize = 40;
/// Messages of one long chat.
const LONG: usize = 3_000;
/// How often each thing is done; the middle one is told.
const TIMES: usize = 9;

const WORDS: [&str; 24] = [
    "river",
    "café",
    "engine",
    "token",
    "harbour",
    "proof",
    "letter",
    "garden",
    "matrix",
    "winter",
    "copper",
    "bridge",
    "naïve",
    "signal",
    "orchard",
    "lantern",
    "budget",
    "thesis",
    "violin",
    "syntax",
    "desert",
    "mirror",
    "東京都に住む",
    "서울에서",
];

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.sqlite");
    let history = History::open(&path).await?;
    let begun = Instant::now();
    for first in (0..CHATS).step_by(500) {
        let chats: Vec<_> = (first..first + 500)
            .map(|number| chat(number, if number == 0 { LONG } else { MESSAGES }))
            .collect();
        history.import(read_import(json!(chats).to_string().as_bytes())?).await?;
    }
    println!(
        "{} chats, {} messages: imported in {:.1?}",
        CHATS,
        CHATS * MESSAGES + LONG,
        begun.elapsed()
    );
    let begun = Instant::now();
    while history.index_texts(100, false).await? {}
    println!("read into the index in {:.1?}", begun.elapsed());
    history.close().await;

    let begun = Instant::now();
    let history = History::open(&path).await?;
    println!("open: {:.1?}", begun.elapsed());
    print("list of chats", async || Ok(history.chats().await?.len())).await?;
    print("a chat of 40", async || Ok(history.chat("chat-77").await?.messages.len())).await?;
    print("a chat of 3,000", async || Ok(history.chat("chat-0").await?.messages.len())).await?;
    for text in [
        "river",
        "ri",
        "r",
        "cafe naive",
        "\"river 7\"",
        "京都",
        "서울",
        "unheard",
        "number 4711",
    ] {
        let name = format!("search {text:?}");
        print(&name, async || Ok(history.search(&HistoryQuery::words(text)).await?.places.len())).await?;
    }
    let narrowed = HistoryQuery {
        model: Some("nobody".into()),
        ..HistoryQuery::words("river")
    };
    print("search of a model", async || Ok(history.search(&narrowed).await?.places.len())).await?;
    let begun = Instant::now();
    let backup = history.back_up(Duration::ZERO).await?;
    println!(
        "checked backup: {:.1?}, {:?} bytes",
        begun.elapsed(),
        backup.and_then(|path| path.metadata().ok()).map(|file| file.len())
    );
    Ok(())
}

/// Prints the time that something takes, and how much it gives.
async fn print(name: &str, mut work: impl AsyncFnMut() -> Result<usize, Box<dyn std::error::Error>>) -> Outcome {
    let mut times = Vec::new();
    let mut count = 0;
    for _ in 0..TIMES {
        let begun = Instant::now();
        count = work().await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!("{name}: {:.1?} (at most {:.1?}), {count} found", times[TIMES / 2], times[TIMES - 1]);
    Ok(())
}

/// A chat of Claude's shape, whose texts differ.
fn chat(number: usize, messages: usize) -> serde_json::Value {
    let text = |place: usize| {
        let word = |step: usize| WORDS[(number * 7 + place * 13 + step * step) % WORDS.len()];
        let words: Vec<&str> = (0..60).map(word).collect();
        format!("{} number {} {}", words.join(" "), number, place)
    };
    let said: Vec<_> = (0..messages)
        .map(|place| json!({"uuid": place.to_string(), "sender": if place % 2 == 0 { "human" } else { "assistant" }, "text": text(place)}))
        .collect();
    let day = 1 + number % 28;
    json!({"uuid": format!("chat-{number}"), "name": format!("Chat {number} {}", WORDS[number % WORDS.len()]),
           "created_at": format!("2026-0{}-{day:02}T10:00:00Z", 1 + number % 9), "chat_messages": said})
}
