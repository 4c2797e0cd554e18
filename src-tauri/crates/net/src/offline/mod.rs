//! The *Offline* switch, and the name lookups that obey it.

mod resolver;
mod switch;

#[cfg(test)]
pub(crate) use resolver::Found;
pub(crate) use resolver::{LoopbackResolver, Names, Resolver};
pub(crate) use switch::OfflineSwitch;
