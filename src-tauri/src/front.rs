//! Quick entry in front of other programs, on macOS. There an app stays in front that hides a window, and so the focus with another of its
//! windows; and no window comes over a program that fills the screen unless it says that it may.

use std::ffi::c_void;
use std::ptr;

use objc2::MainThreadMarker;
use objc2_app_kit::{NSApplication, NSApplicationActivationOptions, NSRunningApplication, NSWindowCollectionBehavior, NSWorkspace};
use tauri::{AppHandle, WebviewWindow};

/// A program with windows, by its process.
#[derive(Debug)]
pub struct Front(i32);

impl Front {
    /// The program in front; `None` if that is this one.
    pub fn other() -> Option<Self> {
        let front = NSWorkspace::sharedWorkspace().frontmostApplication()?;
        let process = front.processIdentifier();
        (process != NSRunningApplication::currentApplication().processIdentifier()).then_some(Self(process))
    }

    /// Gives it the focus. One that has ended leaves things as they are.
    pub fn give_back(self, app: &AppHandle) {
        let given = app.run_on_main_thread(move || {
            let front = NSRunningApplication::runningApplicationWithProcessIdentifier(self.0);
            if let (Some(front), Some(main)) = (front, MainThreadMarker::new()) {
                // Since macOS 14 an app comes to the front only if the one that is there lets it.
                NSApplication::sharedApplication(main).yieldActivationToApplication(&front);
                let this = NSRunningApplication::currentApplication();
                front.activateFromApplication_options(&this, NSApplicationActivationOptions::empty());
            }
        });
        if let Err(error) = given {
            tracing::warn!("the focus stays with Ponder: {error}");
        }
    }
}

/// Lets a window come over a program that fills the screen.
pub fn over_full_screen(window: &WebviewWindow) {
    let wanted = window.clone();
    let done = window.run_on_main_thread(move || {
        let (Ok(wanted), Some(main)) = (wanted.ns_window(), MainThreadMarker::new()) else {
            return;
        };
        for window in NSApplication::sharedApplication(main).windows() {
            if ptr::eq(ptr::from_ref(&*window).cast::<c_void>(), wanted) {
                let more = NSWindowCollectionBehavior::CanJoinAllSpaces | NSWindowCollectionBehavior::FullScreenAuxiliary;
                window.setCollectionBehavior(window.collectionBehavior() | more);
            }
        }
    });
    if let Err(error) = done {
        tracing::warn!("quick entry stays behind programs that fill the screen: {error}");
    }
}
