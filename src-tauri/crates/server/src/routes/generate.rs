//! Generates the answers of one request: asks the engine, keeps the client waiting, cancels the job if the client
//! disconnects.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{select_all, BoxFuture, OptionFuture};
use futures::stream::{unfold, Stream};
use futures::FutureExt;
use protocol::{CancelOnDrop, Engine, EngineEvent, Error, ErrorCode, JobHandle, Message, Request, TokenCount};
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::event_reader::{EventOutcome, EventReader};
use crate::answer::file_search::{FileSearch, Step};
use crate::answer::reply::{Frame, Reply, TranslatedRequest};
use crate::answer::reply_event::{ReplyEvent, ReplyFilter};
use crate::figures::tokens::Tokens;
use crate::http::error_body::Refusal;
use crate::http::response::Caller;
use crate::request::conversation::{has_neighbours, merge_neighbours};
use crate::state::State;

/// The time that a stream waits for an immediate engine error, which then gets a status of its own.
const GRACE: Duration = Duration::from_millis(250);

/// One answer of the engine. Dropping it cancels the job.
struct Job {
    engine: Arc<dyn Engine>,
    /// The request for a template that refuses this one, if it can be merged.
    unmerged: Option<Unmerged>,
    handle: JobHandle,
    filter: ReplyFilter,
    reader: EventReader,
    /// The searches of documents that the model may call, each followed by another turn.
    search: Option<FileSearch>,
    ended: bool,
    cancel: CancelOnDrop,
}

impl Job {
    /// Asks the engine. `messages` are those of the request if they can be merged.
    fn start(
        engine: &Arc<dyn Engine>,
        mut request: Request,
        messages: Option<Arc<[Message]>>,
        filter: ReplyFilter,
    ) -> Self {
        let reader = EventReader::new(filter, &request.tools);
        let unmerged = messages.map(|messages| {
            // Only the rest is copied.
            let own = std::mem::take(&mut request.messages);
            let rest = request.clone();
            request.messages = own;
            Unmerged { messages, rest }
        });
        let handle = engine.generate(request);
        Self {
            engine: engine.clone(),
            unmerged,
            filter,
            reader,
            search: None,
            ended: false,
            cancel: CancelOnDrop(handle.cancel.clone()),
            handle,
        }
    }

    /// The next event.
    async fn next(&mut self) -> Result<EventOutcome, Refusal> {
        loop {
            if let Some(search) = &mut self.search {
                match search.step().await {
                    Step::Wait => {}
                    Step::Say(event) => {
                        self.ended = matches!(event, ReplyEvent::End(_));
                        return Ok(EventOutcome::of(event));
                    }
                    Step::Ask(request) => self.go_on(*request),
                }
            }
            let event = self.handle.events.recv().await;
            let event =
                event.unwrap_or_else(|| EngineEvent::Failed(Error::new(ErrorCode::EngineGone, "the engine is gone")));
            match event {
                // Some templates require alternating roles. Nothing was generated yet, so nothing is lost.
                EngineEvent::Failed(error) if error.code == ErrorCode::TemplateRefused && self.unmerged.is_some() => {
                    if let Some(request) = self.unmerged.take().and_then(Unmerged::merged) {
                        self.handle = self.engine.generate(request);
                        self.cancel = CancelOnDrop(self.handle.cancel.clone());
                    }
                }
                event => {
                    let outcome = self.reader.read(event)?;
                    if outcome.cancel_job {
                        self.cancel.0.cancel();
                    }
                    let outcome = match &mut self.search {
                        Some(search) => search.read(outcome),
                        None => outcome,
                    };
                    self.ended = matches!(outcome.events.last(), Some(ReplyEvent::End(_)));
                    return Ok(outcome);
                }
            }
        }
    }

    /// Gives the model another turn.
    fn go_on(&mut self, request: Request) {
        let messages = has_neighbours(&request.messages).then(|| Arc::from(request.messages.as_slice()));
        let next = Self::start(&self.engine, request, messages, self.filter);
        let search = self.search.take();
        *self = Self { search, ..next };
    }
}

/// A request whose messages can be merged; all answers of a request share them.
struct Unmerged {
    messages: Arc<[Message]>,
    rest: Request,
}

impl Unmerged {
    fn merged(self) -> Option<Request> {
        let messages = merge_neighbours(&self.messages)?;
        Some(Request { messages, ..self.rest })
    }
}

/// Counts a request as in flight until it is dropped.
pub(crate) struct InFlight {
    state: Arc<State>,
    answers: usize,
    finished: bool,
}

