//! The calls of each system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::{memory_pressure, slowdown};
#[cfg(target_os = "macos")]
pub(crate) use macos::{memory_pressure, slowdown};
