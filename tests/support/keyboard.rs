//! The keyboard of a window's display, with a window manager that assigns the focus: keys go to the focused window or
//! to a global shortcut, like a user's.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::driver::Window;

/// The keys of a display.
pub struct Keyboard {
    environment: Vec<(String, String)>,
    manager: Child,
}

impl Keyboard {
    /// The keyboard of this window's display. The window manager follows GNOME's rules; without one, a new window gets
    /// no focus.
    pub fn of(window: &Window) -> Self {
        let environment = window.environment();
        let command = |name: &str| {
            let mut command = Command::new(name);
            command.env_clear().envs(environment.iter().cloned());
            command
        };
        let manager = command("metacity").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let manager = manager.expect("metacity is installed; ./dev test does it");
        window.wait_until("there is a window manager", || {
            let asked = command("xprop").args(["-root", "_NET_SUPPORTING_WM_CHECK"]).output();
            String::from_utf8_lossy(&asked.expect("x11-utils is installed; ./dev test does it").stdout)
                .contains("window id")
        });
        Self { environment, manager }
    }

    /// Presses and releases keys together: `ctrl+alt+space`.
    pub fn press(&self, keys: &str) {
        self.xdotool(&["key", keys]);
    }

    /// Types a text, a letter at a time.
    pub fn type_text(&self, text: &str) {
        self.xdotool(&["type", "--delay", "30", text]);
    }

    /// Gives the keyboard to the window whose title contains this.
    pub fn bring_forward(&self, title: &str) {
        self.xdotool(&[
            "search",
            "--sync",
            "--onlyvisible",
            "--name",
            title,
            "windowactivate",
            "--sync",
        ]);
    }

    fn xdotool(&self, arguments: &[&str]) {
        let done = Command::new("xdotool")
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .output()
            .expect("xdotool is installed; ./dev test does it");
        assert!(
            done.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Another program in the foreground, which records the keys that it gets.
    pub fn other_program(&self) -> OtherProgram<'_> {
        let heard = tempfile::NamedTempFile::new()
            .expect("a file")
            .into_temp_path()
            .keep()
            .expect("it stays");
        let process = Command::new("xev")
            .args(["-event", "keyboard", "-geometry", "200x100+900+20", "-name", OTHER])
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdout(fs::File::create(&heard).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("x11-utils is installed; ./dev test does it");
        let other = OtherProgram {
            keyboard: self,
            process,
            heard,
        };
        other.focus();
        other
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // It may have ended with its display.
        let _ = self.manager.kill();
        let _ = self.manager.wait();
    }
}

/// Its window title.
const OTHER: &str = "another program";

/// A program that gets keys while it has the focus.
pub struct OtherProgram<'a> {
    keyboard: &'a Keyboard,
    process: Child,
    heard: PathBuf,
}

impl OtherProgram<'_> {
    /// Gives it the focus, and checks that it gets keys.
    pub fn focus(&self) {
        let (before, deadline) = (self.presses(), Instant::now() + Duration::from_secs(20));
        self.keyboard.bring_forward(OTHER);
        while self.presses() == before {
            assert!(Instant::now() < deadline, "{OTHER} does not hear keys");
            self.keyboard.press("F5");
            sleep(Duration::from_millis(200));
        }
    }

    /// The number of key presses that it got.
    pub fn presses(&self) -> usize {
        fs::read_to_string(&self.heard)
            .expect("text")
            .matches("KeyPress event")
            .count()
    }
}

impl Drop for OtherProgram<'_> {
    fn drop(&mut self) {
        // It may have ended with its display.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.heard);
    }
}
