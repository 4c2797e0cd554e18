//! The way of a sign-in, from the server's demand to its token.

use std::time::Duration;

use futures::future::BoxFuture;
use net::Net;
use rmcp::transport::auth::{CredentialStore, InMemoryCredentialStore, OAuthClientConfig};
use rmcp::transport::AuthorizationManager;
use tokio::time::timeout;
use url::Url;

use super::error::Error;
use super::redirect::{Pages, Redirect, Returned};
use super::requests::{check, Requests};
use super::stored::{Client, SignInStore, StoredSignIn};
use crate::http::Challenge;

/// How long somebody may take in the browser.
const PATIENCE: Duration = Duration::from_secs(300);

/// The name that a server shows for this program.
const NAME: &str = "Ponder";

/// The person's browser.
pub struct Browser {
    /// Opens an address, after the person agreed; false if they did not.
    pub open: Box<dyn FnOnce(String) -> BoxFuture<'static, bool> + Send>,
    /// The sentence of the page at the end of a sign-in.
    pub done: String,
    /// The sentence of the page at the end of one that was refused.
    pub refused: String,
}

/// A client id that the person got where the server is run.
#[derive(Clone)]
pub struct OwnClient {
    /// The id.
    pub id: String,
    /// The secret, if there is one.
    pub secret: Option<String>,
}

/// A sign-in that is to be.
pub struct SignIn {
    /// The way to the server.
    pub net: Net,
    /// Its address.
    pub address: String,
    /// The keychain's entry.
    pub store: SignInStore,
    /// The server's demand.
    pub challenge: Challenge,
    /// A client id of the person's own.
    pub client: Option<OwnClient>,
}

/// Signs in: asks the server how, lets Ponder be known there, opens the browser, waits for it to come back, and keeps the
/// tokens in the keychain.
///
/// # Errors
/// [`Error`]; nothing is kept then.
pub async fn sign_in(sign_in: SignIn, browser: Browser) -> Result<(), Error> {
    let SignIn {
        net,
        address,
        store,
        challenge,
        client,
    } = sign_in;
    let requests = Requests::new(net, &address)?;
    let before = store.load(&address).await?;
    let mut manager = requests.manager().await?;
    let credentials = InMemoryCredentialStore::new();
    manager.set_credential_store(credentials.clone());
    let demand = Some(challenge.0.as_str()).filter(|demand| !demand.is_empty());
    let resolved = manager.resolve_metadata_from_challenge(demand).await;
    let metadata = resolved.map_err(|error| requests.error(&error))?.metadata;
    let issuer = metadata.issuer.clone();
    // Before the browser goes there and the code with its secret is sent.
    for endpoint in [&metadata.authorization_endpoint, &metadata.token_endpoint] {
        let parsed = Url::parse(endpoint).map_err(|_| Error::Description(format!("{endpoint} is no address")))?;
        check(&parsed)?;
    }
    manager.set_metadata(metadata);
    let mut scopes = manager.select_initial_scopes(&[]).await;
    if challenge.0.contains("insufficient_scope") {
        // The permissions that there are would be lost otherwise.
        let granted = before.iter().flat_map(|kept| &kept.credentials.granted_scopes);
        let missing: Vec<String> = granted.filter(|scope| !scopes.contains(scope)).cloned().collect();
        scopes.extend(missing);
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let known = before.map(|kept| kept.client);
    let redirect = Redirect::listen(known.as_ref().map(|client| client.redirect.as_str())).await?;
    let client = known_as(client, known, &redirect, issuer.clone());
    let client = match client {
        Some(client) => {
            let configured = manager.configure_client(config(&client));
            configured.map_err(|error| requests.error(&error))?;
            client
        }
        None => register(&mut manager, &requests, &redirect, &scopes, issuer).await?,
    };
    let page = manager.get_authorization_url(&scopes).await;
    let page = page.map_err(|error| requests.error(&error))?;
    let state = state_of(&page).ok_or_else(|| Error::Description("no state was made".to_owned()))?;
    let Browser { open, done, refused } = browser;
    if !open(page).await {
        return Err(Error::NotOpened);
    }
    let pages = Pages { done, refused };
    let returned = timeout(PATIENCE, redirect.returned(&state, &pages)).await;
    let Returned { code, issuer } = returned.map_err(|_| Error::TooLate(PATIENCE))??;
    let exchanged = manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
    exchanged.await.map_err(|error| requests.error(&error))?;
    let credentials = credentials.load().await.map_err(|error| requests.error(&error))?;
    let credentials = credentials.ok_or_else(|| Error::NoToken("it sent none".to_owned()))?;
    let kept = StoredSignIn {
        address,
        client,
        credentials,
    };
    store.save(&kept).await
}

/// The client that the server knows already: by the person's own id, or by a registration that holds for this way back.
fn known_as(
    own: Option<OwnClient>,
    before: Option<Client>,
    redirect: &Redirect,
    issuer: Option<String>,
) -> Option<Client> {
    if let Some(OwnClient { id, secret }) = own {
        return Some(Client {
            id,
            secret,
            redirect: redirect.address().to_owned(),
            pasted: true,
            issuer,
        });
    }
    let before = before.filter(|client| client.issuer == issuer)?;
    match before.pasted {
        true => Some(Client {
            redirect: redirect.address().to_owned(),
            ..before
        }),
        false => Some(before).filter(|client| client.redirect == redirect.address()),
    }
}

/// Lets Ponder be known to the server (RFC 7591).
async fn register(
    manager: &mut AuthorizationManager,
    requests: &Requests,
    redirect: &Redirect,
    scopes: &[&str],
    issuer: Option<String>,
) -> Result<Client, Error> {
    let registered = manager.register_client(NAME, redirect.address(), scopes).await;
    let registered = registered.map_err(|error| requests.error(&error))?;
    Ok(Client {
        id: registered.client_id,
        secret: registered.client_secret,
        redirect: registered.redirect_uri,
        pasted: false,
        issuer,
    })
}

/// The client as rmcp knows it.
pub(super) fn config(client: &Client) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(&client.id, &client.redirect);
    match &client.secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    }
}

fn state_of(page: &str) -> Option<String> {
    let page = Url::parse(page).ok()?;
    let mut pairs = page.query_pairs();
    pairs.find_map(|(name, value)| (name == "state").then(|| value.into_owned()))
}
