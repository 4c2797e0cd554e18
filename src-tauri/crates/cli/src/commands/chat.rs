use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result};
use api::{AnswerBody, AnswerState, Position};
use clap::Args;
use protocol::{Content, Error, ErrorCode};
use rustyline::error::ReadlineError;
use rustyline::DefaultEditor;

use crate::app::App;
use crate::input::{read_image, DetailArgs, EnterKey, ModelArg, SamplingArgs, ThinkingArg};
use crate::output::{self, Printer};

/// `ponder chat`.
#[derive(Args)]
pub struct ChatArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Go on with this chat and its own settings instead of beginning one (ids: `ponder history`)
    #[arg(long, value_name = "ID", conflicts_with_all = ["model", "system", "thinking", "thinking_budget", "temperature", "top_p", "top_k", "min_p", "seed"])]
    chat: Option<String>,
    /// Instructions that stand before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The Thinking switch; without it the model's own default
    #[arg(long, value_name = "on|off|low|medium|high", hide_possible_values = true)]
    thinking: Option<ThinkingArg>,
    /// End a thought after this many tokens, so that the answer follows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    thinking_budget: Option<u32>,
    #[command(flatten)]
    detail: DetailArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// Talks until the end of input, in the same history as the window.
///
/// # Errors
/// When the history cannot be opened or the chat does not exist. A failed answer is printed and the conversation goes
/// on.
pub async fn run(args: ChatArgs) -> Result<()> {
    let app = App::open().await?;
    // The last message that was shown here: a question goes after it, even if another program has added to the chat.
    let mut last: Option<String> = None;
    let (mut chat, asked) = match args.chat {
        Some(id) => {
            let view = app.chat.chats().open(&id).await?;
            last = view.messages.last().map(|message| message.id.clone());
            (Some(view.summary.id), view.settings.model)
        }
        None => (None, args.model.model),
    };
    let model = app.model(asked.as_deref()).await?;
    let mut settings = app.chat.settings().get().await?.new_chat();
    // As it was found: a folder's path that is relative means nothing to the window.
    settings.model = asked.map(|_| model.reference());
    settings.thinking = args.thinking.map(Into::into).or(settings.thinking);
    settings.thinking_budget = args.thinking_budget.or(settings.thinking_budget);
    settings.system_prompt = args.system.unwrap_or_default();
    settings.sampling = args.sampling.sampling();
    settings.image_detail = args.detail.detail().unwrap_or(settings.image_detail);
    if std::io::stdin().is_terminal() {
        println!(
            "{}",
            output::soft(&format!(
                "{} · /quit or Ctrl+D ends, Ctrl+C stops an answer, /continue continues it, /image FILE shows an image; the chat is kept",
                model.reference()
            ))
        );
    }
    let mut input = Input::new()?;
    // Images for the next question.
    let mut shown: Vec<Content> = Vec::new();
    while let Some(line) = input.next_line()? {
        let outcome = match line {
            Line::Question(question) => {
                // A chat without a question is not worth keeping, so it begins with the first.
                let id = match &chat {
                    Some(id) => id.clone(),
                    None => chat
                        .insert(app.chat.chats().create(settings.clone()).await?.summary.id)
                        .clone(),
                };
                let content: Vec<Content> = std::mem::take(&mut shown)
                    .into_iter()
                    .chain([Content::text(question)])
                    .collect();
                ask(&app, &id, &content, &mut last).await
            }
            Line::Image(path) => show(&app, &path).await.map(|image| shown.push(image)),
            Line::Continue => continue_answer(&app, chat.as_deref()).await,
        };
        match outcome {
            // A person reads the failure and goes on; a script would take the next answer for the one to this question.
            Err(error) if matches!(input, Input::Person(_)) => eprintln!("ponder: {}", output::sentence(&error)),
            outcome => outcome?,
        }
    }
    app.chat.shut_down().await;
    Ok(())
}

/// Keeps an image for the next question.
async fn show(app: &App, path: &str) -> Result<Content> {
    let (bytes, name) = read_image(Path::new(path))?;
    let image = app.chat.files().add_image_part(bytes.to_vec(), &name).await?;
    if let Content::Image { width, height, .. } = &image {
        println!(
            "{}",
            output::soft(&format!("{name}, {width} × {height}: shown with the next question"))
        );
    }
    Ok(image)
}

async fn ask(app: &App, chat: &str, question: &[Content], last: &mut Option<String>) -> Result<()> {
    let position = last.clone().map_or(Position::Beginning, Position::After);
    let turn = app.chat.answers().send(chat, question, &position).await?;
    let printed = print_answer(app, &turn.answer.id).await;
    // A question that does not fit the context is taken back.
    if app.chat.chats().message(&turn.answer.id).await.is_ok() {
        *last = Some(turn.answer.id);
    }
    printed
}

