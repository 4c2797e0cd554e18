//! Documents as people have them, and files that are built to do harm.

#![allow(clippy::unwrap_used)]

mod books;
mod hostile;
mod mails;
mod make;
mod open_documents;
mod page_images;
mod reading;
mod sheets;
mod slides;
