//! The turn with tools: the calls of an answer, a person's consent to each, their results, and the next answer.

use std::sync::Arc;

use api::{AnswerState, CallState, ChatView, RunningCall, StoredMessage};
use history::History;
use protocol::{
    CallOrigin, CallRequest, Content, OfferedTool, Result, Role, StoreStart, TellProgress, ToolCall, Toolbox,
};
use tokio::sync::watch;

use crate::answers::Answers;
use crate::core::Core;
use crate::error::Error;
use crate::files::images::keep_image;
use crate::live::tool_turn::ToolTurn;
use crate::request::calls;
use crate::request::tools::is_chosen;

/// The result of a call of a tool that the chat no longer names.
const SWITCHED_OFF: &str = "The tool was not run: the person switched it off in this chat.";

/// The calls of one answer.
struct TurnOfCalls {
    core: Arc<Core>,
    toolbox: Arc<dyn Toolbox>,
    answer: StoredMessage,
    /// The question whose turn they belong to.
    turn: String,
    tools: Vec<OfferedTool>,
    origin: CallOrigin,
}

impl Answers {
    /// Asks about the calls of this answer that have no result, because the process that asked about them or ran them
    /// is gone. No earlier consent covers them, and each is shown whole.
    ///
    /// # Errors
    /// `NotFound` for an answer that is not there, `Busy` while its calls wait or run, `BadRequest` for one without
    /// such a call.
    pub async fn run_calls_again(&self, answer: &str) -> Result<ChatView> {
        self.core.mark_interrupted().await?;
        let message = self.core.history.message(answer).await?;
        if message.calls.iter().any(|call| call.state.is_open()) {
            return Err(history::Error::Busy.into());
        }
        let without_result = self.core.history.calls_without_result(answer).await?;
        if !message.calls.iter().any(|call| without_result.contains(&call.call)) {
            return Err(Error::NothingToAnswer.into());
        }
        let tools = self.core.history.offered_tools(&message.chat).await?;
        let chat = message.chat.clone();
        self.begin_calls(message, tools.unwrap_or_default(), CallOrigin::Again)
            .await?;
        self.core.shown(&chat).await
    }

    /// Begins the next answer without the results of the calls that have none.
    ///
    /// # Errors
    /// Those of [`Answers::answer_tool_results`].
    pub async fn go_on_without_calls(&self, answer: &str) -> Result<ChatView> {
        self.stop_calls(answer);
        let last = self.core.change(self.core.history.close_calls_of(answer)).await?;
        self.answer_tool_results(&last).await
    }

    /// Ends the calls of an answer that wait or run in this process.
    pub(crate) fn stop_calls(&self, answer: &str) {
        self.core.stop_tool_turns(|turn| turn.answer == answer);
    }

    /// Ends the calls in a chat that a question went on without.
    pub(crate) async fn stop_closed_calls(&self, chat: &str) -> Result<()> {
        let answers: Vec<String> = self
            .core
            .tool_turns()
            .values()
            .filter(|turn| turn.chat == chat)
            .map(|turn| turn.answer.clone())
            .collect();
        for answer in answers {
            let message = self.core.history.message(&answer).await?;
            if !message.calls.iter().any(|call| call.state.is_open()) {
                self.stop_calls(&answer);
            }
        }
        Ok(())
    }

    /// Runs the calls of an answer that was written, if it made any that tools of its chat were offered for; the next
    /// answer follows. Otherwise its turn is over.
    pub(crate) async fn follow_up(&self, answer: &str, tools: Vec<OfferedTool>) -> Result<()> {
        let message = self.core.history.message(answer).await?;
        let has_calls = message.state == AnswerState::Complete && calls(&message).next().is_some();
        if has_calls && !tools.is_empty() {
            return self.begin_calls(message, tools, CallOrigin::Answer).await;
        }
        if let Some(toolbox) = self.core.toolbox.get() {
            toolbox.end_turn(&question_of(&self.core.history, answer).await?);
        }
        Ok(())
    }

    async fn begin_calls(&self, answer: StoredMessage, tools: Vec<OfferedTool>, origin: CallOrigin) -> Result<()> {
        let Some(toolbox) = self.core.toolbox.get().cloned() else {
            return Err(Error::NothingToAnswer.into());
        };
        let turn = question_of(&self.core.history, &answer.id).await?;
        let calls = TurnOfCalls {
            core: self.core.clone(),
            toolbox,
            answer,
            turn,
            tools,
            origin,
        };
        let answers = self.clone();
        tokio::spawn(async move {
            let (answer, turn) = (calls.answer.id.clone(), calls.turn.clone());
            let toolbox = calls.toolbox.clone();
            let went_on = match calls.run().await {
                Ok(Some(last)) => answers.answer_tool_results(&last).await.map(|_| true),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            match went_on {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, answer, "the turn of a tool could not go on"),
            }
            toolbox.end_turn(&turn);
        });
        Ok(())
    }
}

