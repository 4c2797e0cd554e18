//! Prompts are counted two at a time, and not at all for a client that is gone.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use protocol::fake::FakeEngine;
use protocol::{
    Capabilities, EmbeddingRequest, Embeddings, Engine, JobHandle, LocalEngine, ModelSource, Request, Result,
    TokenCount,
};
use serde_json::json;
use server::{Server, ServerConfig};
use tokio::sync::Semaphore;

use crate::client::{request, Connection};
use crate::harness::Shelf;

/// An engine that counts to the end, as a thread does, when the test gives a permit.
#[derive(Clone)]
struct Slow {
    inner: FakeEngine,
    begun: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Engine for Slow {
    fn generate(&self, request: Request) -> JobHandle {
        self.inner.generate(request)
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        self.inner.capabilities(model)
    }

    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let (gate, count) = (self.gate.clone(), self.inner.count(request));
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            count.await
        })
    }

    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, Result<Embeddings>> {
        self.inner.embed(request)
    }

    fn local(&self) -> Option<&dyn LocalEngine> {
        self.inner.local()
    }
}

async fn count(address: SocketAddr) -> Connection {
    let body = json!({"model": "pebble", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    let json = [("content-type", "application/json")];
    let mut connection = Connection::open(address).await;
    let path = "/v1/messages/count_tokens";
    connection
        .send(&request("POST", address, path, &json, body.as_bytes()))
        .await
        .unwrap();
    connection
}

#[tokio::test]
async fn two_prompts_are_counted_at_once_and_none_for_nobody() {
    let engine = Slow {
        inner: FakeEngine::new(),
        begun: Arc::default(),
        gate: Arc::new(Semaphore::new(0)),
    };
    let config = ServerConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        ..ServerConfig::default()
    };
    let server = Server::start(config, Arc::new(engine.clone()), Arc::new(Shelf))
        .await
        .unwrap();
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(count(server.address()).await);
        // In this order.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(engine.begun.load(Ordering::SeqCst), 2);
    // One that is being counted and two that wait leave; what has begun goes on and keeps its place.
    let mut last = clients.pop().unwrap();
    clients.truncate(3);
    drop(clients.remove(0));
    drop(clients.pop());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(engine.begun.load(Ordering::SeqCst), 2);
    engine.gate.add_permits(10);
    assert_eq!(clients[0].head().await.unwrap().status, 200);
    assert_eq!(last.head().await.unwrap().status, 200);
    assert_eq!(engine.begun.load(Ordering::SeqCst), 3);
}
