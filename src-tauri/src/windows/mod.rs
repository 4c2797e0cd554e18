//! The windows and their looks.

pub mod appearance;
pub mod pending_quit;
pub mod pictures;
pub mod quick;
pub mod window;
