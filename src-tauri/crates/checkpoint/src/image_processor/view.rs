//! Plans of one view.

use super::{ImagePlan, View};

/// A plan of one view.
pub(super) fn single(view: View) -> ImagePlan {
    ImagePlan {
        resized: (view.width, view.height),
        steps: vec![(view.width, view.height)],
        views: vec![view],
        tiles: None,
        whole: false,
        joined: None,
    }
}

/// A view whose blocks of `merge` by `merge` patches become tokens.
pub(super) fn merged(width: u32, height: u32, patch: u32, merge: u32) -> View {
    let tokens = (height / (patch * merge), width / (patch * merge));
    View {
        width,
        height,
        patches: (height / patch, width / patch),
        tokens,
        features: tokens.0 * tokens.1,
    }
}
