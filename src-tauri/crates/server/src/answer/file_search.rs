//! Searches of the user's documents that the server runs for the model while it writes one response: the model calls a
//! function, and goes on with the passages.

use std::collections::VecDeque;

use futures::future::BoxFuture;
use futures::FutureExt;
use protocol::{Content, Coverage, Message, PassageRequest, QuotedPassage, Request, Role, ToolCall};
use serde_json::Value;

use crate::answer::allowed_documents::AllowedDocuments;
use crate::answer::event_reader::EventOutcome;
use crate::answer::reply_event::{End, ReplyEvent, SearchEvent, StopCause};
use crate::figures::tokens::Tokens;
use crate::http::ids::{call_id, SEARCH_PREFIX};
use crate::request::tools::FILE_SEARCH;

/// Searches for one response at most.
pub(crate) const MOST_SEARCHES: u32 = 8;

/// Passages that a search leaves out because the model has them. Earlier ones may come again.
const MOST_GIVEN: usize = 200;

/// Tokens that have to be free for a search: a passage takes about as many.
const LEAST_ROOM: u32 = 250;

/// The context of a model that does not tell its own.
const UNKNOWN_CONTEXT: u32 = 8192;

/// The searches that a request allows.
#[derive(Debug)]
pub(crate) struct FileSearchPlan {
    pub(crate) documents: AllowedDocuments,
    /// The ids of the collections.
    pub(crate) collections: Vec<String>,
    /// Passages for one search at most.
    pub(crate) most_results: usize,
    /// Searches at most.
    pub(crate) searches: u32,
    /// The context of the model, if it is known.
    pub(crate) context: Option<u32>,
    /// The passages that the model sees of earlier responses.
    pub(crate) given: Vec<QuotedPassage>,
    /// The conversation without the wish for a call, if there is such a wish: it is fulfilled after the first one.
    pub(crate) after_call: Option<Vec<Message>>,
}

impl FileSearchPlan {
    /// The searches for the answer to this request.
    pub(crate) fn begin(mut self, request: &Request) -> FileSearch {
        let mut next = request.clone();
        next.call_required = false;
        if let Some(messages) = self.after_call.take() {
            next.messages = messages;
        }
        FileSearch {
            plan: self,
            request: next,
            turn: Turn::default(),
            used: Tokens::default(),
        }
    }
}

/// The searches for one answer, which has a turn of the model before each search and one after the last.
pub(crate) struct FileSearch {
    plan: FileSearchPlan,
    /// The request of the next turn.
    request: Request,
    turn: Turn,
    /// The tokens of the turns that have ended.
    used: Tokens,
}

/// One turn of the model.
#[derive(Default)]
struct Turn {
    thought: String,
    text: String,
    /// The searches that it called and that are not made yet.
    waiting: VecDeque<ToolCall>,
    /// The calls of searches that are made, and their results.
    made: Vec<(ToolCall, Content)>,
    running: Option<Running>,
    /// True if it called a function of the client, which ends the response.
    calls_client: bool,
    /// Its end, kept back while searches are made.
    end: Option<End>,
    /// Tokens of the context that are free.
    room: u32,
}

/// A search that is being made.
struct Running {
    call: ToolCall,
    found: BoxFuture<'static, protocol::Result<Vec<QuotedPassage>>>,
}

/// The next step of an answer.
pub(crate) enum Step {
    /// The model's turn goes on.
    Wait,
    /// There is something to report.
    Say(ReplyEvent),
    /// The model has another turn.
    Ask(Box<Request>),
}

impl FileSearch {
    /// Takes the calls of searches out of an outcome, and keeps the end back that follows them.
    pub(crate) fn read(&mut self, outcome: EventOutcome) -> EventOutcome {
        let events = outcome.events.into_iter().filter_map(|event| self.keep_back(event));
        EventOutcome {
            events: events.collect(),
            ..outcome
        }
    }

    fn keep_back(&mut self, event: ReplyEvent) -> Option<ReplyEvent> {
        match &event {
            ReplyEvent::Thinking(text) => self.turn.thought.push_str(text),
            ReplyEvent::Text { text, .. } => self.turn.text.push_str(text),
            ReplyEvent::CutCall(call) if call.name == FILE_SEARCH => return None,
            ReplyEvent::CutCall(_) => self.turn.calls_client = true,
            ReplyEvent::Search(_) => {}
            ReplyEvent::Call(call) if call.name != FILE_SEARCH => self.turn.calls_client = true,
            ReplyEvent::Call(_) => {
                if let ReplyEvent::Call(call) = event {
                    self.turn.waiting.push_back(call);
                }
                return None;
            }
            ReplyEvent::End(end) => {
                let end = end.clone();
                let context = self.plan.context.unwrap_or(UNKNOWN_CONTEXT);
                self.turn.room = context.saturating_sub(end.usage.prompt + end.usage.completion);
                self.used = self.used.beside(end.usage);
                if !end.is_cut() && !self.turn.waiting.is_empty() && self.is_offered() {
                    self.turn.end = Some(end);
                    return None;
                }
                return Some(ReplyEvent::End(self.last(end)));
            }
        }
        Some(event)
    }

