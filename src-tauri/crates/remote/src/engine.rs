//! The engine of remote models.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{Endpoint, EndpointModels};
use futures::future::{join_all, BoxFuture};
use futures::StreamExt;
use net::Net;
use protocol::{
    AnswerNowFlag, CancelFlag, Capabilities, Done, Engine, EngineEvent, JobHandle, ModelSource, Notice, NoticeCode,
    Request, Sender, ThinkingControl, TokenCount,
};
use tokio::runtime::Handle;
use tokio::time::{timeout_at, Duration, Instant};

use crate::endpoint::{self, keys, leaves_computer};
use crate::error::{Error, Result};
use crate::http::{self, Frame, Outcome};
use crate::reply::{Reply, StreamAssembler};
use crate::request::{self, ModelQuirks};

/// How long the usage is waited for after the end of an answer.
const AFTER_THE_END: Duration = Duration::from_secs(5);

/// How many refused fields are left out one after another.
const MOST_REFUSALS: usize = 12;

/// The engine of remote models. Clones share the endpoints and what was found out about them.
#[derive(Clone)]
pub struct RemoteEngine(Arc<Inner>);

struct Inner {
    net: Net,
    runtime: Handle,
    endpoints: Mutex<Vec<Endpoint>>,
    quirks: Mutex<HashMap<ModelSource, ModelQuirks>>,
}

impl RemoteEngine {
    /// An engine for these endpoints. Answers are read on `runtime`.
    pub fn new(net: Net, runtime: Handle, endpoints: Vec<Endpoint>) -> Self {
        Self(Arc::new(Inner {
            net,
            runtime,
            endpoints: Mutex::new(endpoints),
            quirks: Mutex::default(),
        }))
    }

    /// The endpoints.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.0.endpoints().clone()
    }

    /// The endpoint of this name.
    pub fn endpoint(&self, name: &str) -> Option<Endpoint> {
        let endpoints = self.0.endpoints();
        endpoints.iter().find(|endpoint| endpoint.name == name).cloned()
    }

    /// Uses these endpoints from now on; running answers continue. Learned properties of models are dropped, because
    /// another server may be behind the same name.
    pub fn set_endpoints(&self, endpoints: Vec<Endpoint>) {
        *self.0.endpoints() = endpoints;
        self.0.quirks().clear();
    }

    /// Stores the key of an endpoint that is being added in the system's keychain, and notes in the endpoint that there
    /// is one. The host lists it afterwards.
    ///
    /// # Errors
    /// If its name is taken, if it is no key, if it would be sent unencrypted, or if the keychain does not take it.
    pub async fn store_first_key(&self, endpoint: &mut Endpoint, key: &str) -> Result<()> {
        endpoint::check_name_is_free(&self.endpoints(), &endpoint.name)?;
        keys::check_way(endpoint)?;
        keys::store(&self.0.net, &endpoint.name, key).await?;
        endpoint.has_key = true;
        Ok(())
    }

    /// Replaces the key of an endpoint in the system's keychain, and notes in the list of endpoints that there is one.
    /// Hosts keep that list. `unencrypted` allows that the key is sent unencrypted to another computer.
    ///
    /// # Errors
    /// If there is no such endpoint, if it is no key, if it would be sent unencrypted, or if the keychain does not take
    /// it.
    pub async fn store_key(&self, endpoint: &str, key: &str, unencrypted: bool) -> Result<()> {
        let found = self
            .endpoint(endpoint)
            .ok_or_else(|| Error::NoEndpoint(endpoint.into()))?;
        keys::check_way(&Endpoint {
            unencrypted_key: unencrypted,
            ..found
        })?;
        keys::store(&self.0.net, endpoint, key).await?;
        self.0.note_key(endpoint, true, unencrypted);
        Ok(())
    }

    /// Removes the key of an endpoint from the system's keychain, if one was stored.
    ///
    /// # Errors
    /// If the keychain does not answer.
    pub async fn forget_key(&self, endpoint: &str) -> Result<()> {
        if self.endpoint(endpoint).is_some_and(|endpoint| endpoint.has_key) {
            keys::forget(&self.0.net, endpoint).await?;
            self.0.note_key(endpoint, false, false);
        }
        Ok(())
    }

    /// Asks every endpoint for the list of its models, all at once. One that does not answer says why.
    pub async fn models(&self) -> Vec<EndpointModels> {
        join_all(self.endpoints().into_iter().map(|endpoint| self.list(endpoint))).await
    }

    /// Asks one endpoint for the list of its models. If it does not answer, it says why.
    ///
    /// # Errors
    /// If there is no such endpoint.
    pub async fn models_of(&self, name: &str) -> Result<EndpointModels> {
        let endpoint = self.endpoint(name).ok_or_else(|| Error::NoEndpoint(name.into()))?;
        Ok(self.list(endpoint).await)
    }

    async fn list(&self, endpoint: Endpoint) -> EndpointModels {
        let listed = http::list(&self.0.net, &endpoint).await;
        let thinking = |model: &ModelSource| self.0.quirks_of(model).thinking();
        let (models, problem) = match listed {
            Ok(list) => (endpoint::models(&endpoint, &list, thinking), None),
            Err(error) => (Vec::new(), Some(error.into())),
        };
        EndpointModels {
            leaves_computer: leaves_computer(&endpoint),
            endpoint,
            models,
            problem,
        }
    }
}

