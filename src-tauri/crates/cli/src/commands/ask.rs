use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use protocol::{Content, EngineEvent, Error, ErrorCode, FinishReason, KvBits, Message, Request, Role};

use crate::app::engine_and_model;
use crate::input::{
    check_vision, kv_bits, read_answer_prefix, read_json, read_messages, read_tools, DocumentArgs, EnterKey, ImageArgs,
    Images, ModelArg, SamplingArgs, ThinkingArg,
};
use crate::output::{self, AnswerLines, Printer};

/// `ponder ask`.
#[derive(Args)]
pub struct AskArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Instructions that stand before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The Thinking switch; without it the model's own default
    #[arg(long, value_name = "on|off|low|medium|high", hide_possible_values = true)]
    thinking: Option<ThinkingArg>,
    /// End the thought after this many tokens, so that the answer follows
    #[arg(long, value_name = "N")]
    thinking_budget: Option<u32>,
    /// A conversation to continue, as a JSON list in the OpenAI chat form
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// An answer to the conversation that is to be continued: its tokens, its words, an assistant's message, or what
    /// --json printed
    #[arg(long = "continue", value_name = "FILE")]
    answer_prefix: Option<PathBuf>,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    /// Tools the model may call, as a JSON list in the OpenAI form
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// A JSON Schema; the answer is JSON that follows it
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// At most this many tokens, thinking included
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// Use at most this many tokens of the context, so that a long conversation takes less memory
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// End the answer when this text appears; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Keep keys and values of full attention in 4 or 8 bits, so that a long conversation takes less memory
    #[arg(long, value_name = "4|8", value_parser = kv_bits)]
    kv_bits: Option<KvBits>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The question; without one it is read from standard input
    prompt: Option<String>,
}

/// The exit code after Ctrl+C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Asks and prints the answer, which the history does not keep.
///
/// # Errors
/// When the model cannot answer, or a file cannot be read.
pub async fn run(args: AskArgs) -> Result<ExitCode> {
    let mut images = Images::default();
    let messages = conversation(&args, &mut images)?;
    let answer_prefix = args.answer_prefix.as_deref().map(read_answer_prefix).transpose()?;
    let tools = read_tools(args.tools.as_deref())?;
    let schema = args.schema.as_deref();
    let schema = schema
        .map(|path| read_json(path, "schema file", "a JSON Schema"))
        .transpose()?;
    let (engine, model) = engine_and_model(args.model.model.as_deref()).await?;
    if let Some(folder) = model.folder() {
        hub::ModelFolder::open().used(&folder.reference);
    }
    let mut request = Request::new(model, messages);
    request.tools = tools;
    request.schema = schema;
    request.thinking = args.thinking.map(Into::into);
    request.sampling = args.sampling.sampling();
    request.max_tokens = args.max_tokens;
    request.thinking_budget = args.thinking_budget;
    request.context = args.context;
    request.answer_prefix = answer_prefix;
    request.stop = args.stop;
    request.kv_bits = args.kv_bits;
    if !images.0.is_empty() {
        request.image_detail = args.images.detail().await;
    }
    request.images = images.0;
    check_vision(engine.as_ref(), &request).await?;

    let mut job = engine.generate(request);
    let cancel = job.cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
        // Pressed again, it does not wait for the end of a step.
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(INTERRUPTED.into());
        }
    });
    let (mut printer, mut key, mut hinted) = (Printer::default(), EnterKey::new(), false);
    let (mut answer, mut interrupted) = (AnswerLines::default(), false);
    loop {
        let event = tokio::select! {
            event = job.events.recv() => event,
            () = key.pressed() => {
                job.end_thinking.answer_now();
                continue;
            }
        };
        let Some(event) = event else { break };
        match &event {
            EngineEvent::Failed(error) => return Err(args.documents.explain(error.clone()).into()),
            EngineEvent::Done(done) => interrupted = done.finish_reason == FinishReason::Cancelled,
            EngineEvent::Delta {
                content: Content::Thinking { .. },
                ..
            } if !std::mem::replace(&mut hinted, true) => key.hint(),
            _ => {}
        }
        if args.json {
            answer.lines(&event, Instant::now()).iter().try_for_each(output::line)?;
        } else {
            printer.print(&event)?;
        }
    }
    Ok(if interrupted {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

fn conversation(args: &AskArgs, images: &mut Images) -> Result<Vec<Message>> {
    let mut conversation: Vec<Message> = args
        .system
        .iter()
        .map(|text| Message::text(Role::System, text))
        .collect();
    if let Some(path) = &args.messages {
        conversation.extend(read_messages(path, Some(images))?);
    }
    match &args.prompt {
        Some(prompt) => push_question(&mut conversation, prompt),
        None if args.messages.is_none() && !args.images.read_stdin() && !std::io::stdin().is_terminal() => {
            let mut prompt = String::new();
            std::io::stdin()
                .read_to_string(&mut prompt)
                .context("standard input is not text")?;
            push_question(&mut conversation, prompt.trim_end_matches('\n'));
        }
        None => {}
    }
    args.documents.put_into(&mut conversation)?;
    args.images.put_into(&mut conversation, images)?;
    if conversation.iter().all(|message| message.role == Role::System) {
        return Err(Error::new(
            ErrorCode::BadRequest,
            "there is no question; pass one, or a conversation with --messages",
        )
        .into());
    }
    Ok(conversation)
}

/// A question of blanks alone is none.
fn push_question(conversation: &mut Vec<Message>, text: &str) {
    if !text.trim().is_empty() {
        conversation.push(Message::text(Role::User, text));
    }
}
