//! The app's place on the desktop: menus, tray, notifications, requests from outside, closing and quitting.

pub mod closing;
pub mod consent;
pub mod menu;
pub mod notify;
pub mod open_requests;
pub mod power;
pub mod quit;
pub mod run_command;
pub mod tray;
