//! Requests of servers for the person amid a call: shown, answered, taken back.

use std::sync::Arc;

use api::{
    ElicitationChoice, ElicitationField, ElicitationFormat, ElicitationInput, ElicitationWants, FieldProblem,
    FieldProblemKind, WaitingElicitation,
};
use futures::FutureExt;
use protocol::{CallProgress, TellProgress};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::state::{Asker, PendingElicitation};
use super::{Callable, Tools};
use crate::consent::LiveCall;
use crate::elicitation::{Choice, Field, Input, Problem, Reply, TextFormat, Wants};
use crate::error::{Error, Result};
use crate::session::Ask;
use crate::visible::visible;

impl Tools {
    /// The requests of servers that wait for the person, oldest first.
    pub fn elicitations(&self) -> Vec<WaitingElicitation> {
        self.state().elicited.iter().map(shown).collect()
    }

    /// Sends the values of a form to the server that asked for them, a JSON object as text. What is wrong with them is
    /// returned, and nothing was sent then.
    ///
    /// # Errors
    /// [`Error::NotAsked`] if it waits no more, and [`Error::BadForm`] for what is no object.
    pub fn send_form(&self, id: &str, values: &str) -> Result<Vec<FieldProblem>> {
        let values: Map<String, Value> = serde_json::from_str(values).map_err(|_| Error::BadForm)?;
        let content = {
            let state = self.state();
            let elicited = state.elicited.iter().find(|elicited| elicited.id == id);
            match &elicited.ok_or(Error::NotAsked)?.elicitation.wants {
                Wants::Form(form) => form.content(&values),
                Wants::Address(_) => return Err(Error::BadForm),
            }
        };
        match content {
            Ok(content) => self.reply(id, Reply::Accept(Some(content))).map(|()| Vec::new()),
            Err(problems) => Ok(problems.into_iter().map(problem).collect()),
        }
    }

    /// The address that a server wants to be opened.
    ///
    /// # Errors
    /// [`Error::NotAsked`] if it waits no more or wants something else.
    pub fn elicited_address(&self, id: &str) -> Result<String> {
        let state = self.state();
        let elicited = state.elicited.iter().find(|elicited| elicited.id == id);
        match elicited.map(|elicited| &elicited.elicitation.wants) {
            Some(Wants::Address(address)) => Ok(address.as_str().to_owned()),
            _ => Err(Error::NotAsked),
        }
    }

    /// Tells the server that its address was opened.
    ///
    /// # Errors
    /// [`Error::NotAsked`] if it waits no more.
    pub fn address_opened(&self, id: &str) -> Result<()> {
        self.reply(id, Reply::Accept(None))
    }

    /// Tells the server that the person declines.
    ///
    /// # Errors
    /// [`Error::NotAsked`] if it waits no more.
    pub fn decline(&self, id: &str) -> Result<()> {
        self.reply(id, Reply::Decline)
    }

    /// Tells all servers that ask that the person closed the window.
    pub fn dismiss_elicitations(&self) {
        let elicited = std::mem::take(&mut self.state().elicited);
        for PendingElicitation { reply, .. } in elicited {
            // Its call may be gone.
            let _ = reply.send(Reply::Cancel);
        }
        self.0.waiting.send_replace(());
    }

    fn reply(&self, id: &str, reply: Reply) -> Result<()> {
        let elicited = {
            let mut state = self.state();
            let place = state.elicited.iter().position(|elicited| elicited.id == id);
            state.elicited.remove(place.ok_or(Error::NotAsked)?)
        };
        self.0.waiting.send_replace(());
        elicited.reply.send(reply).map_err(|_| Error::NotAsked)
    }

