//! Pictures as a window adds them.

use protocol::ExcerptUnit;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A picture that was stored, and is in no message yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct AddedPicture {
    /// Where its bytes are: the id of an attachment of the history.
    pub attachment: String,
    /// Such as `image/png`.
    pub media_type: String,
    /// In pixels, as it is seen.
    pub width: u32,
    /// In pixels, as it is seen.
    pub height: u32,
    /// Whether it moves; a model is shown its first frame.
    pub animated: bool,
}

/// The text of a file, in the parts that people can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FileText {
    /// What it is divided into.
    pub unit: ExcerptUnit,
    /// Its pages or lines, in order.
    pub pieces: Vec<String>,
}
