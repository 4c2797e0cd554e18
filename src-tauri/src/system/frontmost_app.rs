//! Quick entry in front of other programs, on macOS. An app that hides a window stays in front there, so the focus goes
//! to another of its windows; and no window covers a full-screen program unless it asks to.

use std::ffi::c_void;
use std::ptr;

use objc2::MainThreadMarker;
use objc2_app_kit::{
    NSApplication, NSApplicationActivationOptions, NSRunningApplication, NSWindowCollectionBehavior, NSWorkspace,
};
use tauri::{AppHandle, WebviewWindow};

/// A program with windows, by its process.
#[derive(Debug)]
pub struct FrontmostApp(i32);

impl FrontmostApp {
    /// The frontmost app; `None` if it is this one.
    pub fn other() -> Option<Self> {
        let front = NSWorkspace::sharedWorkspace().frontmostApplication()?;
        let process = front.processIdentifier();
        (process != NSRunningApplication::currentApplication().processIdentifier()).then_some(Self(process))
    }

    /// Gives it the focus, if it still runs.
    pub fn give_back(self, app: &AppHandle) {
        let given = app.run_on_main_thread(move || {
            let front = NSRunningApplication::runningApplicationWithProcessIdentifier(self.0);
            if let (Some(front), Some(main)) = (front, MainThreadMarker::new()) {
                // Since macOS 14 an app comes to the front only if the frontmost one yields.
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

/// Lets a window cover a full-screen program.
pub fn over_full_screen(window: &WebviewWindow) {
    let wanted = window.clone();
    let done = window.run_on_main_thread(move || {
        let (Ok(wanted), Some(main)) = (wanted.ns_window(), MainThreadMarker::new()) else {
            return;
        };
        for window in NSApplication::sharedApplication(main).windows() {
            if ptr::eq(ptr::from_ref(&*window).cast::<c_void>(), wanted) {
                let more =
                    NSWindowCollectionBehavior::CanJoinAllSpaces | NSWindowCollectionBehavior::FullScreenAuxiliary;
                window.setCollectionBehavior(window.collectionBehavior() | more);
            }
        }
    });
    if let Err(error) = done {
        tracing::warn!("quick entry stays behind programs that fill the screen: {error}");
    }
}
