//! A client for MCP's conformance suite: it connects to the address that is its last argument, signs in if the server
//! wants that, lists the tools and calls each. Nobody sits before its browser, which agrees to everything.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use net::{Keychain, MemoryKeychain, Net, Purpose, Settings};
use serde_json::{json, Map, Value};
use tokio::sync::watch;
use tools::http::{Challenge, ConnectError, HttpClient};
use tools::oauth::{sign_in, Browser, OwnClient, SignIn, SignInStore, SignedIn};
use tools::session::{Connection, Limits, Session};

/// How often somebody signs in before they give up.
const PATIENCE: usize = 3;

type Done<T> = Result<T, Box<dyn Error>>;

struct Client {
    net: Net,
    address: String,
    keychain: Arc<dyn Keychain>,
    own: Option<OwnClient>,
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
        let listing = session.tools().await?;
        for tool in listing.tools {
            for attempt in 0..=PATIENCE {
                let (_stop, stopped) = watch::channel(false);
                let arguments = arguments(&tool.parameters);
                let called = session.call(&tool.name, &arguments, watch::Sender::default(), stopped);
                match called.await {
                    Ok(outcome) => {
                        println!("{}: {}", tool.name, outcome.for_model(200));
                        break;
                    }
                    Err(error) => {
                        let wanted = session.wanted_permission().or_else(|| session.refused_sign_in());
                        let Some(challenge) = wanted.filter(|_| attempt < PATIENCE) else {
                            return Err(error.into());
                        };
                        session.close().await;
                        self.sign_in(challenge).await?;
                        session = self.connect().await?;
                    }
                }
            }
        }
        session.close().await;
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

/// Arguments that fit a schema.
fn arguments(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let value = match property.get("type").and_then(Value::as_str) {
            Some("number" | "integer") => json!(5),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("text"),
        };
        arguments.insert(name.clone(), value);
    }
    arguments.into()
}
