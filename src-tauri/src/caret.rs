//! The caret of a text field stays visible on Linux instead of blinking. WebKitGTK draws the whole window anew for each blink, twice a second
//! for as long as a field has the focus, and with GTK's own switch for blinking off it wakes up with every frame of the screen. With a blink
//! that never comes it does neither.

use gtk::prelude::GtkSettingsExt;

/// Longer than any app runs, in milliseconds: the most that GTK takes.
const NEVER: i32 = i32::MAX;

/// Keeps the carets of all windows still. On the main thread, once GTK was started.
pub fn hold_still() {
    if let Some(settings) = gtk::Settings::default() {
        settings.set_gtk_cursor_blink(true);
        settings.set_gtk_cursor_blink_time(NEVER);
    }
}