impl InFlight {
    /// Registers a request for this number of answers.
    ///
    /// # Errors
    /// If the maximum is reached. The engine would refuse too, but while it loads a model that comes too late for a
    /// status.
    pub(crate) fn new(state: &Arc<State>, answers: usize) -> Result<Self, Refusal> {
        let most = state.limits.answers;
        let room = |now: usize| (now + answers <= most).then_some(now + answers);
        let Err(now) = state
            .metrics
            .answers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
        else {
            state.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
            return Ok(Self {
                state: state.clone(),
                answers,
                finished: false,
            });
        };
        let slots = state.engine.local().map_or(0, |engine| engine.follow().borrow().slots);
        let seconds = state.metrics.mean_answer().as_secs_f64() * now as f64 / slots.max(1) as f64;
        let message = format!("{now} answers are being made or waited for already; try again later");
        let error = Error::new(ErrorCode::Busy, message);
        Err(error.with("retry_after", seconds.ceil().clamp(1.0, 60.0) as u64).into())
    }

    /// Records the end of a request that only read this number of tokens.
    pub(crate) fn finish(mut self, prompt: u32, client: &str) {
        self.finished = true;
        let tokens = Tokens {
            prompt,
            ..Tokens::default()
        };
        self.state.metrics.tokens_read(tokens);
        self.state.clients.answered(client, tokens);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.state.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.state.metrics.answers.fetch_sub(self.answers, Ordering::Relaxed);
        if !self.finished {
            self.state.metrics.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A request that is being answered. Dropping it ends its jobs.
pub(crate) struct Exchange {
    state: Arc<State>,
    jobs: Vec<Job>,
    reply: Box<dyn Reply>,
    /// Events that are received but not sent.
    waiting: VecDeque<(usize, EventOutcome)>,
    caller: Caller,
    begun: Instant,
    first_token: bool,
    /// The prompt's tokens, if the stream begins with them.
    count: Option<BoxFuture<'static, protocol::Result<TokenCount>>>,
    in_flight: InFlight,
}

impl Exchange {
    /// Asks the engine for every answer of a request, whose prompt may be counted already.
    ///
    /// # Errors
    /// If too many are running or waiting already.
    pub(crate) fn start(
        state: &Arc<State>,
        ask: TranslatedRequest,
        counted: Option<TokenCount>,
        caller: &Caller,
    ) -> Result<Self, Refusal> {
        let in_flight = InFlight::new(state, ask.requests.len())?;
        let told = ask.stream && ask.reply.begins_with_prompt_tokens();
        let first = ask.requests.first().filter(|_| told);
        let count = first.map(|request| count(state, counted, request));
        let first = ask.requests.first().map(|request| request.messages.as_slice());
        let messages: Option<Arc<[Message]>> = first.filter(|messages| has_neighbours(messages)).map(Arc::from);
        let mut plan = ask.file_search;
        let start = |request: Request| {
            let search = plan.take().map(|plan| plan.begin(&request));
            let job = Job::start(&state.engine, request, messages.clone(), ask.filter);
            Job { search, ..job }
        };
        Ok(Self {
            state: state.clone(),
            jobs: ask.requests.into_iter().map(start).collect(),
            reply: ask.reply,
            waiting: VecDeque::new(),
            caller: caller.clone(),
            begun: Instant::now(),
            first_token: false,
            count,
            in_flight,
        })
    }

    /// The whole answer as one body.
    ///
    /// # Errors
    /// If one of the answers fails.
    pub(crate) async fn whole(mut self) -> Result<Value, Refusal> {
        while let Some(next) = self.next().await {
            match next {
                Ok((answer, outcome)) => drop(self.tell(answer, outcome)),
                Err(refusal) => {
                    self.in_flight.finished = true;
                    return Err(refusal);
                }
            }
        }
        self.finish();
        Ok(self.reply.whole())
    }

    /// The answer as a stream of Server-Sent Events. It begins at once, unless the engine refuses at once.
    ///
    /// # Errors
    /// If the engine refuses before anything is sent.
    pub(crate) async fn stream(mut self) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + Send, Refusal> {
        let count = tokio::time::timeout(GRACE, OptionFuture::from(self.count.take()));
        let (first, count) = tokio::join!(tokio::time::timeout(GRACE, self.next()), count);
        if let Ok(Some(first)) = first {
            match first {
                Ok(outcome) => self.waiting.push_back(outcome),
                Err(refusal) => {
                    self.in_flight.finished = true;
                    return Err(refusal);
                }
            }
        }
        let counted = count
            .ok()
            .flatten()
            .and_then(Result::ok)
            .filter(|count| !count.estimated);
        let begin = self.reply.begin(counted.map(|count| count.tokens));
        Ok(unfold(Some(Streaming::new(self, begin)), |streaming| async move {
            let mut streaming = streaming?;
            let frames = streaming.next().await?;
            let bytes = Frame::bytes(&frames);
            Some((Ok(bytes), (!streaming.over).then_some(streaming)))
        }))
    }

    /// The next event of any answer; `None` after the last one's end.
    async fn next(&mut self) -> Option<Result<(usize, EventOutcome), Refusal>> {
        if let Some(outcome) = self.waiting.pop_front() {
            return Some(Ok(outcome));
        }
        let running = self.jobs.iter_mut().enumerate().filter(|(_, job)| !job.ended);
        let running: Vec<_> = running
            .map(|(answer, job)| job.next().map(move |outcome| (answer, outcome)).boxed())
            .collect();
        if running.is_empty() {
            return None;
        }
        tokio::select! {
            biased;
            () = self.state.stop.cancelled() => Some(Err(switched_off())),
            ((answer, outcome), ..) = select_all(running) => Some(outcome.map(|outcome| (answer, outcome))),
        }
    }

    fn tell(&mut self, answer: usize, outcome: EventOutcome) -> Vec<Frame> {
        self.state.metrics.tokens_came(outcome.tokens);
        if outcome.tokens > 0 && !std::mem::replace(&mut self.first_token, true) {
            self.state.metrics.first_token(self.begun.elapsed());
        }
        outcome
            .events
            .into_iter()
            .flat_map(|said| self.reply.say(answer, said))
            .collect()
    }

    /// Records the end of all answers.
    fn finish(&mut self) {
        self.in_flight.finished = true;
        let tokens = self.reply.tokens();
        self.state.metrics.finished(tokens, self.begun.elapsed());
        self.state.clients.answered(&self.caller.client, tokens);
        if let Some(response) = self.reply.stored() {
            self.state.responses.keep(response);
        }
    }
}

/// The prompt's tokens, unless they were counted before.
fn count(
    state: &Arc<State>,
    counted: Option<TokenCount>,
    request: &Request,
) -> BoxFuture<'static, protocol::Result<TokenCount>> {
    if let Some(counted) = counted {
        return std::future::ready(Ok(counted)).boxed();
    }
    let (state, request) = (state.clone(), request.clone());
    async move { state.count(Cow::Owned(request)).await }.boxed()
}

/// The error of an answer that the end of the server cuts.
fn switched_off() -> Refusal {
    let message = "the server was switched off before the answer was complete";
    Error::new(ErrorCode::Stopped, message).into()
}

/// A stream that is being written.
struct Streaming {
    exchange: Exchange,
    /// The next frames.
    ready: Vec<Frame>,
    /// The time of the last write.
    written: Instant,
    /// The time of the last frame that the client counts.
    counted: Instant,
    over: bool,
}

impl Streaming {
    fn new(exchange: Exchange, begin: Vec<Frame>) -> Self {
        Self {
            exchange,
            ready: begin,
            written: Instant::now(),
            counted: Instant::now(),
            over: false,
        }
    }

    /// The next frames; never empty.
    async fn next(&mut self) -> Option<Vec<Frame>> {
        let limits = self.exchange.state.limits;
        while self.ready.is_empty() {
            // The server's own clock, independent of the engine.
            let next = tokio::time::timeout_at(self.written + limits.ping, self.exchange.next()).await;
            self.ready = match next {
                Ok(Some(Ok((answer, outcome)))) => {
                    let frames = self.exchange.tell(answer, outcome);
                    if !frames.is_empty() {
                        self.counted = Instant::now();
                    }
                    frames
                }
                Ok(Some(Err(refusal))) => {
                    self.over = true;
                    self.exchange.in_flight.finished = true;
                    tracing::warn!(request = self.exchange.caller.request_id, kind = ?refusal.kind, "an answer failed after it had begun");
                    self.exchange.reply.fail(&refusal, &self.exchange.caller.request_id)
                }
                Ok(None) => {
                    self.over = true;
                    self.exchange.finish();
                    self.exchange.reply.end()
                }
                Err(_) => {
                    let counted = self.counted.elapsed() >= limits.counted_ping;
                    if counted {
                        self.counted = Instant::now();
                    }
                    self.exchange.reply.keep_alive(counted)
                }
            };
            if self.over {
                break;
            }
        }
        self.written = Instant::now();
        Some(std::mem::take(&mut self.ready))
    }
}
