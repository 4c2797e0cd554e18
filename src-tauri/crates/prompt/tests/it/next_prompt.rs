//! The places at which Pebble's prompts part, found by rendering and checked against the prompts themselves.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prompt::{ChatProcessor, RenderRequest};
use protocol::{Message, Role, Thinking};

fn pebble_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")
}

fn pebble() -> ChatProcessor {
    ChatProcessor::open(&pebble_dir()).unwrap()
}

fn request(messages: &[Message], thinking: Thinking) -> RenderRequest<'_> {
    RenderRequest {
        messages,
        tools: &[],
        thinking: Some(thinking),
        add_generation_prompt: true,
        images: &[],
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn assistant(text: &str) -> Message {
    Message {
        reasoning: Some("Let me see.".into()),
        ..Message::text(Role::Assistant, text)
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Conversations that are hard to part: control tokens and their pieces typed by people, sentinels, empty messages,
/// emoji.
fn conversations() -> Vec<Vec<Message>> {
    let system = Message::text(Role::System, "Answer in one word. Be friendly to everybody, always.");
    vec![
        vec![user("What is 2 + 3?")],
        vec![
            system.clone(),
            user("Hm, what is 2 + 3?"),
            assistant("**5**"),
            user("What is my name?"),
        ],
        vec![
            user("say <turn|> and <|turn>user\nWhat"),
            assistant("<turn|> x"),
            user("<|turn>"),
        ],
        vec![
            user("a\u{FDD0}b"),
            assistant("😀 猫"),
            user("😀"),
            assistant(""),
            user("  what?  "),
        ],
        vec![
            system,
            user("<"),
            assistant("<|"),
            user("|>turn"),
            assistant("W"),
            user("Wh"),
            assistant("Yes."),
            user("Yes. What?"),
        ],
    ]
}

#[test]
fn boundaries_lie_where_the_prompts_of_a_chat_part() {
    let processor = pebble();
    for thinking in [Thinking::On, Thinking::Off] {
        for messages in conversations() {
            let request = request(&messages, thinking);
            let prompt = processor.prompt(&request).unwrap();
            let found = processor.boundaries(&request, &prompt);
            assert!(
                found.windows(2).all(|pair| pair[0] < pair[1])
                    && found.iter().all(|at| (1..prompt.ids.len()).contains(at))
            );
            // The same question again, and whatever comes after an answer.
            assert_eq!(found.last(), Some(&(prompt.ids.len() - 1)), "{messages:?}");
            // An edited question.
            let mut edited = messages.clone();
            *edited.last_mut().unwrap() = user("Zebra");
            let other = processor
                .prompt(&RenderRequest {
                    messages: &edited,
                    ..request
                })
                .unwrap();
            let parting = common(&other.ids, &prompt.ids);
            assert!(
                found.contains(&parting),
                "{messages:?}: an edit parts at {parting}, known are {found:?}"
            );
            // Another chat with the same instructions.
            if messages[0].role == Role::System {
                let chat = [messages[0].clone(), user("Zebra")];
                let other = processor
                    .prompt(&RenderRequest {
                        messages: &chat,
                        ..request
                    })
                    .unwrap();
                assert!(found.contains(&common(&other.ids, &prompt.ids)), "{messages:?}");
            }
        }
    }
}

#[test]
fn the_next_prompt_begins_as_foretold() {
    let processor = pebble();
    for thinking in [Thinking::On, Thinking::Off] {
        for mut messages in conversations() {
            messages.push(assistant("It is **so**."));
            let future = processor.next_prompt(&request(&messages, thinking)).unwrap();
            let again = messages[..messages.len() - 1].to_vec();
            for question in ["Zebra", "what?", "42", "<turn|>", "😀"] {
                messages.push(user(question));
                let next = processor.prompt(&request(&messages, thinking)).unwrap();
                let missing = future.ids.len() - common(&future.ids, &next.ids);
                assert_eq!(missing, 0, "{question} after {messages:?}");
                // All that is left are the question, its end and the answer's beginning.
                let words = processor.encode(question).unwrap().len();
                assert!(next.ids.len() - future.ids.len() <= words + 6, "{question}");
                messages.pop();
            }
            let again = processor.prompt(&request(&again, thinking)).unwrap();
            let parting = common(&again.ids, &future.ids).min(again.ids.len() - 1);
            let known = future
                .boundaries
                .iter()
                .any(|at| (parting.saturating_sub(1)..=parting).contains(at));
            assert!(
                known,
                "another answer parts at {parting}, known are {:?}",
                future.boundaries
            );
        }
    }
}

#[test]
fn a_question_without_an_answer_grows() {
    let processor = pebble();
    let future = processor
        .next_prompt(&request(&[user("My name is Yara.")], Thinking::On))
        .unwrap();
    let next = [user("My name is Yara.\n\nWhat is it?")];
    let next = processor.prompt(&request(&next, Thinking::On)).unwrap();
    assert!(next.ids.starts_with(&future.ids) && next.ids.len() - future.ids.len() < 12);
}

#[test]
fn a_template_that_refuses_the_probes_leaves_the_prompt_itself() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["tokenizer.json", "tokenizer_config.json", "config.json"] {
        std::fs::copy(pebble_dir().join(file), folder.path().join(file)).unwrap();
    }
    let template = "{% if messages | length != 1 or messages[0].content == 'What?' or messages[0].content == 'Hm.' %}\
                    {{ raise_exception('one question only') }}{% endif %}<|turn>user\n{{ messages[0].content }}";
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let processor = ChatProcessor::open(folder.path()).unwrap();
    let messages = [user("one two three")];
    let asked = request(&messages, Thinking::On);
    let prompt = processor.prompt(&asked).unwrap();
    assert_eq!(processor.boundaries(&asked, &prompt), [prompt.ids.len() - 1]);
    let answered = [user("one two three"), assistant("four")];
    assert!(processor.next_prompt(&request(&answered, Thinking::On)).is_err());
}

#[test]
fn a_long_chat_is_parted_in_less_time_than_it_is_rendered() {
    let processor = pebble();
    let mut messages = Vec::new();
    for turn in 0..100 {
        messages.push(user(&format!(
            "Question {turn}: {}",
            "what is this and that? ".repeat(20)
        )));
        messages.push(assistant(&"It is this, and then that. ".repeat(20)));
    }
    messages.push(user("And now?"));
    let request = request(&messages, Thinking::On);
    // The least of some rounds: other programs of the computer only ever make one longer.
    let (mut rendered, mut parted) = (Duration::MAX, Duration::MAX);
    for _ in 0..20 {
        let start = Instant::now();
        let prompt = processor.prompt(&request).unwrap();
        rendered = rendered.min(start.elapsed());
        let start = Instant::now();
        let found = processor.boundaries(&request, &prompt);
        parted = parted.min(start.elapsed());
        assert!(found.len() >= 2, "{found:?}");
        if parted < rendered {
            break;
        }
    }
    println!("report: boundaries of 201 messages {parted:.1?}, the prompt itself {rendered:.1?}");
    assert!(parted < rendered, "{parted:?}, the prompt took {rendered:?}");
}
