//! Keeps the caret of text fields visible on Linux instead of blinking. WebKitGTK redraws the entire window for each
//! blink, twice a second while a field has the focus, and with GTK's own setting for blinking off it wakes up for every
//! frame of the screen. A blink interval that never ends avoids both.

use gtk::prelude::GtkSettingsExt;

/// Longer than any app runs, in milliseconds: the maximum that GTK accepts.
const NEVER: i32 = i32::MAX;

/// Stops the blinking in all windows. Called on the main thread, after GTK was started.
pub fn hold_still() {
    if let Some(settings) = gtk::Settings::default() {
        settings.set_gtk_cursor_blink(true);
        settings.set_gtk_cursor_blink_time(NEVER);
    }
}
