//! Names to addresses. A look-up already leaves this computer, so the switch holds for it too.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::switch::OfflineSwitch;
use crate::endpoint::Place;
use crate::error::{LocalAddress, NoAddress};

/// An address of a name, and its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) number: IpAddr,
    pub(crate) place: Place,
}

/// Looks a name up.
pub(crate) type LookUp = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<Found>>> + Send + Sync;

/// The names of requests: how they are looked up, and where they led.
pub(crate) struct Names {
    look_up: Box<LookUp>,
    /// The names that requests asked for, and where each led. A proxy's name is not among them: the user set it, and it
    /// may lead anywhere.
    asked: Mutex<HashMap<String, Place>>,
}

impl Names {
    /// The names that this computer knows.
    pub(crate) fn of_this_computer() -> Self {
        Self::looked_up(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found
                    .map(|address| Found {
                        number: address.ip(),
                        place: Place::of(address.ip()),
                    })
                    .collect())
            })
        })
    }

    pub(crate) fn looked_up(
        look_up: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<Found>>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            look_up: Box::new(look_up),
            asked: Mutex::default(),
        }
    }

    /// Notes that a request asks for this name.
    pub(crate) fn ask_for(&self, name: &str) {
        self.asked().entry(name.to_owned()).or_insert(Place::Internet);
    }

    /// The place to which the name of a request led when it was last looked up; the internet if a proxy does that.
    pub(crate) fn place_of(&self, name: &str) -> Place {
        self.asked().get(name).copied().unwrap_or(Place::Internet)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resolver of the clients for other computers: it gives no address that is nearer than `reach`. Else a server on
/// the internet could make this client ask what only this computer can reach.
pub(crate) struct Resolver {
    pub(crate) switch: Arc<OfflineSwitch>,
    pub(crate) names: Arc<Names>,
    pub(crate) reach: Place,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (switch, names, reach) = (Arc::clone(&self.switch), Arc::clone(&self.names), self.reach);
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let unknown = || Box::new(NoAddress(name.clone())) as Box<dyn StdError + Send + Sync>;
            if switch.is_on() {
                return Err(unknown());
            }
            let found = (names.look_up)(name.clone()).await.map_err(|_| unknown())?;
            if found.is_empty() {
                return Err(unknown());
            }
            let asked = names.asked().get_mut(&name).map(|place| {
                *place = found.iter().map(|found| found.place).min().unwrap_or(*place);
            });
            let kept: Vec<_> = found
                .iter()
                .filter(|found| found.place <= reach || asked.is_none())
                .map(|found| SocketAddr::from((found.number, 0)))
                .collect();
            if kept.is_empty() {
                return Err(Box::new(LocalAddress(name)));
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
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
