//! Names to addresses. A look-up already leaves this computer, so the switch holds for it too.

use std::error::Error as StdError;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::switch::OfflineSwitch;
use crate::error::NoAddress;

/// The resolver of every client.
pub(crate) struct Resolver(pub(crate) Arc<OfflineSwitch>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let switch = Arc::clone(&self.0);
        Box::pin(async move {
            let unknown = || Box::new(NoAddress(name.as_str().to_owned())) as Box<dyn StdError + Send + Sync>;
            if switch.is_on() {
                return Err(unknown());
            }
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0))
                .await
                .map_err(|_| unknown())?
                .collect();
            if found.is_empty() {
                return Err(unknown());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The resolver of the client for this computer. `localhost` is the loopback address by definition (RFC 6761), so
/// no server is asked, and none can say otherwise.
pub(crate) struct LoopbackResolver;

impl Resolve for LoopbackResolver {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        ];
        Box::pin(std::future::ready(Ok(Box::new(addresses.into_iter()) as Addrs)))
    }
}
