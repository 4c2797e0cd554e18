//! The windows and their looks.

pub mod appearance;
pub mod images;
mod open_windows;
pub mod pending_quit;
pub mod places;
pub mod previews;
pub mod question;
pub mod quick;
pub mod window;