    /// Asks the person on behalf of the server of a call. Where nobody can be asked, the answer is no.
    pub(super) fn asker(&self, callable: &Callable, call: &LiveCall, tell: TellProgress) -> Ask {
        let from = Asker {
            chat: call.chat.clone(),
            tool: call.tool.clone(),
            server_name: callable.server_name(),
            server_command: callable.server_command(),
        };
        let tools = self.clone();
        Arc::new(move |elicitation| {
            let (tools, from, tell) = (tools.clone(), from.clone(), tell.clone());
            async move {
                if !tools.0.attended {
                    // Whoever runs the call says so.
                    tell(CallProgress {
                        asks: true,
                        ..CallProgress::default()
                    });
                    return Reply::Decline;
                }
                let id = Uuid::now_v7().simple().to_string();
                let (reply, replied) = oneshot::channel();
                tools.state().elicited.push(PendingElicitation {
                    id: id.clone(),
                    from,
                    elicitation,
                    reply,
                });
                tools.0.waiting.send_replace(());
                // Taken back however the waiting ends: the call may end, or the server may not want to know any more.
                let _waits = Waits(&tools, &id);
                replied.await.unwrap_or(Reply::Cancel)
            }
            .boxed()
        })
    }
}

/// Takes a request off the list of those that wait.
struct Waits<'a>(&'a Tools, &'a str);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let Self(tools, id) = self;
        let mut state = tools.state();
        let count = state.elicited.len();
        state.elicited.retain(|elicited| elicited.id != *id);
        let taken_back = state.elicited.len() != count;
        drop(state);
        if taken_back {
            tools.0.waiting.send_replace(());
        }
    }
}

fn shown(elicited: &PendingElicitation) -> WaitingElicitation {
    let PendingElicitation {
        id, from, elicitation, ..
    } = elicited;
    WaitingElicitation {
        id: id.clone(),
        chat: from.chat.clone(),
        tool: from.tool.clone(),
        server_name: visible(&from.server_name),
        server_command: visible(&from.server_command),
        message: elicitation.message.clone(),
        wants: match &elicitation.wants {
            Wants::Form(form) => ElicitationWants::Form {
                fields: form.fields.iter().map(field).collect(),
            },
            Wants::Address(address) => ElicitationWants::Address {
                url: address.as_str().to_owned(),
                host: address.host(),
            },
        },
    }
}

fn field(field: &Field) -> ElicitationField {
    let text = |number: &Option<serde_json::Number>| number.as_ref().map(ToString::to_string);
    ElicitationField {
        name: field.name.clone(),
        title: field.title.clone(),
        description: field.description.clone(),
        required: field.required,
        looks_secret: field.looks_secret,
        input: match &field.input {
            Input::Text {
                format,
                min,
                max,
                default,
            } => ElicitationInput::Text {
                format: format.map(|format| match format {
                    TextFormat::Email => ElicitationFormat::Email,
                    TextFormat::Uri => ElicitationFormat::Uri,
                    TextFormat::Date => ElicitationFormat::Date,
                    TextFormat::DateTime => ElicitationFormat::DateTime,
                }),
                min: *min,
                max: *max,
                default: default.clone(),
            },
            Input::Number(number) => ElicitationInput::Number {
                whole: number.whole,
                min: text(&number.min),
                max: text(&number.max),
                default: text(&number.default),
            },
            Input::Boolean { default } => ElicitationInput::Boolean { default: *default },
            Input::One { choices, default } => ElicitationInput::One {
                choices: choices.iter().map(choice).collect(),
                default: default.clone(),
            },
            Input::Some {
                choices,
                min,
                max,
                default,
            } => ElicitationInput::Some {
                choices: choices.iter().map(choice).collect(),
                min: *min,
                max: *max,
                default: default.clone(),
            },
        },
    }
}

fn choice(choice: &Choice) -> ElicitationChoice {
    ElicitationChoice {
        value: choice.value.clone(),
        title: choice.title.clone(),
    }
}

fn problem((field, problem): (String, Problem)) -> FieldProblem {
    FieldProblem {
        field,
        problem: match problem {
            Problem::Missing => FieldProblemKind::Missing,
            Problem::WrongKind => FieldProblemKind::WrongKind,
            Problem::TooLittle => FieldProblemKind::TooLittle,
            Problem::TooMuch => FieldProblemKind::TooMuch,
            Problem::BadFormat => FieldProblemKind::BadFormat,
        },
    }
}