/// Continues the last answer; it is printed from its beginning, so that it can be read in one piece.
async fn continue_answer(app: &App, chat: Option<&str>) -> Result<()> {
    let last = match chat {
        Some(chat) => app.chat.chats().get(chat).await?.messages.pop(),
        None => None,
    };
    let last = last.ok_or_else(|| {
        Error::new(
            ErrorCode::BadRequest,
            "there is no answer yet that could be continued; ask something first",
        )
    })?;
    app.chat.answers().continue_answer(&last.id).await?;
    print_answer(app, &last.id).await
}

async fn print_answer(app: &App, message: &str) -> Result<()> {
    let mut events = app.chat.answers().attach(message, 0).await?;
    let mut printer = Printer::default();
    let (mut key, mut hinted) = (EnterKey::new(), false);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            _ = tokio::signal::ctrl_c() => {
                app.chat.answers().stop(message).await?;
                continue;
            }
            () = key.pressed() => {
                app.chat.answers().answer_now(message).await?;
                continue;
            }
        };
        // The first event of a continued answer holds its existing part, which comes again once the model has read it.
        let again = event.as_ref().is_some_and(|event| event.seq > 1);
        match event.map(|event| event.body) {
            Some(AnswerBody::Continued { parts, .. }) if again => {
                // Later the hint would stand in the middle of the thought.
                let thinks = matches!(parts.last(), Some(part) if matches!(part.content, Content::Thinking { .. }));
                if thinks && !std::mem::replace(&mut hinted, true) {
                    key.hint();
                }
                parts
                    .iter()
                    .try_for_each(|part| print_part(&mut printer, &part.content))?;
            }
            Some(AnswerBody::Delta { content, .. }) => {
                if matches!(content, Content::Thinking { .. }) && !std::mem::replace(&mut hinted, true) {
                    key.hint();
                }
                print_part(&mut printer, &content)?;
            }
            Some(AnswerBody::Notice { notice }) => printer.remark(&notice.message)?,
            Some(AnswerBody::Finished { message }) => {
                printer.end()?;
                match (message.state, message.error) {
                    (AnswerState::Failed, Some(error)) => return Err(error.into()),
                    (AnswerState::Stopped, _) if message.continuable => {
                        printer.remark("stopped; /continue continues it")?;
                    }
                    (AnswerState::Stopped, _) => printer.remark("stopped")?,
                    _ => {}
                }
                return Ok(());
            }
            Some(AnswerBody::Waiting { models }) => printer.remark(&format!(
                "it waits for {} to finish: they do not fit into memory together; Ctrl+C stops waiting",
                models.join(", ")
            ))?,
            Some(AnswerBody::Progress { .. } | AnswerBody::Continued { .. }) => {}
            Some(AnswerBody::Detached) | None => {
                return Err(Error::new(
                    ErrorCode::Engine,
                    "the answer was cut off; what arrived is in the history",
                )
                .into())
            }
        }
    }
}

/// A call is a remark here: the person reads a conversation, not its protocol.
fn print_part(printer: &mut Printer, content: &Content) -> io::Result<()> {
    match content {
        Content::ToolCall { call } => printer.remark(&format!("the model calls {}({})", call.name, call.arguments)),
        Content::Text { .. }
        | Content::Thinking { .. }
        | Content::Data { .. }
        | Content::Image { .. }
        | Content::File { .. } => printer.part(content),
    }
}

/// A line of input.
enum Line {
    Question(String),
    /// Continues the last answer.
    Continue,
    /// Shows the image in this file with the next question.
    Image(String),
}

/// Questions from a person at a terminal, or one per line from a pipe.
enum Input {
    Person(Box<DefaultEditor>),
    Pipe(std::io::Lines<std::io::StdinLock<'static>>),
}

impl Input {
    fn new() -> Result<Self> {
        if std::io::stdin().is_terminal() {
            Ok(Self::Person(Box::new(
                DefaultEditor::new().context("the terminal cannot be read")?,
            )))
        } else {
            Ok(Self::Pipe(std::io::stdin().lines()))
        }
    }

    /// The next question or command; `None` at the end.
    fn next_line(&mut self) -> Result<Option<Line>> {
        loop {
            let line = match self {
                Self::Person(editor) => match editor.readline("> ") {
                    Ok(line) => {
                        editor
                            .add_history_entry(&line)
                            .context("the line could not be remembered")?;
                        Some(line)
                    }
                    Err(ReadlineError::Eof | ReadlineError::Interrupted) => None,
                    Err(error) => return Err(error).context("the terminal cannot be read"),
                },
                Self::Pipe(lines) => lines.next().transpose().context("standard input is not text")?,
            };
            match line.as_deref().map(str::trim) {
                None | Some("/quit" | "/exit") => return Ok(None),
                Some("") => {}
                Some("/continue") => return Ok(Some(Line::Continue)),
                Some(command)
                    if command
                        .strip_prefix("/image")
                        .is_some_and(|rest| rest.starts_with(char::is_whitespace)) =>
                {
                    return Ok(Some(Line::Image(command["/image".len()..].trim().to_owned())));
                }
                Some(question) => return Ok(Some(Line::Question(question.to_owned()))),
            }
        }
    }
}
