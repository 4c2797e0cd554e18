//! The one outbound client: nothing else opens a connection to another computer.
//!
//! ```no_run
//! # async fn example() -> net::Result<()> {
//! use net::{Net, Purpose, Settings};
//! let net = Net::open(Settings::of_this_computer("/data/ponder".as_ref()));
//! let address = net.endpoint().at(&["api", "models", "mlx-community", "Qwen3-4B-4bit"]);
//! let response = net.get(&address, Purpose::ModelInfo).send().await?.error_for_status()?;
//! let model: serde_json::Value = response.json_capped(1 << 20).await?;
//! # Ok(()) }
//! ```
//!
//! Every request is written down with its bytes ([`Net::requests`]), none leaves this computer while *Offline* is on
//! ([`Net::set_offline`]), the token goes to the hub's own address and nowhere else, and a key or a body
//! ([`Net::post`]) to the origin that it was meant for.

mod call;
mod client;
mod connections;
mod credentials;
mod endpoint;
mod environment;
mod error;
mod offline;
mod requests;

pub use api::{OutboundRequest, Purpose};
pub use bytes::Bytes;
pub use call::{public_host, RequestBuilder, Response, Timeouts};
pub use client::{Net, Settings};
pub use credentials::{Keychain, MemoryKeychain, SystemKeychain};
pub use endpoint::{is_loopback, Endpoint, PUBLIC_HUB};
pub use environment::Environment;
pub use error::{Error, Result};
