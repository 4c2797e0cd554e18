//! The formats that are read, each from bytes to text.

pub(crate) mod archive;
pub(crate) mod docx;
pub(crate) mod epub;
pub(crate) mod html;
pub(crate) mod mail;
mod markdown;
pub(crate) mod odf;
mod package;
pub(crate) mod pdf;
pub(crate) mod pptx;
mod rows;
pub(crate) mod text;
pub(crate) mod xlsx;
mod xml;
