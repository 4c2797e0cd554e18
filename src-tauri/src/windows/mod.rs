//! The windows and their looks.

pub mod appearance;
pub mod images;
pub mod pending_quit;
pub mod quick;
pub mod window;
