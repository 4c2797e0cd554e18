use std::collections::VecDeque;

use anyhow::{bail, Result};
use clap::Args;
use cli::output;
use protocol::{Engine, EngineEvent, JobHandle, KvBits, Message, Request, Role, Sampling, Thinking};
use serde_json::{json, Value};

use crate::subject::{load, SubjectArgs};

/// Words of a short prompt at least, and of each 16th one, which is longer than windows are.
const SHORT: usize = 6;
const LONG: usize = 700;

/// `ponder-bench answers`.
#[derive(Args)]
pub struct AnswersArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Number of prompts
    #[arg(long, value_name = "N", default_value = "200")]
    prompts: usize,
    /// Tokens of a response at most
    #[arg(long, value_name = "N", default_value = "48")]
    generate: u32,
    /// Responses at once at most; how many there are changes with each that ends
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u8).range(1..=32))]
    at_once: u8,
}

/// The way in which a prompt is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    /// Its text repeats itself, so that drafts come from it.
    Repeating,
    KvFour,
    KvEight,
    Schema,
    /// With a temperature and a seed.
    Drawn,
    /// Stopped after some tokens.
    Cancelled(usize),
}

/// A response that is being generated.
struct Answer {
    index: usize,
    way: Way,
    job: JobHandle,
    tokens: Vec<u32>,
}

impl Way {
    fn of(index: usize) -> Self {
        match index % 7 {
            0 => Self::Plain,
            1 => Self::Repeating,
            2 => Self::KvFour,
            3 => Self::KvEight,
            4 => Self::Schema,
            5 => Self::Drawn,
            _ => Self::Cancelled(1 + index % 7),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Repeating => "repeating",
            Self::KvFour => "kv 4",
            Self::KvEight => "kv 8",
            Self::Schema => "schema",
            Self::Drawn => "drawn",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

/// Prints the tokens of responses to many prompts, several at a time and in different ways: two programs, or one in
/// two environments, are compared by them.
///
/// # Errors
/// When the model cannot be loaded or a response fails.
pub async fn run(args: AnswersArgs) -> Result<()> {
    let (engine, model) = args.subject.open().await?;
    load(&engine, &model).await?;
    let ask = |index: usize| {
        let way = Way::of(index);
        let request = Request {
            thinking: Some(Thinking::Off),
            sampling: match way {
                Way::Drawn => Sampling {
                    temperature: Some(0.7),
                    top_p: Some(0.95),
                    top_k: Some(20),
                    seed: Some(index as u64),
                    ..Sampling::default()
                },
                _ => Sampling::greedy(),
            },
            // Batches shrink one by one.
            max_tokens: Some(args.generate.saturating_sub(index as u32 % 5).max(1)),
            kv_bits: match way {
                Way::KvFour => Some(KvBits::Four),
                Way::KvEight => Some(KvBits::Eight),
                _ => None,
            },
            schema: (way == Way::Schema).then(schema),
            ..Request::new(model.clone(), vec![Message::text(Role::User, prompt(index, way))])
        };
        Answer {
            index,
            way,
            job: engine.generate(request),
            tokens: Vec::new(),
        }
    };
    let mut answers = vec![Value::Null; args.prompts];
    let mut running: VecDeque<Answer> = VecDeque::new();
    let mut next = 0;
    while next < args.prompts || !running.is_empty() {
        while next < args.prompts && running.len() < usize::from(args.at_once) {
            running.push_back(ask(next));
            next += 1;
        }
        // The oldest is waited for, and the others go on meanwhile.
        if let Some(mut answer) = running.pop_front() {
            answer.end().await?;
            answers[answer.index] = json!({"way": answer.way.name(), "tokens": answer.tokens});
        }
    }
    Ok(output::line(&json!({ "model": model.reference, "answers": answers }))?)
}

impl Answer {
    async fn end(&mut self) -> Result<()> {
        loop {
            let more = match self.job.events.recv().await {
                Some(EngineEvent::Failed(error)) => return Err(error.into()),
                None => bail!("the engine is gone"),
                Some(EngineEvent::Delta { tokens, .. }) => tokens,
                Some(EngineEvent::Done(done)) => {
                    self.tokens.extend(done.tokens);
                    break;
                }
                Some(_) => continue,
            };
            self.tokens.extend(more);
            if let Way::Cancelled(most) = self.way {
                if self.tokens.len() >= most {
                    self.job.cancel.cancel();
                }
            }
        }
        if let Way::Cancelled(most) = self.way {
            // How many more came before it ended is a matter of time.
            self.tokens.truncate(most);
        }
        Ok(())
    }
}

/// Questions with numbers, as a small model may answer them; some repeat a line, some are long.
fn prompt(index: usize, way: Way) -> String {
    let number = |salt: usize| (index * 7919 + salt * 104_729) % 97;
    let question = format!("What is {} plus {}?", number(1), number(2));
    let words = match index % 16 {
        15 => LONG,
        _ => SHORT + index % 40,
    };
    let mut text: Vec<String> = (0..words).map(|word| (number(word + 3) + 100).to_string()).collect();
    if way == Way::Repeating {
        let line = format!("The list of number {index} is {} and {}.", number(4), number(5));
        text = vec![line; 4];
        text.push("Repeat the last line.".to_owned());
    }
    format!("{}\n{question}", text.join(" "))
}

/// A number: in an object, a small model that never saw one writes blanks, of which any is as likely as another.
fn schema() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": 200})
}
