//! A client for MCP's conformance suite: it connects to the address that is its last argument, signs in if the server
//! wants that, lists the tools and makes the calls that the scenario names, or one of each tool. Nobody sits before its
//! browser and its forms: the browser agrees to everything, and a form keeps what it begins with.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use net::{Keychain, MemoryKeychain, Net, Purpose, Settings};
use serde_json::{json, Map, Value};
use tokio::sync::watch;
use tools::catalog::{Listing, Tool};
use tools::elicitation::{Elicitation, Form, Input, Reply, Wants};
use tools::http::{Challenge, ConnectError, HttpClient};
use tools::oauth::{sign_in, Browser, OwnClient, SignIn, SignInStore, SignedIn};
use tools::session::{CallError, Caller, Connection, Limits, Session};

/// How often somebody signs in before they give up.
const PATIENCE: usize = 3;

type Done<T> = Result<T, Box<dyn Error>>;

struct Client {
    net: Net,
    address: String,
    keychain: Arc<dyn Keychain>,
    own: Option<OwnClient>,
    /// The calls that the scenario names.
    calls: Option<Vec<Value>>,
}

fn main() -> ExitCode {
    let address = std::env::args().next_back().unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    let own = text("client_id").map(|id| OwnClient {
        id,
        secret: text("client_secret"),
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let done = runtime.block_on(async {
        let client = Client {
            net: Net::open(Settings::of_a_test("https://hub.invalid")),
            address,
            keychain: Arc::new(MemoryKeychain::default()),
            own,
            calls: context.get("toolCalls").and_then(Value::as_array).cloned(),
        };
        client.run().await
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

impl Client {
    async fn run(&self) -> Done<()> {
        let mut session = self.connect().await?;
        let listing = self.listing(&mut session).await?;
        for (name, arguments) in self.calls(&listing.tools) {
            for attempt in 0..=PATIENCE {
                let (_stop, stopped) = watch::channel(false);
                match session.call(&name, &arguments, agreeing(), stopped).await {
                    Ok(outcome) => println!("{name}: {}", outcome.for_model(200)),
                    Err(CallError::Refused(why)) => println!("{name} was refused: {why}"),
                    Err(error) => {
                        self.sign_in_again(&mut session, attempt, error).await?;
                        continue;
                    }
                }
                break;
            }
        }
        session.close().await;
        Ok(())
    }

    /// The tools, which some servers show only to somebody who signed in.
    async fn listing(&self, session: &mut Session) -> Done<Listing> {
        for attempt in 0..=PATIENCE {
            match session.tools().await {
                Ok(listing) => return Ok(listing),
                Err(error) => self.sign_in_again(session, attempt, error).await?,
            }
        }
        Err("nobody sees the tools".into())
    }

    fn calls(&self, tools: &[Tool]) -> Vec<(String, Value)> {
        let Some(calls) = &self.calls else {
            let each = tools
                .iter()
                .map(|tool| (tool.name.clone(), arguments(&tool.parameters, tools)));
            return each.collect();
        };
        let name = |call: &Value| call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = |call: &Value| call.get("arguments").cloned().unwrap_or_default();
        calls.iter().map(|call| (name(call), arguments(call))).collect()
    }

    async fn sign_in_again(&self, session: &mut Session, attempt: usize, error: CallError) -> Done<()> {
        let wanted = session.wanted_permission().or_else(|| session.refused_sign_in());
        let Some(challenge) = wanted.filter(|_| attempt < PATIENCE) else {
            return Err(error.into());
        };
        session.let_go();
        self.sign_in(challenge).await?;
        *session = self.connect().await?;
        Ok(())
    }

    async fn connect(&self) -> Done<Session> {
        for attempt in 0..=PATIENCE {
            let tokens = SignedIn::new(self.net.clone(), self.address.clone(), self.store());
            let connection = Connection {
                address: self.address.clone(),
                client: HttpClient::new(self.net.clone(), Vec::new(), Some(Arc::new(tokens))),
                roots: Vec::new(),
            };
            match Session::connect(connection, Limits::default()).await {
                Ok(session) => return Ok(session),
                Err(ConnectError::Failed(failure)) if attempt < PATIENCE => match failure.challenge() {
                    Some(challenge) => self.sign_in(challenge.clone()).await?,
                    None => return Err(failure.into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err("nobody is let in".into())
    }

    fn store(&self) -> SignInStore {
        SignInStore::of(self.keychain.clone(), "server")
    }

    async fn sign_in(&self, challenge: Challenge) -> Done<()> {
        let net = self.net.clone();
        let browser = Browser {
            open: Box::new(|page| {
                tokio::spawn(visit(net, page));
                Box::pin(async { true })
            }),
            done: "done".to_owned(),
            refused: "refused".to_owned(),
        };
        let asked = SignIn {
            net: self.net.clone(),
            address: self.address.clone(),
            store: self.store(),
            challenge,
            client: self.own.clone(),
        };
        Ok(sign_in(asked, browser).await?)
    }
}

/// Follows a page back to this computer.
async fn visit(net: Net, page: String) {
    let followed = async {
        let sent_on = net.get(&page, Purpose::ToolServer).return_redirects().send().await?;
        let back = sent_on.header("location").unwrap_or_default().to_owned();
        net.get(&back, Purpose::ToolServer).send().await
    };
    if let Err(error) = followed.await {
        eprintln!("the browser: {error}");
    }
}

/// Somebody who agrees to what a server asks for.
fn agreeing() -> Caller {
    let reply = |asked: Elicitation| match asked.wants {
        Wants::Form(form) => Reply::Accept(form.content(&first_values(&form)).ok()),
        Wants::Address(_) => Reply::Accept(None),
    };
    Caller {
        ask: Some(Arc::new(move |asked| Box::pin(std::future::ready(reply(asked))))),
        ..Caller::default()
    }
}

/// The values that a form begins with, and some for the fields that begin empty and must not.
fn first_values(form: &Form) -> Map<String, Value> {
    let value = |input: &Input| match input {
        Input::Text { default, .. } | Input::One { default, .. } => default.as_ref().map(|text| json!(text)),
        Input::Number(number) => number.default.as_ref().map(|number| json!(number)),
        Input::Boolean { default } => default.map(|yes| json!(yes)),
        Input::Some { default, .. } => Some(json!(default)),
    };
    let empty = |input: &Input| match input {
        Input::Text { .. } => json!("text"),
        Input::Number(_) => json!(5),
        Input::Boolean { .. } => json!(true),
        Input::One { choices, .. } => choices.first().map(|choice| json!(choice.value)).unwrap_or_default(),
        Input::Some { .. } => json!([]),
    };
    let fields = form.fields.iter().filter_map(|field| {
        let value = value(&field.input).or_else(|| field.required.then(|| empty(&field.input)));
        Some((field.name.clone(), value?))
    });
    fields.collect()
}

/// Arguments that fit a schema. One that wants a schema gets that of the first tool.
fn arguments(schema: &Value, tools: &[Tool]) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let value = match property.get("type").and_then(Value::as_str) {
            Some("number" | "integer") => json!(5),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") if name == "schema" => tools.first().map(|tool| tool.parameters.clone()).unwrap_or_default(),
            Some("object") => json!({}),
            _ => json!("text"),
        };
        arguments.insert(name.clone(), value);
    }
    arguments.into()
}
