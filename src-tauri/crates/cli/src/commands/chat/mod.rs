mod input;

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use api::{AnswerBody, AnswerState, ChatSettings, Position};
use clap::{Args, Command, Id};
use protocol::{Content, Error, ErrorCode};

use self::input::{Input, Line, COMMANDS};
use crate::app::App;
use crate::input::{
    read_document, read_image, ConversationArgs, DetailArgs, EnterKey, LimitArgs, ModelArg, SamplingArgs,
};
use crate::output::{self, Printer, Stream};

/// Examples below the help of `ponder chat`.
pub const EXAMPLES: &str = r#"Examples:
  ponder chat
  ponder chat -m mlx-community/Qwen3-4B-4bit -s "Reply in French"
  ponder chat --chat ID"#;

/// `ponder chat`.
#[derive(Args)]
pub struct ChatArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Continue this chat with its own settings ('ponder history' lists IDs)
    #[arg(long, value_name = "ID", conflicts_with_all = of_new_chats())]
    chat: Option<String>,
    #[command(flatten)]
    settings: SettingArgs,
}

/// The settings of a new chat, which one that is continued has already.
#[derive(Args)]
struct SettingArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    #[command(flatten)]
    detail: DetailArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The options that a continued chat refuses. Each is named, because clap leaves the group of a struct empty that
/// flattens others, and its error for a group lists options that nobody gave. A chat has no device of its own.
fn of_new_chats() -> Vec<Id> {
    let options = SettingArgs::augment_args(ModelArg::augment_args(Command::new("chat")));
    let ids = options.get_arguments().map(|option| option.get_id().clone());
    ids.filter(|id| id != "device").collect()
}

