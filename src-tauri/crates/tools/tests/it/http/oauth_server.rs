//! A server of tools that wants somebody to sign in, and the server of sign-ins beside it, which misbehaves in a named
//! way. It checks the proof of the code (RFC 7636) and the resource (RFC 8707) as a real one does.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::Engine;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

use super::wire::{json as answer_json, read, send, ReceivedRequest};

/// The secret of a client that gets one.
pub const CLIENT_SECRET: &str = "the-clients-own-secret";

#[derive(Default)]
struct State {
    asked: Vec<ReceivedRequest>,
    clients: u32,
    tokens: u32,
    /// Codes with what they were asked with.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    /// Tokens that are valid, with their permissions.
    valid: BTreeMap<String, BTreeSet<String>>,
    /// Tokens for new ones, each of which is used once.
    refresh: BTreeMap<String, BTreeSet<String>>,
}

/// The servers.
pub struct OauthServer {
    pub address: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl OauthServer {
    pub async fn start(way: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<Mutex<State>> = Arc::default();
        let served = Served {
            way: way.to_owned(),
            origin: origin.clone(),
            state: state.clone(),
        };
        let task = tokio::spawn(async move {
            let served = Arc::new(served);
            while let Ok((mut connection, _)) = listener.accept().await {
                let served = served.clone();
                tokio::spawn(async move {
                    while let Ok(Some(request)) = read(&mut connection).await {
                        served.state.lock().unwrap().asked.push(request.clone());
                        if served.answer(&mut connection, &request).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self {
            address: format!("{origin}/mcp"),
            state,
            task,
        }
    }

    /// The requests to a path.
    pub fn asked(&self, path: &str) -> Vec<ReceivedRequest> {
        let state = self.state.lock().unwrap();
        let asked = state
            .asked
            .iter()
            .filter(|asked| asked.path.split('?').next() == Some(path));
        asked.cloned().collect()
    }

    /// No token that was given is valid any more.
    pub fn forget_tokens(&self) {
        self.state.lock().unwrap().valid.clear();
    }

    /// Nobody gets a new token for an old one any more.
    pub fn revoke(&self) {
        let mut state = self.state.lock().unwrap();
        state.valid.clear();
        state.refresh.clear();
    }
}

impl Drop for OauthServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Served {
    way: String,
    origin: String,
    state: Arc<Mutex<State>>,
}

fn form(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://form/?{text}")).unwrap();
    let pairs = url.query_pairs();
    pairs
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

impl Served {
    async fn answer(&self, to: &mut TcpStream, request: &ReceivedRequest) -> io::Result<()> {
        let path = request.path.split('?').next().unwrap_or_default();
        match path {
            "/mcp" => self.mcp(to, request).await,
            _ if self.way == "no metadata" => send(to, "404 Not Found", "", b"").await,
            "/.well-known/oauth-protected-resource/mcp" => {
                let issuer = match self.way.as_str() {
                    "issuer in the clear" => "http://sign-in.example".to_owned(),
                    "issuer in the network" => "https://192.168.1.1".to_owned(),
                    _ => self.origin.clone(),
                };
                let resource = match self.way.as_str() {
                    "another resource" => "https://mcp.example/mcp".to_owned(),
                    _ => format!("{}/mcp", self.origin),
                };
                let about = json!({ "resource": resource, "authorization_servers": [issuer] });
                answer_json(to, "200 OK", "", &about).await
            }
            "/.well-known/oauth-authorization-server" => answer_json(to, "200 OK", "", &self.metadata()).await,
            "/register" => self.register(to).await,
            "/authorize" => self.authorize(to, request).await,
            "/token" => self.token(to, request).await,
            _ => send(to, "404 Not Found", "", b"").await,
        }
    }

    fn metadata(&self) -> Value {
        let Self { origin, way, .. } = self;
        let mut metadata = json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        match way.as_str() {
            "other issuer" => metadata["issuer"] = json!("https://other.example"),
            "no registration" => metadata["registration_endpoint"] = Value::Null,
            "no proof" => metadata["code_challenge_methods_supported"] = json!(["plain"]),
            "token in the clear" => metadata["token_endpoint"] = json!("http://sign-in.example/token"),
            "page in the clear" => metadata["authorization_endpoint"] = json!("http://sign-in.example/authorize"),
            "page of a program" => metadata["authorization_endpoint"] = json!("file:///etc/passwd"),
            _ => {}
        }
        metadata
    }

    async fn register(&self, to: &mut TcpStream) -> io::Result<()> {
        if self.way == "refuses registration" {
            let error = json!({ "error": "invalid_client_metadata", "error_description": "friends only" });
            return answer_json(to, "400 Bad Request", "", &error).await;
        }
        let number = {
            let mut state = self.state.lock().unwrap();
            state.clients += 1;
            state.clients
        };
        let mut client = json!({ "client_id": format!("client-{number}"), "redirect_uris": [] });
        if self.way == "secret" {
            client["client_secret"] = json!(CLIENT_SECRET);
        }
        answer_json(to, "201 Created", "", &client).await
    }

    async fn authorize(&self, to: &mut TcpStream, request: &ReceivedRequest) -> io::Result<()> {
        let asked = form(request.path.split_once('?').map_or("", |(_, query)| query));
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        assert_eq!(
            (asked["response_type"].as_str(), asked["code_challenge_method"].as_str()),
            ("code", "S256")
        );
        let state = match self.way.as_str() {
            "wrong state" => "a-guess",
            _ => asked["state"].as_str(),
        };
        let issuer = match self.way.as_str() {
            "wrong iss" => Some("https://other.example"),
            "no iss" => None,
            _ => Some(self.origin.as_str()),
        };
        let code = {
            let mut state = self.state.lock().unwrap();
            let code = format!("code-{}", state.codes.len());
            state.codes.insert(code.clone(), asked.clone());
            code
        };
        let given = match self.way.as_str() {
            "denied" => ("error", "access_denied"),
            _ => ("code", code.as_str()),
        };
        let pairs = [
            Some(("state", state)),
            Some(given),
            issuer.map(|issuer| ("iss", issuer)),
        ];
        back.query_pairs_mut().extend_pairs(pairs.into_iter().flatten());
        send(to, "302 Found", &format!("Location: {back}\r\n"), b"").await
    }

    async fn token(&self, to: &mut TcpStream, request: &ReceivedRequest) -> io::Result<()> {
        let asked = form(&request.text);
        match self.grant(request, &asked) {
            Ok(token) => answer_json(to, "200 OK", "", &token).await,
            Err(error) => answer_json(to, "400 Bad Request", "", &json!({ "error": error })).await,
        }
    }

    fn grant(&self, request: &ReceivedRequest, asked: &BTreeMap<String, String>) -> Result<Value, &'static str> {
        let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
        if field("resource") != format!("{}/mcp", self.origin) {
            return Err("invalid_target");
        }
        if self.way == "secret" {
            let named = request.header("authorization").unwrap_or_default();
            let expected = STANDARD.encode(format!("client-1:{CLIENT_SECRET}"));
            if named != format!("Basic {expected}") {
                return Err("invalid_client");
            }
        }
        if self.way == "no token" {
            return Err("server_error");
        }
        let mut state = self.state.lock().unwrap();
        let scopes = match field("grant_type") {
            "authorization_code" => {
                let before = state.codes.remove(field("code")).ok_or("invalid_grant")?;
                let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
                if before["code_challenge"] != proof || before["redirect_uri"] != field("redirect_uri") {
                    return Err("invalid_grant");
                }
                let scopes = before.get("scope").map(String::as_str).unwrap_or_default();
                scopes.split_whitespace().map(str::to_owned).collect()
            }
            _ => state.refresh.remove(field("refresh_token")).ok_or("invalid_grant")?,
        };
        state.tokens += 1;
        let (token, refresh) = (format!("token-{}", state.tokens), format!("refresh-{}", state.tokens));
        state.valid.insert(token.clone(), scopes.clone());
        state.refresh.insert(refresh.clone(), scopes.clone());
        let scope = scopes.into_iter().collect::<Vec<_>>().join(" ");
        let lifetime = if self.way == "short" { 1 } else { 3600 };
        Ok(json!({
            "access_token": token, "token_type": "Bearer", "refresh_token": refresh, "expires_in": lifetime, "scope": scope
        }))
    }

    async fn mcp(&self, to: &mut TcpStream, request: &ReceivedRequest) -> io::Result<()> {
        let token = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "));
        let scopes = token.and_then(|token| self.state.lock().unwrap().valid.get(token).cloned());
        let about = format!(
            "resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
            self.origin
        );
        let Some(scopes) = scopes else {
            let challenge = match self.way.as_str() {
                "no metadata" => String::new(),
                _ => format!("WWW-Authenticate: Bearer {about}, scope=\"read\"\r\n"),
            };
            return send(to, "401 Unauthorized", &challenge, b"").await;
        };
        let result = match request.called() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "o", "version": "1" }
            }),
            "tools/list" => {
                let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
                json!({ "tools": [tool("read"), tool("write")] })
            }
            "tools/call" => {
                let name = request.body["params"]["name"].as_str().unwrap_or_default().to_owned();
                if !scopes.contains(&name) {
                    let challenge =
                        format!("WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{name}\", {about}\r\n");
                    return send(to, "403 Forbidden", &challenge, b"").await;
                }
                json!({ "content": [{ "type": "text", "text": name }] })
            }
            "server/discover" => return send(to, "400 Bad Request", "", b"").await,
            _ => return send(to, "202 Accepted", "", b"").await,
        };
        let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result });
        answer_json(to, "200 OK", "", &body).await
    }
}
