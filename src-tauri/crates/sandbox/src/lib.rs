//! Work on files of strangers in another process of this program: limited in memory and time, without network, files,
//! keychain and chats. Its death is an error of that one file.

mod child;
mod error;
mod frame;
mod pool;
mod process;
mod task;
mod walls;

pub use child::take_role;
pub use error::{Error, Result};
pub use task::{Task, Work};
