//! Attachments, as a window adds them.

use protocol::ExcerptUnit;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An image that was stored and is in no message yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AddedImage {
    /// The id of the attachment that holds its bytes.
    pub attachment: String,
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The width in pixels, as displayed.
    pub width: u32,
    /// The height in pixels, as displayed.
    pub height: u32,
    /// True if it is animated; a model is shown its first frame.
    pub animated: bool,
}

/// The text of a file, in pages or lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FileText {
    /// The unit of `pieces`.
    pub unit: ExcerptUnit,
    /// Its pages or lines, in order.
    pub pieces: Vec<String>,
}
