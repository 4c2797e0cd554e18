//! The table of chats, and what a user does to the tree of one.

pub(crate) mod branches;
pub(crate) mod cuts;
pub(crate) mod list;