/// Talks until the end of input, in the same history as the window.
///
/// # Errors
/// When the history cannot be opened or the chat does not exist. A failed response is printed and the conversation goes
/// on.
pub async fn run(args: ChatArgs) -> Result<()> {
    args.model.device.apply();
    let app = App::open().await?;
    // The last message that was shown here: the next goes after it, even if another program has added to the chat.
    let mut last: Option<String> = None;
    let (id, asked) = match args.chat {
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
    let SettingArgs {
        conversation,
        detail,
        sampling,
        limits,
    } = args.settings;
    settings.thinking = conversation.thinking.map(Into::into).or(settings.thinking);
    settings.thinking_budget = conversation.thinking_budget.or(settings.thinking_budget);
    settings.system_prompt = conversation.system.unwrap_or_default();
    settings.sampling = sampling.sampling();
    settings.image_detail = detail.detail().unwrap_or(settings.image_detail);
    settings.max_tokens = limits.max_tokens.or(settings.max_tokens);
    settings.context = limits.context_length.or(settings.context);
    settings.kv_bits = limits.kv_bits.kv_bits.or(settings.kv_bits);
    if !limits.stop.is_empty() {
        settings.stop = limits.stop;
    }
    let mut input = Input::new()?;
    if input.is_person() {
        let hint = format!("{} · Type /help for commands. This chat is saved.", model.reference());
        println!("{}", Stream::Out.soft(&hint));
    }
    let mut talk = Talk {
        app,
        settings,
        chat: id,
        last,
        attached: Vec::new(),
    };
    while let Some(line) = input.next_line()? {
        match talk.obey(line).await {
            // A person reads the failure and goes on; a script would take the next response for the one to this message.
            Err(error) if input.is_person() => eprintln!("ponder: {}", output::sentence(&error)),
            outcome => outcome?,
        }
    }
    talk.app.chat.shut_down().await;
    Ok(())
}

/// A conversation.
struct Talk {
    app: App,
    /// The settings of a chat that begins.
    settings: ChatSettings,
    /// The chat; one without a message is not worth keeping, so it begins with the first.
    chat: Option<String>,
    /// The last message that was shown.
    last: Option<String>,
    /// Images and files for the next message.
    attached: Vec<Content>,
}

impl Talk {
    async fn obey(&mut self, line: Line) -> Result<()> {
        match line {
            Line::Message(message) => self.send(message).await,
            Line::Help => Ok(output::text(COMMANDS)?),
            Line::Model(name) => self.change_model(&name).await,
            Line::Image(path) => {
                self.attached.push(show(&self.app, &path).await?);
                Ok(())
            }
            Line::File(path) => {
                let (bytes, name) = read_document(Path::new(&path)).with_context(|| path.clone())?;
                let file = self.app.chat.files().add_file(bytes, &name).await?;
                println!(
                    "{}",
                    Stream::Out.soft(&format!("Attached {name} to your next message."))
                );
                self.attached.push(file);
                Ok(())
            }
            Line::Continue => {
                let answer = self.last_response("continue").await?;
                self.app.chat.answers().continue_answer(&answer).await?;
                // It is printed from its beginning, so that it can be read in one piece.
                print_answer(&self.app, &answer).await
            }
            Line::Retry => {
                let answer = self.last_response("regenerate").await?;
                let view = self.app.chat.answers().regenerate(&answer, None).await?;
                let written = view.messages.last().map(|message| message.id.clone());
                let written = written.ok_or_else(|| nothing_yet("regenerate"))?;
                self.last = Some(written.clone());
                print_answer(&self.app, &written).await
            }
        }
    }

    async fn send(&mut self, message: String) -> Result<()> {
        let chat = match &self.chat {
            Some(chat) => chat.clone(),
            None => {
                let begun = self.app.chat.chats().create(self.settings.clone()).await?;
                self.chat.insert(begun.summary.id).clone()
            }
        };
        let mut content = std::mem::take(&mut self.attached);
        content.push(Content::text(message));
        let position = self.last.clone().map_or(Position::Beginning, Position::After);
        let turn = match self.app.chat.answers().send(&chat, &content, &position).await {
            Ok(turn) => turn,
            Err(error) => {
                // Nothing was stored, so what is attached goes with the next message.
                content.pop();
                self.attached = content;
                return Err(error.into());
            }
        };
        let printed = print_answer(&self.app, &turn.answer.id).await;
        // A message that does not fit the context is taken back.
        if self.app.chat.chats().message(&turn.answer.id).await.is_ok() {
            self.last = Some(turn.answer.id);
        }
        printed
    }

    /// Has another model respond from now on.
    async fn change_model(&mut self, name: &str) -> Result<()> {
        let model = self.app.model(Some(name)).await?.reference();
        if let Some(chat) = &self.chat {
            let mut settings = self.app.chat.chats().get(chat).await?.settings;
            settings.model = Some(model.clone());
            self.app.chat.chats().set_settings(chat, &settings).await?;
        }
        println!("{}", Stream::Out.soft(&format!("Switched to {model}.")));
        self.settings.model = Some(model);
        Ok(())
    }

    /// The id of the response at the end of the chat; `deed` is what is to become of it.
    async fn last_response(&self, deed: &str) -> Result<String> {
        let last = match &self.chat {
            Some(chat) => self.app.chat.chats().get(chat).await?.messages.pop(),
            None => None,
        };
        Ok(last.ok_or_else(|| nothing_yet(deed))?.id)
    }
}

fn nothing_yet(deed: &str) -> Error {
    let message = format!("there is no response to {deed} yet. Send a message first");
    Error::new(ErrorCode::BadRequest, message)
}

/// Keeps an image for the next message.
async fn show(app: &App, path: &str) -> Result<Content> {
    let (bytes, name) = read_image(Path::new(path))?;
    let image = app.chat.files().add_image_part(bytes.to_vec(), &name).await?;
    if let Content::Image { width, height, .. } = &image {
        let hint = format!("Attached {name} ({width} × {height}) to your next message.");
        println!("{}", Stream::Out.soft(&hint));
    }
    Ok(image)
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
        // The first event of a continued response holds its existing part, which comes again once the model has read it.
        let again = event.as_ref().is_some_and(|event| event.seq > 1);
        match event.map(|event| event.body) {
            Some(AnswerBody::Continued { parts, .. }) if again => {
                // Later the hint would interrupt the thinking.
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
                        printer.remark("stopped. Type /continue to continue")?;
                    }
                    (AnswerState::Stopped, _) => printer.remark("stopped")?,
                    _ => {}
                }
                return Ok(());
            }
            Some(AnswerBody::Waiting { models }) => printer.remark(&format!(
                "waiting for {}, because both models don't fit in memory at once. Press Ctrl+C to stop",
                models.join(", ")
            ))?,
            Some(AnswerBody::Progress { .. } | AnswerBody::Continued { .. }) => {}
            Some(AnswerBody::Detached) | None => {
                let message = "lost track of this response. Everything received so far is saved";
                return Err(Error::new(ErrorCode::Engine, message).into());
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
        | Content::File { .. }
        | Content::Passages { .. } => printer.part(content),
    }
}
