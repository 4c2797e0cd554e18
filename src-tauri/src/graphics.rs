//! How web views are drawn on Linux. WebKitGTK composes its layers with OpenGL, and on a computer without a graphics card Mesa's rasteriser does that on the
//! processor, at less than half the speed at which WebKit paints by itself.

use std::path::Path;

use rustix::fs::{access, Access};

/// Where Linux shows what may be drawn with, as `renderD128`.
const DEVICES: &str = "/dev/dri";
/// WebKitGTK's own switch; the processes of its pages inherit it, which no setting of a web view reaches in time.
const NO_COMPOSITOR: (&str, &str) = ("WEBKIT_DISABLE_DMABUF_RENDERER", "1");
/// GTK's, which otherwise starts the rasteriser to ask what it can do.
const NO_OPENGL: (&str, &str) = ("GDK_GL", "disable");

/// Lets WebKit paint by itself if there is no graphics card that this person may use. Before GTK or a thread begins; what a person has set themself stays.
pub fn choose() {
    if has_card(Path::new(DEVICES)) {
        return;
    }
    for (name, value) in [NO_COMPOSITOR, NO_OPENGL] {
        if std::env::var_os(name).is_none() {
            std::env::set_var(name, value);
        }
    }
}

/// Whether one of the devices can be drawn with. None is opened, because that would wake a card that sleeps.
fn has_card(devices: &Path) -> bool {
    std::fs::read_dir(devices).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            entry.file_name().to_string_lossy().starts_with("renderD") && access(entry.path(), Access::READ_OK | Access::WRITE_OK).is_ok()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_what_can_be_rendered_with() {
        let devices = tempfile::tempdir().expect("a folder");
        assert!(!has_card(&devices.path().join("missing")), "a computer without any");
        std::fs::write(devices.path().join("card0"), "").expect("a screen");
        assert!(!has_card(devices.path()), "a screen alone");
        std::fs::write(devices.path().join("renderD128"), "").expect("a card");
        assert!(has_card(devices.path()));
    }
}
