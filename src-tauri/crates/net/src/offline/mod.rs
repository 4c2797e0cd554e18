//! The *Offline* switch, and the name lookups that obey it.

mod resolver;
mod switch;

pub(crate) use resolver::{Found, LoopbackResolver, Names, Resolver};
pub(crate) use switch::OfflineSwitch;