impl Engine for RemoteEngine {
    fn generate(&self, mut request: Request) -> JobHandle {
        let (sender, events) = protocol::mailbox();
        let (cancel, end_thinking) = (CancelFlag::default(), AnswerNowFlag::default());
        let (inner, cancelled) = (self.0.clone(), cancel.clone());
        self.0.runtime.spawn(async move {
            let supports_vision = !inner.quirks_of(&request.model).refuses_images;
            for notice in request.leave_out_unseen(supports_vision) {
                sender.send(EngineEvent::Notice(notice));
            }
            let end = inner.answer(&request, &sender, &cancelled).await;
            sender.send(match end {
                Ok(done) => EngineEvent::Done(done),
                Err(error) => EngineEvent::Failed(error.into()),
            });
        });
        JobHandle {
            events,
            cancel,
            end_thinking,
        }
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        let endpoint = match model {
            ModelSource::Remote { endpoint, .. } => self.endpoint(endpoint),
            ModelSource::Folder(_) => None,
        };
        Capabilities {
            tools: true,
            // Vision support is only known once the endpoint has refused an image.
            images: !self.0.quirks_of(model).refuses_images,
            leaves_computer: endpoint.is_none_or(|endpoint| leaves_computer(&endpoint)),
            thinking: Some(self.0.quirks_of(model).thinking()),
            ..Capabilities::default()
        }
    }

    fn count(&self, request: Request) -> BoxFuture<'static, protocol::Result<TokenCount>> {
        Box::pin(std::future::ready(Ok(request::estimate(&request))))
    }
}

impl Inner {
    fn endpoints(&self) -> MutexGuard<'_, Vec<Endpoint>> {
        // Values are replaced whole under these locks, so a poisoned one is still right.
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_key(&self, name: &str, has_key: bool, unencrypted: bool) {
        let mut endpoints = self.endpoints();
        if let Some(endpoint) = endpoints.iter_mut().find(|endpoint| endpoint.name == name) {
            endpoint.has_key = has_key;
            endpoint.unencrypted_key = unencrypted;
        }
    }

    fn quirks(&self) -> MutexGuard<'_, HashMap<ModelSource, ModelQuirks>> {
        self.quirks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn quirks_of(&self, model: &ModelSource) -> ModelQuirks {
        self.quirks().get(model).cloned().unwrap_or_default()
    }

    fn learn(&self, model: &ModelSource, change: impl FnOnce(&mut ModelQuirks)) {
        change(self.quirks().entry(model.clone()).or_default());
    }

