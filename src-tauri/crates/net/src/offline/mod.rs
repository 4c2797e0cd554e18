//! The *Offline* switch, and the name lookups that obey it.

mod resolver;
mod switch;

pub(crate) use resolver::{LoopbackResolver, Resolver};
pub(crate) use switch::OfflineSwitch;
