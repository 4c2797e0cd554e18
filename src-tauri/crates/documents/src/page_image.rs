//! A page of a document as an image.

use serde::{Deserialize, Serialize};

/// A page as it is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageImage {
    /// The number of pages of the file.
    pub pages: u32,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// The lines of the passage that was asked for; none if the page does not say it.
    pub marks: Vec<PageMark>,
    /// A PNG without transparency. It travels beside what JSON holds.
    #[serde(skip)]
    pub png: Vec<u8>,
}

/// A rectangle on a page, in shares of its width and height.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageMark {
    /// From the left edge.
    pub left: f32,
    /// From the upper edge.
    pub top: f32,
    /// Its width.
    pub width: f32,
    /// Its height.
    pub height: f32,
}

/// The page that is to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    /// Its number, from 1.
    pub page: u32,
    /// The width of the image, in pixels; it is smaller if the page is too high for it.
    pub width: u32,
    /// A passage that is looked for on the page; empty for none.
    pub passage: String,
}
