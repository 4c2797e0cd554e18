use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use protocol::{Content, EndedBy, EngineEvent, Error, ErrorCode, FinishReason, Message, Request, Role};

use crate::app::engine_and_model;
use crate::input::{
    check_vision, piped_text, read_answer_prefix, read_json, read_messages, read_tools, ConversationArgs, DocumentArgs,
    EnterKey, ImageArgs, Images, LimitArgs, ModelArg, SamplingArgs,
};
use crate::output::{exit_code, AnswerLines, Printer, Stream};

/// Examples below the help of `ponder ask`.
pub const EXAMPLES: &str = r#"Examples:
  git diff | ponder ask "Write a commit message"
  ponder ask --image receipt.jpg --schema receipt.json "Extract the items"
  ponder ask -m pebble --json "2+3""#;

/// `ponder ask`.
#[derive(Args)]
pub struct AskArgs {
    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    conversation: ConversationArgs,
    /// Continue a conversation from a JSON list of OpenAI messages
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Continue a response from a file, for example the output of --json
    #[arg(long = "continue", value_name = "FILE")]
    answer_prefix: Option<PathBuf>,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    /// Tools the model can call, as a JSON list in OpenAI format
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Make the response JSON that follows this JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Print thinking to standard output instead of standard error
    #[arg(long, conflicts_with = "json")]
    show_thinking: bool,
    /// Write the response to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Message to send, after the text on standard input
    #[arg(value_name = "MESSAGE")]
    message: Option<String>,
}

/// Sends a message and prints the response, which the history does not keep.
///
/// # Errors
/// When the model cannot respond, or a file cannot be read.
pub async fn run(args: AskArgs) -> Result<ExitCode> {
    let out = match &args.output {
        Some(path) => {
            // It may be read before, and stays as it is if there is no response.
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
            Stream::File(Arc::new(file))
        }
        None => Stream::Out,
    };
    // A file that is no response is reported before a message that is missing: with one, it would still be of no use.
    let answer_prefix = args.answer_prefix.as_deref().map(read_answer_prefix).transpose()?;
    let mut images = Images::default();
    let messages = conversation(&args, &mut images)?;
    let tools = read_tools(args.tools.as_deref())?;
    let schema = args
        .schema
        .as_deref()
        .map(|path| read_json(path, "schema file", "a JSON Schema"));
    let schema = schema.transpose()?;
    let (engine, model) = engine_and_model(args.model.model.as_deref()).await?;
    if let Some(folder) = model.folder() {
        hub::ModelFolder::open().used(&folder.reference);
    }
    let mut request = Request::new(model, messages);
    request.tools = tools;
    request.schema = schema;
    request.thinking = args.conversation.thinking.map(Into::into);
    request.sampling = args.sampling.sampling();
    request.max_tokens = args.limits.max_tokens;
    request.thinking_budget = args.conversation.thinking_budget;
    request.context = args.limits.context_length;
    request.answer_prefix = answer_prefix;
    request.stop = args.limits.stop;
    request.kv_bits = args.limits.kv_bits.kv_bits;
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
            std::process::exit(exit_code::STOPPED.into());
        }
    });
    let thoughts = if args.show_thinking { out.clone() } else { Stream::Err };
    let mut printer = Printer::new(out.clone(), thoughts);
    let (mut key, mut hinted) = (EnterKey::new(), false);
    let (mut answer, mut exit_code, mut cut) = (AnswerLines::default(), 0, None);
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
            EngineEvent::Done(done) => {
                // A response without text is one, too.
                out.write("")?;
                match done.finish_reason {
                    FinishReason::Cancelled => exit_code = exit_code::STOPPED,
                    FinishReason::Length => {
                        exit_code = exit_code::CUT;
                        cut = Some(cut_remark(&done.ended_by));
                    }
                    _ => {}
                }
            }
            EngineEvent::Delta {
                content: Content::Thinking { .. },
                ..
            } if !std::mem::replace(&mut hinted, true) => key.hint(),
            _ => {}
        }
        if args.json {
            let lines = answer.lines(&event, Instant::now());
            lines.iter().try_for_each(|line| out.write(&format!("{line}\n")))?;
        } else {
            printer.print(&event)?;
        }
    }
    if let Some(remark) = cut {
        eprintln!("({remark})");
    }
    Ok(ExitCode::from(exit_code))
}

/// The reason why a response is not complete, for people.
fn cut_remark(ended_by: &EndedBy) -> &'static str {
    match ended_by {
        EndedBy::TokenLimit => "response cut off at --max-tokens",
        EndedBy::Context => "response cut off, because the context is full",
        _ => "response cut off",
    }
}

fn conversation(args: &AskArgs, images: &mut Images) -> Result<Vec<Message>> {
    let system = args
        .conversation
        .system
        .iter()
        .map(|text| Message::text(Role::System, text));
    let mut conversation: Vec<Message> = system.collect();
    if let Some(path) = &args.messages {
        conversation.extend(read_messages(path, Some(images))?);
    }
    // Input that an option reads is not text beside the message.
    let is_taken = args.images.read_stdin() || args.documents.read_stdin();
    let input = match is_taken || (args.message.is_none() && args.messages.is_some()) {
        true => None,
        false => piped_text()?,
    };
    let words = [input.as_deref(), args.message.as_deref()];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    push_message(&mut conversation, &words.join("\n\n"));
    args.documents.put_into(&mut conversation)?;
    args.images.put_into(&mut conversation, images)?;
    if conversation.iter().all(|message| message.role == Role::System) {
        let message = "there is no message to send. Pass one, or a conversation with --messages";
        return Err(Error::new(ErrorCode::BadRequest, message).into());
    }
    Ok(conversation)
}

/// A message of blanks alone is none.
fn push_message(conversation: &mut Vec<Message>, text: &str) {
    if !text.trim().is_empty() {
        conversation.push(Message::text(Role::User, text));
    }
}
