//! Prints what a large history costs: `./dev bench history`. Speed is printed and never asserted, because machines
//! differ. With a folder as argument the history is written there instead, for `./dev bench window`.

use std::path::Path;
use std::time::{Duration, Instant};

use api::HistoryQuery;
use history::{read_import, History};
use serde_json::json;

/// Chats, with this many messages each.
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
    if let Some(folder) = std::env::args_os().nth(1) {
        return write(&Path::new(&folder).join("history.sqlite")).await;
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.sqlite");
    write(&path).await?;

    let begun = Instant::now();
    let history = History::open(&path).await?;
    println!("open: {:.1?}", begun.elapsed());
    print("list of chats", async || Ok(history.chats().await?.len())).await?;
    print("a chat of 40", async || {
        Ok(history.chat("chat-77").await?.messages.len())
    })
    .await?;
    print("a chat of 3,000", async || {
        Ok(history.chat("chat-0").await?.messages.len())
    })
    .await?;
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
        print(&name, async || {
            Ok(history.search(&HistoryQuery::words(text)).await?.hits.len())
        })
        .await?;
    }
    let narrowed = HistoryQuery {
        model: Some("nobody".into()),
        ..HistoryQuery::words("river")
    };
    print("search of a model", async || {
        Ok(history.search(&narrowed).await?.hits.len())
    })
    .await?;
    let begun = Instant::now();
    let backup = history.back_up(Duration::ZERO).await?;
    println!(
        "checked backup: {:.1?}, {:?} bytes",
        begun.elapsed(),
        backup.and_then(|path| path.metadata().ok()).map(|file| file.len())
    );
    Ok(())
}

/// Writes the history and its index, and prints how long that took.
async fn write(path: &Path) -> Outcome {
    let history = History::open(path).await?;
    let begun = Instant::now();
    for first in (0..CHATS).step_by(500) {
        let chats: Vec<_> = (first..first + 500)
            .map(|number| chat(number, if number == 0 { LONG } else { MESSAGES }))
            .collect();
        history
            .import(read_import(json!(chats).to_string().as_bytes())?)
            .await?;
    }
    println!(
        "{} chats, {} messages: imported in {:.1?}",
        CHATS,
        (CHATS - 1) * MESSAGES + LONG,
        begun.elapsed()
    );
    let begun = Instant::now();
    while history.index_texts(100, false).await? {}
    println!("read into the index in {:.1?}", begun.elapsed());
    history.close().await;
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
    println!(
        "{name}: {:.1?} (at most {:.1?}), {count} found",
        times[TIMES / 2],
        times[TIMES - 1]
    );
    Ok(())
}

/// A chat of Claude's shape, whose texts differ. Answers are Markdown as models write it.
fn chat(number: usize, messages: usize) -> serde_json::Value {
    let text = |place: usize| {
        let word = |step: usize| WORDS[(number * 7 + place * 13 + step * step) % WORDS.len()];
        let words = |count: usize| (0..count).map(word).collect::<Vec<_>>().join(" ");
        let end = format!("number {number} {place}");
        match place % 8 {
            1 | 5 => format!("**{}** {}\n\n- {}\n- `{}`\n\n{} {end}", word(1), words(30), words(9), word(2), words(20)),
            3 => format!(
                "### {}\n\n{}\n\n```python\ndef {}(value):\n    \"\"\"{}\"\"\"\n    return [value * {place} for _ in range({number})]\n```\n\n{} {end}",
                words(4),
                words(25),
                ["river", "token", "bridge"][place % 3],
                words(5),
                words(15)
            ),
            7 => format!("{}\n\n| a | b |\n|---|---|\n| {} | {} |\n\n{} {end}", words(20), word(3), word(4), words(30)),
            _ => format!("{} {end}", words(60)),
        }
    };
    let said: Vec<_> = (0..messages)
        .map(|place| json!({"uuid": place.to_string(), "sender": if place % 2 == 0 { "human" } else { "assistant" }, "text": text(place)}))
        .collect();
    let day = 1 + number % 28;
    json!({"uuid": format!("chat-{number}"), "name": format!("Chat {number} {}", WORDS[number % WORDS.len()]),
           "created_at": format!("2026-0{}-{day:02}T10:00:00Z", 1 + number % 9), "chat_messages": said})
}
