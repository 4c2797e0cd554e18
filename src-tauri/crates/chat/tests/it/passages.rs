//! Passages of documents that go with a question: stored with it, counted on, and never given twice.

use std::sync::{Arc, Mutex};

use api::{ChatSettings, Position, Retrieval};
use chat::Chat;
use futures::future::BoxFuture;
use protocol::fake::FakeJob;
use protocol::{
    CallProgress, Content, Coverage, Done, EndedBy, EngineEvent, Error, ErrorCode, FinishReason, PassageRequest,
    PassageSource, QuotedPassage, ReadDocuments, ReadingCost, ReadingRequest, Result, TellProgress, Timing, Usage,
    DOCUMENT_TOOLS,
};

use crate::tool_calls::with_tools;
use crate::{done, text, Harness};

/// Gives one new passage for each question, and remembers what it was asked.
#[derive(Default)]
struct Shelf {
    asked: Mutex<Vec<PassageRequest>>,
    read: Mutex<Vec<ReadingRequest>>,
    /// True for documents that are never read to their end.
    never_ends: bool,
    is_broken: bool,
}

impl PassageSource for Shelf {
    fn passages(&self, request: PassageRequest) -> BoxFuture<'_, Result<Option<Content>>> {
        let number = request.first_number;
        self.asked.lock().unwrap().push(request);
        let found = match self.is_broken {
            true => Err(Error::new(ErrorCode::Storage, "the index cannot be read")),
            false => Ok(Some(Content::Passages {
                passages: vec![passage(number)],
                coverage: Coverage {
                    passages: number,
                    of_passages: 212,
                    files: 1,
                    of_files: 40,
                    unread: 0,
                },
            })),
        };
        Box::pin(std::future::ready(found))
    }

    fn reading_cost(&self, collections: Vec<String>, most_tokens: u32) -> BoxFuture<'_, Result<ReadingCost>> {
        let cost = ReadingCost {
            passages: collections.len() as u32,
            parts: 3,
            tokens: u64::from(most_tokens),
            note_tokens: 1200,
            seconds: None,
        };
        Box::pin(std::future::ready(Ok(cost)))
    }

    fn read_all(&self, request: ReadingRequest, tell: TellProgress) -> BoxFuture<'_, Result<ReadDocuments>> {
        tell(CallProgress::default());
        let read = Ok(ReadDocuments {
            notes: format!("- Fact [{}].", request.first_number),
            passages: vec![passage(request.first_number)],
            coverage: WHOLE,
            parts: 3,
        });
        self.read.lock().unwrap().push(request);
        match self.never_ends {
            true => Box::pin(std::future::pending()),
            false => Box::pin(std::future::ready(read)),
        }
    }
}

/// How much is read when everything is.
const WHOLE: Coverage = Coverage {
    passages: 212,
    of_passages: 212,
    files: 40,
    of_files: 40,
    unread: 0,
};

fn passage(number: u32) -> QuotedPassage {
    QuotedPassage {
        number,
        collection: "notes".into(),
        file: format!("{number}.md"),
        file_hash: "ab".into(),
        headings: String::new(),
        page: None,
        first_line: 1,
        last_line: 2,
        text: format!("Fact {number}."),
    }
}

async fn with_documents(settings: ChatSettings, shelf: Shelf) -> (Harness, Arc<Shelf>, String) {
    let harness = Harness::new().await;
    let shelf = Arc::new(shelf);
    harness.chat.set_passage_source(shelf.clone());
    let chat = harness.chat.chats().create(settings).await.unwrap().summary.id;
    (harness, shelf, chat)
}

fn settings(retrieval: Retrieval) -> ChatSettings {
    ChatSettings {
        collections: vec!["notes".into()],
        retrieval,
        ..ChatSettings::default()
    }
}

