//! Connections that can be cut: an origin can disappear and return, and one connection can be reset in the middle of a
//! response.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One origin of the imitation, open while `present` says so.
pub(crate) struct Address {
    address: SocketAddr,
    listener: Option<TcpListener>,
    present: watch::Receiver<bool>,
}

impl Address {
    pub(crate) fn new(listener: TcpListener, present: watch::Receiver<bool>) -> io::Result<Self> {
        Ok(Self {
            address: listener.local_addr()?,
            listener: Some(listener),
            present,
        })
    }
}

impl Listener for Address {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        loop {
            if !*self.present.borrow_and_update() {
                self.listener = None;
                if self.present.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                continue;
            }
            let Some(listener) = &self.listener else {
                self.listener = TcpListener::bind(self.address).await.ok();
                if self.listener.is_none() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                continue;
            };
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, peer)) = accepted {
                    // Without it the second half of a response waits for the acknowledgment of the first.
                    let _ = stream.set_nodelay(true);
                    return (Line { stream, cut: Cut::default(), present: self.present.clone() }, peer);
                },
                changed = self.present.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Cuts the connection of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut(Arc<AtomicBool>);

impl Cut {
    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Connected<IncomingStream<'_, Address>> for Cut {
    fn connect_info(stream: IncomingStream<'_, Address>) -> Self {
        stream.io().cut.clone()
    }
}

/// A connection.
pub(crate) struct Line {
    stream: TcpStream,
    cut: Cut,
    present: watch::Receiver<bool>,
}

impl Line {
    fn alive(&self) -> io::Result<()> {
        if self.cut.0.load(Ordering::SeqCst) || !*self.present.borrow() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.alive().is_err() {
            // Closing with unsent data discarded is a reset for the other end.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.alive()?;
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.alive()?;
        }
        polled
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.alive()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.alive()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