    /// Makes the answer; what was said before an error or a cancel has been sent.
    async fn answer(&self, request: &Request, events: &Sender<EngineEvent>, cancel: &CancelFlag) -> Result<Done> {
        let mut assembler = StreamAssembler::new(request, self.quirks_of(&request.model).opens_thought);
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            end = self.read(request, &mut assembler, events) => Some(end),
        };
        // Nothing that came is lost, and a dropped reader has closed the connection.
        let complete = matches!(end, Some(Ok(())));
        assembler
            .flush(complete)
            .into_iter()
            .for_each(|event| events.send(event));
        self.learn(&request.model, |quirks| {
            quirks.ignores_switch |= assembler.thought_while_off();
            quirks.opens_thought = assembler.opens_thought().unwrap_or(quirks.opens_thought);
        });
        end.transpose()?;
        Ok(assembler.done(!complete))
    }

    async fn read(
        &self,
        request: &Request,
        assembler: &mut StreamAssembler,
        events: &Sender<EngineEvent>,
    ) -> Result<()> {
        let ModelSource::Remote { endpoint, name: model } = &request.model else {
            return Err(Error::NotRemote(request.model.reference()));
        };
        if request.raw_prompt.is_some() {
            return Err(Error::NotSupported("continue text that is no conversation"));
        }
        let found = self.endpoints().iter().find(|known| known.name == *endpoint).cloned();
        let endpoint = found.ok_or_else(|| Error::NoEndpoint(endpoint.clone()))?;
        let response = self.ask(request, &endpoint, model, events).await?;
        events.send(EngineEvent::Started {
            prompt_tokens: None,
            model_revision: None,
            template_hash: None,
        });
        if request.thinking_budget.is_some() {
            let message = "A model behind an endpoint has no thinking budget; it thinks as long as it likes.";
            let notice = Notice::new(NoticeCode::ThinkingBudgetIgnored, message);
            events.send(EngineEvent::Notice(notice));
        }
        let mut frames = http::frames(response, &endpoint.name).await?;
        let (mut any, mut last) = (false, None);
        loop {
            let frame = if assembler.has_reason() {
                // The usage may follow, and a connection that breaks now takes nothing away.
                let last = *last.get_or_insert_with(|| Instant::now() + AFTER_THE_END);
                match timeout_at(last, frames.next()).await {
                    // A server that always has more to say never lets the time run out.
                    Ok(Some(Ok(frame))) if Instant::now() < last => Some(frame),
                    _ => return Ok(()),
                }
            } else {
                match frames.next().await.transpose() {
                    // It had begun, so it was not the address that was wrong.
                    Err(Error::Net(net::Error::ConnectionLost { .. })) if any => {
                        return Err(Error::BrokeOff(endpoint.name))
                    }
                    frame => frame?,
                }
            };
            match frame {
                Some(Frame::Reply(Reply::Chunk(chunk))) => {
                    any = true;
                    assembler.push(chunk).into_iter().for_each(|event| events.send(event));
                    if assembler.stopped_by_text() {
                        return Ok(());
                    }
                }
                Some(Frame::Reply(Reply::Error(message))) => {
                    return Err(Error::Failed {
                        endpoint: endpoint.name,
                        message,
                    })
                }
                Some(Frame::End) if any => return Ok(()),
                None if any => return Err(Error::BrokeOff(endpoint.name)),
                Some(Frame::End) | None => {
                    return Err(Error::Unreadable {
                        endpoint: endpoint.name,
                        reason: "it sent no answer".into(),
                    })
                }
            }
        }
    }

    /// Asks, and asks again without what the endpoint refuses, which is remembered.
    async fn ask(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        model: &str,
        events: &Sender<EngineEvent>,
    ) -> Result<net::Response> {
        let images = request::data_urls(request).await?;
        for _ in 0..MOST_REFUSALS {
            let body = request::body(model, request, &images, &self.quirks_of(&request.model).refused)?;
            match http::ask(&self.net, endpoint, model, &body).await? {
                Outcome::Answer(response) => return Ok(*response),
                Outcome::Refused(_, message) if !images.is_empty() && request::refuses_images(&message) => {
                    self.learn(&request.model, |quirks| quirks.refuses_images = true);
                    return Err(Error::ImagesUnsupported {
                        endpoint: endpoint.name.clone(),
                        model: model.to_owned(),
                        message,
                    });
                }
                Outcome::Refused(status, message) => {
                    let Some(field) = request::refused_field(&body, &message) else {
                        return Err(Error::Refused {
                            endpoint: endpoint.name.clone(),
                            status,
                            message,
                        });
                    };
                    let mut switchable = true;
                    self.learn(&request.model, |quirks| {
                        quirks.refused.insert(field);
                        switchable = !matches!(quirks.thinking(), ThinkingControl::ByRequest { .. });
                    });
                    if request::matters(field) {
                        let message = format!("This endpoint does not take `{field}`, so it was left out.");
                        let notice = Notice::new(NoticeCode::FieldRefused, message).with("field", field);
                        events.send(EngineEvent::Notice(notice));
                    } else if !switchable && request.thinking.is_some() {
                        let message = "This endpoint has no Thinking switch; ask in words for more or less thinking.";
                        let notice = Notice::new(NoticeCode::ThinkingSwitchIgnored, message);
                        events.send(EngineEvent::Notice(notice));
                    }
                }
            }
        }
        Err(Error::Refused {
            endpoint: endpoint.name.clone(),
            status: 400,
            message: "it refuses one field after another".into(),
        })
    }
}