    /// The next step; `Wait` unless the model's turn has ended. It may be dropped at any time and called again.
    pub(crate) async fn step(&mut self) -> Step {
        if let Some(running) = &mut self.turn.running {
            let found = (&mut running.found).await;
            if let Some(Running { call, .. }) = self.turn.running.take() {
                return Step::Say(ReplyEvent::Search(self.end_search(call, found)));
            }
        }
        if self.turn.end.is_none() {
            return Step::Wait;
        }
        while let Some(call) = self.turn.waiting.pop_front() {
            match self.begin_search(call) {
                Some(begun) => return Step::Say(ReplyEvent::Search(begun)),
                None => continue,
            }
        }
        match self.turn.end.take() {
            Some(end) if self.turn.calls_client => Step::Say(ReplyEvent::End(self.last(end))),
            Some(end) => self.next_turn(end),
            None => Step::Wait,
        }
    }

    /// Begins a search; `None` if there is none to make, of which the model is told.
    fn begin_search(&mut self, call: ToolCall) -> Option<SearchEvent> {
        let query = call.arguments["query"].as_str().unwrap_or_default().trim().to_owned();
        let room = self.turn.room;
        let refusal = if query.is_empty() {
            Some("No search was made, because there is no query. Say what to search for in \"query\".")
        } else if self.plan.searches == 0 {
            Some("No search was made, because no further one is allowed. Answer with the passages that you have.")
        } else if room < LEAST_ROOM {
            Some("No search was made, because the context is almost full. Answer with the passages that you have.")
        } else {
            None
        };
        // A call without a query counts as well, so that a model cannot repeat it without end.
        self.plan.searches = match room {
            0..LEAST_ROOM => 0,
            _ => self.plan.searches.saturating_sub(1),
        };
        if let Some(refusal) = refusal {
            self.turn.made.push((call, Content::text(refusal)));
            return None;
        }
        // Half of the room is for the answer, and for further searches.
        let most_tokens = room / 2;
        self.turn.room -= most_tokens;
        let (documents, most) = (self.plan.documents.clone(), self.plan.most_results);
        let request = PassageRequest {
            collections: self.plan.collections.clone(),
            chat: None,
            question: query.clone(),
            most_tokens,
            first_number: self.plan.given.iter().map(|given| given.number).max().unwrap_or(0) + 1,
            given: self.plan.given[self.plan.given.len().saturating_sub(MOST_GIVEN)..].to_vec(),
        };
        let id = call_id(SEARCH_PREFIX, &call.id);
        self.turn.running = Some(Running {
            call,
            found: async move { documents.search(request, most).await }.boxed(),
        });
        Some(SearchEvent::Begun { id, query })
    }

    fn end_search(&mut self, call: ToolCall, found: protocol::Result<Vec<QuotedPassage>>) -> SearchEvent {
        match found {
            Ok(passages) => {
                self.plan.given.extend(passages.iter().cloned());
                let result = search_result(passages.clone(), self.plan.given.len());
                self.turn.made.push((call, result));
                SearchEvent::Found(passages)
            }
            Err(error) => {
                tracing::warn!(code = ?error.code, "documents could not be searched for a program");
                self.turn.made.push((call, Content::text(FAILED)));
                SearchEvent::Failed
            }
        }
    }

    /// The request of the next turn, which sees what this one wrote and what was found.
    fn next_turn(&mut self, end: End) -> Step {
        let left = self
            .request
            .max_tokens
            .map(|most| most.saturating_sub(end.usage.completion));
        if left == Some(0) {
            let reason = StopCause::TokenLimit;
            return Step::Say(ReplyEvent::End(self.last(End { reason, ..end })));
        }
        let turn = std::mem::take(&mut self.turn);
        let (calls, results): (Vec<ToolCall>, Vec<Content>) = turn.made.into_iter().unzip();
        let results = calls.iter().zip(results).map(|(call, result)| Message {
            content: vec![result],
            tool_call_id: Some(call.id.clone()),
            name: Some(call.name.clone()),
            ..Message::text(Role::Tool, "")
        });
        let results: Vec<Message> = results.collect();
        let text = Some(turn.text).filter(|text| !text.trim().is_empty());
        self.request.messages.push(Message {
            content: text.map(Content::text).into_iter().collect(),
            reasoning: Some(turn.thought).filter(|thought| !thought.is_empty()),
            tool_calls: calls,
            ..Message::text(Role::Assistant, "")
        });
        self.request.messages.extend(results);
        self.request.max_tokens = left;
        if self.plan.searches == 0 {
            self.request.tools.retain(|tool| !is_file_search(tool));
        }
        Step::Ask(Box::new(self.request.clone()))
    }

    fn is_offered(&self) -> bool {
        self.request.tools.iter().any(is_file_search)
    }

    /// The end of the whole answer.
    fn last(&self, end: End) -> End {
        End {
            usage: self.used,
            reason: match end.reason {
                StopCause::ToolCalls if !self.turn.calls_client => StopCause::Stop,
                reason => reason,
            },
            ..end
        }
    }
}

/// The result of a search that failed.
pub(crate) const FAILED: &str = "The documents could not be searched. Say so in the answer.";

/// Passages as the model reads them; it was given this many by now.
pub(crate) fn search_result(passages: Vec<QuotedPassage>, given: usize) -> Content {
    let coverage = Coverage {
        passages: u32::try_from(given).unwrap_or(u32::MAX),
        ..Coverage::default()
    };
    Content::Passages { passages, coverage }
}

fn is_file_search(tool: &Value) -> bool {
    tool["function"]["name"] == FILE_SEARCH
}
