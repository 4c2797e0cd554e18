//! The rendering of web views on Linux. WebKitGTK composites its layers with OpenGL, which Mesa emulates on the CPU if
//! there is no graphics card, at less than half the speed of WebKit's own painting.

use std::path::Path;

use rustix::fs::{access, Access};

/// The folder with the render devices of Linux, such as `renderD128`.
const DEVICES: &str = "/dev/dri";
/// WebKitGTK's own variable; its web processes inherit it, while a setting of a web view would come too late.
const NO_COMPOSITOR: (&str, &str) = ("WEBKIT_DISABLE_DMABUF_RENDERER", "1");
/// GTK's variable; otherwise it starts the software rasterizer to query its features.
const NO_OPENGL: (&str, &str) = ("GDK_GL", "disable");

/// Lets WebKit paint by itself if the user has access to no graphics card. Called before GTK or any thread starts;
/// variables that the user set stay.
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

/// True if one of the devices can render. None is opened, because that would wake a sleeping card.
fn has_card(devices: &Path) -> bool {
    std::fs::read_dir(devices).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            entry.file_name().to_string_lossy().starts_with("renderD")
                && access(entry.path(), Access::READ_OK | Access::WRITE_OK).is_ok()
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