impl TurnOfCalls {
    /// Runs them one after the other. Returns the last result, unless a person stopped the turn.
    async fn run(&self) -> Result<Option<String>> {
        let turn = Arc::new(ToolTurn {
            chat: self.answer.chat.clone(),
            answer: self.answer.id.clone(),
            stop: watch::Sender::new(false),
        });
        self.core.tool_turns().insert(turn.answer.clone(), turn.clone());
        let _listed = Listed(&self.core, &turn);
        let insists = self.insists().await?;
        let mut is_off = false;
        for call in calls(&self.answer) {
            is_off |= self.run_call(call, turn.stop.subscribe()).await?;
            if *turn.stop.borrow() {
                return Ok(None);
            }
        }
        let last = self.core.history.close_calls_of(&self.answer.id);
        let last = self.core.change(last).await?;
        Ok((!is_off || !insists).then_some(last))
    }

    /// True if the model was told in this turn that a tool is switched off: one that calls it again would go on for
    /// ever.
    async fn insists(&self) -> Result<bool> {
        let branch = self.core.history.branch(&self.answer.id).await?;
        let turn = branch.iter().rev().take_while(|message| message.role != Role::User);
        let mut results = turn.filter(|message| message.role == Role::Tool);
        Ok(results.any(|result| {
            result
                .parts
                .iter()
                .any(|part| part.content == Content::text(SWITCHED_OFF))
        }))
    }

    /// Runs a call, unless it has its result: from an earlier attempt, another process, or because the person went on
    /// without it. True if its tool is switched off in this chat, which the model was not told.
    async fn run_call(&self, call: &ToolCall, stop: watch::Receiver<bool>) -> Result<bool> {
        let (history, answer) = (&self.core.history, &self.answer.id);
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name) else {
            let content = [Content::text(format!("There is no tool called {}.", call.name))];
            let ended = history.end_call(answer, &call.id, CallState::Failed, &content).await;
            return self.unless_closed(ended).map(|_| false);
        };
        if !is_chosen(&self.core, &self.answer.chat, &tool.of).await? {
            let content = [Content::text(SWITCHED_OFF)];
            let ended = history.end_call(answer, &call.id, CallState::Refused, &content).await;
            return self.unless_closed(ended).map(|_| true);
        }
        let asked = history.ask_call(answer, &call.id, &tool.of, &tool.server_name, &self.core.owner);
        let Some(attempt) = self.unless_closed(asked.await)? else {
            return Ok(false);
        };
        let request = CallRequest {
            chat: self.answer.chat.clone(),
            turn: self.turn.clone(),
            answer: answer.clone(),
            call: call.clone(),
            attempt,
            tool: tool.of.clone(),
            origin: self.origin,
        };
        let running = Running {
            core: &self.core,
            answer,
            call: &call.id,
        };
        let result = self
            .toolbox
            .run(request, self.store_start(call), running.tell(), stop)
            .await;
        drop(running);
        let mut content = result.content;
        for image in &result.images {
            content.push(match keep_image(&self.core, image, &tool.of.tool).await {
                Ok(image) => image,
                Err(error) => Content::text(format!("\n[an image that cannot be shown: {error}]")),
            });
        }
        let ended = history.end_call(answer, &call.id, result.end.into(), &content);
        self.unless_closed(ended.await).map(|_| false)
    }

    /// Tells everybody of a step; `None` if the call had its result already.
    fn unless_closed<T>(&self, step: history::Result<T>) -> Result<Option<T>> {
        match step {
            Ok(done) => {
                self.core.changed();
                Ok(Some(done))
            }
            Err(history::Error::HasResult) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn store_start(&self, call: &ToolCall) -> StoreStart {
        let (core, answer, call) = (self.core.clone(), self.answer.id.clone(), call.clone());
        Box::new(move |arguments| {
            Box::pin(async move {
                let written = (arguments != call.arguments).then_some(arguments);
                core.change(core.history.start_call(&answer, &call.id, written)).await
            })
        })
    }
}

/// The progress of a call, which is forgotten when it ends, however it does.
struct Running<'a> {
    core: &'a Core,
    answer: &'a str,
    call: &'a str,
}

impl Running<'_> {
    fn tell(&self) -> TellProgress {
        let (running, answer, call) = (
            self.core.running_calls.clone(),
            self.answer.to_owned(),
            self.call.to_owned(),
        );
        Arc::new(move |progress| {
            running.send_modify(|known| {
                known.retain(|other| other.answer != answer || other.call != call);
                known.push(RunningCall {
                    answer: answer.clone(),
                    call: call.clone(),
                    progress,
                });
            });
        })
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.core.running_calls.send_if_modified(|known| {
            let count = known.len();
            known.retain(|other| other.answer != self.answer || other.call != self.call);
            known.len() != count
        });
    }
}

/// Takes the calls of an answer off the list when they end, however they do.
struct Listed<'a>(&'a Core, &'a Arc<ToolTurn>);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.tool_turns().remove(&self.1.answer);
        self.0.changed();
    }
}

/// The question whose turn a message belongs to.
async fn question_of(history: &History, message: &str) -> Result<String> {
    let branch = history.branch(message).await?;
    let question = branch.iter().rev().find(|message| message.role == Role::User);
    Ok(question.map_or_else(|| message.to_owned(), |question| question.id.clone()))
}
