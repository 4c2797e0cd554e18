//! A server on loopback that answers as a test says and keeps what it was asked.
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Response;
use axum::Router;
use futures::{stream, StreamExt};
use tokio::net::TcpListener;

type Kept = Arc<Mutex<Vec<axum::http::Request<Bytes>>>>;

pub struct Server {
    address: SocketAddr,
    requests: Kept,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub async fn start(
        respond: impl Fn(&axum::http::Request<Bytes>) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), respond)
    }

    pub fn start_on(
        listener: TcpListener,
        respond: impl Fn(&axum::http::Request<Bytes>) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let requests = Kept::default();
        let (kept, respond) = (Arc::clone(&requests), Arc::new(respond));
        let router = Router::new().fallback(move |request: Request| {
            let (kept, respond) = (Arc::clone(&kept), Arc::clone(&respond));
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                let request = axum::http::Request::from_parts(parts, body);
                let response = respond(&request);
                kept.lock().unwrap().push(request);
                response
            }
        });
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            address,
            requests,
            task,
        }
    }

    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<axum::http::Request<Bytes>> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn answer(status: u16, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).body(body.into()).unwrap()
}

/// A body of `pieces` times 1,000 bytes, one at a time.
pub fn slow(every: Duration, pieces: usize) -> Response<Body> {
    let pieces = stream::iter(0..pieces.max(1)).then(move |_| async move {
        tokio::time::sleep(every).await;
        Ok::<_, std::io::Error>(Bytes::from_static(&[7; 1000]))
    });
    answer(200, Body::from_stream(pieces))
}
