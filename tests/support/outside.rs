//! A server on loopback that Ponder must not contact.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// The record of a connection without a request, which the test itself makes.
pub const CONTROL: &str = "a connection alone";

/// A server on loopback that would answer everyone, and records its requests.
pub struct Outside {
    /// Its host and port.
    pub address: String,
    came: Arc<Mutex<Vec<String>>>,
}

impl Outside {
    /// Starts it, and checks that it records a connection.
    pub fn open() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("127.0.0.1:{}", socket.local_addr().expect("it is bound").port());
        let came = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&came);
        spawn(move || {
            for visitor in socket.incoming().flatten() {
                let list = Arc::clone(&list);
                spawn(move || answer(visitor, &list));
            }
        });
        let outside = Self { address, came };
        drop(TcpStream::connect(&outside.address));
        for _ in 0..100 {
            if outside.came() == [CONTROL] {
                return outside;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("the server does not hear of who comes: {:?}", outside.came());
    }

    /// The first line of each request so far, [`CONTROL`] first.
    pub fn came(&self) -> Vec<String> {
        self.came.lock().expect("whole").clone()
    }
}

/// Records the first line of a request, or a connection without one, and answers in a way that never stops a page from
/// trying again.
fn answer(mut visitor: TcpStream, came: &Mutex<Vec<String>>) {
    let mut bytes = [0; 512];
    let _ = visitor.set_read_timeout(Some(Duration::from_millis(500)));
    let read = visitor.read(&mut bytes).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
    let line = text.lines().next().unwrap_or(CONTROL).to_owned();
    came.lock().expect("whole").push(line);
    let _ = visitor.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 14\r\nConnection: close\r\n\r\n<p>outside</p>",
    );
}
