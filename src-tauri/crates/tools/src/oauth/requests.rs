//! The requests of a sign-in, for rmcp: each goes through `net`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use net::{is_loopback, Net, Purpose};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use rmcp::transport::AuthorizationManager;
use url::Url;

use super::error::Error;

/// Bytes of an answer at most.
const LONGEST: u64 = 1 << 20;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The client of a sign-in to one server.
pub(super) struct Requests {
    net: Net,
    server: Url,
    failed: Mutex<Option<Error>>,
}

impl Requests {
    /// For the server at this address, which the person set.
    ///
    /// # Errors
    /// [`Error::NotEncrypted`], and [`Error::Net`] for what is no address.
    pub(super) fn new(net: Net, server: &str) -> Result<Arc<Self>, Error> {
        let parsed = Url::parse(server).map_err(|_| bad_address(server))?;
        check(&parsed)?;
        Ok(Arc::new(Self {
            net,
            server: parsed,
            failed: Mutex::default(),
        }))
    }

    /// rmcp's own part of the protocol.
    pub(super) async fn manager(self: &Arc<Self>) -> Result<AuthorizationManager, Error> {
        let manager = AuthorizationManager::new_with_oauth_http_client(self.server.as_str(), self.clone()).await;
        manager.map_err(|error| self.error(&error))
    }

    /// The sentence for an error of rmcp.
    pub(super) fn error(&self, error: &rmcp::transport::AuthError) -> Error {
        let last = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        Error::of(error, last)
    }

    async fn execute(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Vec<u8>>, Error> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let address = Url::parse(&request.uri().to_string()).map_err(|_| bad_address("the server's address"))?;
        check(&address)?;
        let (parts, body) = request.into_parts();
        let mut asked = match parts.method {
            http::Method::GET => self.net.get(address.as_str(), Purpose::ToolServer),
            _ => self.net.post(address.as_str(), Purpose::ToolServer),
        };
        if address.origin() != self.server.origin() {
            asked = asked.named_by(self.server.as_str());
        }
        if parts.method != http::Method::GET {
            let kind = parts.headers.get(http::header::CONTENT_TYPE);
            let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            asked = asked.body(kind, body);
        }
        for (name, value) in &parts.headers {
            let value = value.to_str().unwrap_or_default();
            asked = match name.as_str() {
                "authorization" => asked.authorization(value),
                "content-type" | "content-length" => asked,
                name => asked.header(name, value),
            };
        }
        let answer = asked.head_timeout(LIMIT).return_redirects().send().await?;
        let mut response = http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let body = answer.bytes_capped(LONGEST).await?;
        response
            .body(body)
            .map_err(|error| Error::Description(error.to_string()))
    }
}

impl OAuthHttpClient for Requests {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let answer = self.execute(request.request).await;
            answer.map_err(|error| {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
                OAuthHttpClientError::from(error)
            })
        })
    }
}

/// Refuses an address at which tokens could be read by others.
pub(super) fn check(address: &Url) -> Result<(), Error> {
    match address.scheme() == "https" || (address.scheme() == "http" && is_loopback(address)) {
        true => Ok(()),
        false => Err(Error::NotEncrypted(
            address.host_str().unwrap_or("its address").to_owned(),
        )),
    }
}

fn bad_address(address: &str) -> Error {
    Error::Net(net::Error::BadAddress {
        address: address.to_owned(),
    })
}