async fn end(harness: &Harness, answer: &str, job: &FakeJob) {
    job.events.send(text("So it is [1].", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(answer).await;
}

async fn kinds(chat: &Chat, id: &str, message: usize) -> Vec<&'static str> {
    let view = chat.chats().get(id).await.unwrap();
    let parts = view.messages[message].parts.iter();
    parts
        .map(|part| match part.content {
            Content::Passages { .. } => "passages",
            _ => "other",
        })
        .collect()
}

#[tokio::test]
async fn passages_are_stored_with_their_question_and_counted_on() {
    let (harness, shelf, chat) = with_documents(settings(Retrieval::Automatic), Shelf::default()).await;
    let (first_answer, job) = harness.ask(&chat, "How many?").await;
    let asked = job.request.messages.last().unwrap().text_with_placeholders();
    assert!(asked.contains("[1] 1.md, lines 1 to 2\n```\nFact 1.\n```"), "{asked}");
    assert!(asked.ends_with("How many?"), "{asked}");
    assert_eq!(kinds(&harness.chat, &chat, 0).await, ["passages", "other"]);
    let title = harness.chat.chats().get(&chat).await.unwrap().summary.title;
    assert_eq!(title, "How many?");
    end(&harness, &first_answer, &job).await;
    let (answer, job) = harness.ask(&chat, "And then?").await;
    let first = &job.request.messages[0];
    assert!(
        first.text_with_placeholders().contains("Fact 1."),
        "the prompt begins as before"
    );
    {
        let asked = shelf.asked.lock().unwrap();
        assert_eq!((asked[1].first_number, asked[1].given.clone()), (2, vec![passage(1)]));
        assert_eq!(
            (asked[1].collections.clone(), asked[1].question.as_str()),
            (vec!["notes".to_owned()], "And then?")
        );
    }
    let (_, given) = harness.chat.answers().with_passages(&answer).await.unwrap();
    assert_eq!(given, [passage(1), passage(2)]);
    // Another answer to the same question is given the same.
    end(&harness, &answer, &job).await;
    harness.chat.answers().regenerate(&answer, None).await.unwrap();
    let again = harness.job().await;
    assert_eq!(again.request.messages, job.request.messages);
    assert_eq!(shelf.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn documents_of_the_project_come_before_those_of_the_chat() {
    let (harness, shelf, chat) = with_documents(settings(Retrieval::Automatic), Shelf::default()).await;
    let projects = harness.chat.projects();
    let project = projects.create("Sea").await.unwrap().id;
    projects
        .set_collections(&project, &["logs".into(), "notes".into()])
        .await
        .unwrap();
    projects.move_chat(&chat, Some(&project)).await.unwrap();
    harness.ask(&chat, "a").await;
    assert_eq!(shelf.asked.lock().unwrap()[0].collections, ["logs", "notes"]);
    assert_eq!(projects.list().await.unwrap()[0].collections, ["logs", "notes"]);
}

#[tokio::test]
async fn nothing_is_read_when_it_is_off_or_the_chat_has_no_documents() {
    for settings in [
        settings(Retrieval::Off),
        settings(Retrieval::Tools),
        ChatSettings::default(),
    ] {
        let (harness, shelf, chat) = with_documents(settings, Shelf::default()).await;
        harness.ask(&chat, "a").await;
        assert!(shelf.asked.lock().unwrap().is_empty());
        assert_eq!(kinds(&harness.chat, &chat, 0).await, ["other"]);
    }
}

#[tokio::test]
async fn an_index_that_cannot_be_read_stores_no_question() {
    let broken = Shelf {
        is_broken: true,
        ..Shelf::default()
    };
    let (harness, _, chat) = with_documents(settings(Retrieval::Automatic), broken).await;
    assert_eq!(harness.refusal(&chat, "a").await, ErrorCode::Storage);
    assert!(harness.chat.chats().get(&chat).await.unwrap().messages.is_empty());
}

#[tokio::test]
async fn a_window_cannot_bring_passages() {
    let (harness, _, chat) = with_documents(ChatSettings::default(), Shelf::default()).await;
    let content = [
        Content::Passages {
            passages: vec![passage(1)],
            coverage: Coverage::default(),
        },
        Content::text("a"),
    ];
    let sent = harness.chat.answers().send(&chat, &content, &Position::End).await;
    assert_eq!(sent.unwrap_err().code, ErrorCode::BadRequest);
}

#[tokio::test]
async fn a_model_that_reads_itself_is_offered_the_tools_for_it() {
    let (harness, _, chat) = with_tools().await;
    let view = harness.chat.chats().get(&chat).await.unwrap();
    let settings = ChatSettings {
        collections: vec!["notes".into()],
        retrieval: Retrieval::Tools,
        ..view.settings
    };
    harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
    let (_, job) = harness.ask(&chat, "a").await;
    let names: Vec<&str> = job
        .request
        .tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    for tool in DOCUMENT_TOOLS {
        assert!(names.contains(&tool), "{tool} is not among {names:?}");
    }
    assert_eq!(names.len(), 5);
}

#[tokio::test]
async fn the_cost_of_reading_everything_has_a_time_once_the_model_was_measured() {
    let (harness, _, chat) = with_documents(settings(Retrieval::Automatic), Shelf::default()).await;
    let chats = harness.chat.chats();
    let cost = chats.reading_cost(&chat).await.unwrap();
    assert_eq!((cost.passages, cost.parts, cost.seconds), (1, 3, None));
    let new = chats
        .reading_cost_of_new(None, settings(Retrieval::Automatic))
        .await
        .unwrap();
    assert_eq!(new, cost);
    let (answer, job) = harness.ask(&chat, "How many?").await;
    job.events.send(text("So it is [1].", 1));
    job.events.send(measured(400, 100.0, 4.0));
    harness.end(&answer).await;
    let after = chats.reading_cost(&chat).await.unwrap();
    let expected = after.tokens as f64 / 100.0 + 1200.0 / 4.0;
    assert_eq!(after.seconds, Some(expected.ceil() as u32));
    assert!(after.tokens < cost.tokens, "the question takes some of the context");
    let without = chats.reading_cost_of_new(None, ChatSettings::default()).await;
    assert_eq!(without.unwrap_err().code, ErrorCode::NotFound);
    let nowhere = chats
        .reading_cost_of_new(Some("none"), settings(Retrieval::Automatic))
        .await;
    assert_eq!(nowhere.unwrap_err().code, ErrorCode::NotFound);
}

/// The end of an answer whose prompt and words were measured.
fn measured(prefilled_tokens: u32, prefill: f64, decode: f64) -> EngineEvent {
    EngineEvent::Done(Done {
        finish_reason: FinishReason::Stop,
        ended_by: EndedBy::TokenLimit,
        tokens: Vec::new(),
        usage: Some(Usage {
            prefilled_tokens,
            completion_tokens: 1,
            ..Usage::default()
        }),
        timing: Timing {
            prefill_tokens_per_second: prefill,
            decode_tokens_per_second: decode,
            ..Timing::default()
        },
    })
}

#[tokio::test]
async fn a_question_after_reading_everything_has_the_notes_and_says_so() {
    let (harness, shelf, chat) = with_documents(settings(Retrieval::Automatic), Shelf::default()).await;
    let (first, job) = harness.ask(&chat, "How many?").await;
    end(&harness, &first, &job).await;
    let heard = Arc::new(Mutex::new(0));
    let tell: TellProgress = {
        let heard = heard.clone();
        Arc::new(move |_| *heard.lock().unwrap() += 1)
    };
    let answers = harness.chat.answers();
    let content = [Content::text("Which ferries are there?")];
    let turn = answers
        .send_after_reading(&chat, &content, &Position::End, "Notes.txt", tell.clone())
        .await
        .unwrap();
    assert_eq!(*heard.lock().unwrap(), 1);
    let parts: Vec<&Content> = turn.question.parts.iter().map(|part| &part.content).collect();
    assert!(
        matches!(parts[..], [
            Content::Passages { passages, coverage: WHOLE },
            Content::File { name, .. },
            Content::Text { text },
        ] if *passages == [passage(2)] && name == "Notes.txt" && text == "Which ferries are there?"),
        "{parts:?}"
    );
    let job = harness.job().await;
    let asked = job.request.messages.last().unwrap().text_with_placeholders();
    assert!(asked.contains("- Fact [2].") && asked.contains("Fact 2."), "{asked}");
    {
        let read = shelf.read.lock().unwrap();
        assert_eq!(
            (read[0].question.as_str(), read[0].first_number),
            ("Which ferries are there?", 2)
        );
    }
    // Everything is read for this question alone: the passages that fit it are not looked for.
    assert_eq!(shelf.asked.lock().unwrap().len(), 1);
    let during = answers.send_after_reading(&chat, &content, &Position::End, "Notes.txt", tell.clone());
    assert_eq!(during.await.unwrap_err().code, ErrorCode::Busy);
    end(&harness, &turn.answer.id, &job).await;
    let passages = [Content::Passages {
        passages: Vec::new(),
        coverage: WHOLE,
    }];
    for none in [&[][..], &[Content::text(" ")], &passages] {
        let refused = answers.send_after_reading(&chat, none, &Position::End, "Notes.txt", tell.clone());
        assert_eq!(refused.await.unwrap_err().code, ErrorCode::BadRequest);
    }
    let without = harness.new_chat().await;
    let refused = answers.send_after_reading(&without, &content, &Position::End, "Notes.txt", tell);
    assert_eq!(refused.await.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn reading_everything_is_stopped_and_stores_nothing() {
    let endless = Shelf {
        never_ends: true,
        ..Shelf::default()
    };
    let (harness, _, chat) = with_documents(settings(Retrieval::Automatic), endless).await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let tell: TellProgress = Arc::new(move |progress| drop(told.send(progress)));
    let answers = harness.chat.answers().clone();
    let reading = {
        let (answers, chat, tell) = (answers.clone(), chat.clone(), tell.clone());
        tokio::spawn(async move {
            let content = [Content::text("Which?")];
            answers
                .send_after_reading(&chat, &content, &Position::End, "Notes.txt", tell)
                .await
        })
    };
    heard.recv().await.unwrap();
    let content = [Content::text("And which?")];
    let second = answers.send_after_reading(&chat, &content, &Position::End, "Notes.txt", tell);
    assert_eq!(second.await.unwrap_err().code, ErrorCode::Busy);
    answers.stop_reading(&chat);
    assert_eq!(reading.await.unwrap().unwrap_err().code, ErrorCode::Stopped);
    answers.stop_reading(&chat);
    assert!(harness.stored(&chat).await.is_empty());
    // The chat can be asked again.
    harness.ask(&chat, "How many?").await;
}
