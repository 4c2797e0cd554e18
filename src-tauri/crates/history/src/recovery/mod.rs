//! A damaged file: its rows out of every page that can be read, and a new file in its place.

mod entries;
pub(crate) mod repair;
mod salvage;
mod tables;
