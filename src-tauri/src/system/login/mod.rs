//! The login item: an entry in the desktop's autostart folder on Linux, a launch agent on macOS. The file is the
//! setting, so changes by the desktop's own settings count.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use files::Durability;
use protocol::{Error, Reason, Result};
use tauri::{AppHandle, Manager};

use crate::system::command_link;

/// The argument with which the app is started at login.
pub const AT_LOGIN: &str = "--at-login";

/// A longer file is not ours.
const LONGEST: u64 = 64 << 10;

/// The file format that the system reads.
#[derive(Debug, Clone, Copy)]
enum Form {
    DesktopEntry,
    LaunchAgent,
}

/// The login item's file, and the program that it should name.
#[derive(Debug)]
pub struct Login {
    form: Form,
    /// `None` for an account without a home folder.
    file: Option<PathBuf>,
    program: io::Result<PathBuf>,
}

impl Login {
    /// The current user's login item. Resolve it at startup: after an update, `current_exe` names a deleted file.
    pub fn of(app: &AppHandle) -> Self {
        let (form, folder, file) = if cfg!(target_os = "macos") {
            let agent = format!("Library/LaunchAgents/{LABEL}.plist");
            (Form::LaunchAgent, app.path().home_dir(), agent)
        } else {
            let entry = "autostart/Ponder.desktop".to_owned();
            (Form::DesktopEntry, app.path().config_dir(), entry)
        };
        Self {
            form,
            file: folder.ok().map(|folder| folder.join(file)),
            program: std::env::current_exe().and_then(|program| program.canonicalize()),
        }
    }

    /// True if the app is opened at login.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_on(&self) -> Result<bool> {
        Ok(self.read()?.is_some_and(|text| !self.form.is_off(&text)))
    }

    /// Adds or removes the login item.
    ///
    /// # Errors
    /// When the file cannot be written or removed, or the program is in a place that will not last.
    pub fn set(&self, on: bool) -> Result<()> {
        match on {
            true => self.write(),
            false => files::found(fs::remove_file(self.file()?))
                .map(drop)
                .map_err(|error| refused(&error)),
        }
    }

    /// Points a login item at this program if it names one that is gone: the app was moved, or another copy was
    /// removed. An item that the desktop disabled stays so. Returns true if the file was changed.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn heal(&self) -> Result<bool> {
        let Some(text) = self.read()? else {
            return Ok(false);
        };
        let program = self.form.program(&text);
        let is_there = program.is_some_and(|program| Path::new(&program).is_file());
        if is_there || self.form.is_off(&text) {
            return Ok(false);
        }
        self.write().map(|()| true)
    }

    fn file(&self) -> Result<&Path> {
        let file = self.file.as_deref();
        file.ok_or_else(|| refused(&"this account has no folder of its own"))
    }

    fn read(&self) -> Result<Option<String>> {
        let Some(file) = files::found(File::open(self.file()?)).map_err(|error| refused(&error))? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(LONGEST)
            .read_to_end(&mut bytes)
            .map_err(|error| refused(&error))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn write(&self) -> Result<()> {
        let program = self.program.as_ref().map_err(|error| refused(error))?;
        if command_link::goes_away(program) {
            let message =
                "Move Ponder into the Applications folder first, and open it from there: it would be looked for in a place that goes away.";
            return Err(Error::because(Reason::MoveToApplications, message));
        }
        let name = program.to_str().filter(|name| !name.chars().any(char::is_control));
        let name =
            name.ok_or_else(|| refused(&format!("the name of {} cannot be written there", program.display())))?;
        let text = self.form.text(name);
        files::write_private(self.file()?, text.as_bytes(), Durability::ProcessCrash).map_err(|error| refused(&error))
    }
}

fn refused(reason: &dyn std::fmt::Display) -> Error {
    let what = "whether Ponder opens at login could not be read or set; it is as it was";
    Error::because(Reason::LoginItem, format!("{what}: {reason}"))
}

/// The label of the launch agent.
const LABEL: &str = "app.ponder.desktop.login";

impl Form {
    fn text(self, program: &str) -> String {
        match self {
            Self::DesktopEntry => desktop_entry(program),
            Self::LaunchAgent => launch_agent(program),
        }
    }

    /// The program that a file names; `None` if it names none.
    fn program(self, text: &str) -> Option<String> {
        match self {
            Self::DesktopEntry => first_word(&unescaped(value(text, "Exec")?)),
            Self::LaunchAgent => {
                let (_, arguments) = text.split_once("<key>ProgramArguments</key>")?;
                let (program, _) = arguments.split_once("<string>")?.1.split_once("</string>")?;
                Some(
                    ENTITIES
                        .iter()
                        .rev()
                        .fold(program.to_owned(), |text, (sign, entity)| text.replace(entity, sign)),
                )
            }
        }
    }

    /// True if the file exists but is disabled, as the desktop's own settings write it.
    fn is_off(self, text: &str) -> bool {
        match self {
            Self::DesktopEntry => {
                value(text, "Hidden") == Some("true") || value(text, "X-GNOME-Autostart-enabled") == Some("false")
            }
            Self::LaunchAgent => false,
        }
    }
}

/// `TryExec` lets a desktop skip the entry when the program is gone.
fn desktop_entry(program: &str) -> String {
    let (command, tried) = (escaped(&quoted(program)), escaped(program));
    format!(
        "[Desktop Entry]\nType=Application\nName=Ponder\nIcon=ponder-app\nExec={command} {AT_LOGIN}\nTryExec={tried}\nTerminal=false\n\
         StartupNotify=false\n"
    )
}

/// Without `ProcessType` launchd throttles the program like a background job.
fn launch_agent(program: &str) -> String {
    let program = ENTITIES
        .iter()
        .fold(program.to_owned(), |text, (sign, entity)| text.replace(sign, entity));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>AssociatedBundleIdentifiers</key>
  <string>app.ponder.desktop</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
    <string>{AT_LOGIN}</string>
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>ProcessType</key>
  <string>Interactive</string>
  <key>LimitLoadToSessionType</key>
  <string>Aqua</string>
</dict>
</plist>
"#
    )
}

/// The characters that XML escapes; the ampersand first.
const ENTITIES: [(&str, &str); 3] = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")];

/// The raw value of a key in a desktop entry.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().map(str::trim);
    let entry = lines.skip_while(|line| *line != "[Desktop Entry]").skip(1);
    let mut entry = entry.take_while(|line| !line.starts_with('['));
    entry.find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim_end() == key).then(|| value.trim_start())
    })
}

/// A program as the first word of a command: quoted if needed, with `%` escaped so that no field code is left in it.
fn quoted(program: &str) -> String {
    let doubled = program.replace('%', "%%");
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-+@:%".contains(sign);
    if doubled.chars().all(plain) {
        return doubled;
    }
    let mut word = String::from('"');
    for sign in doubled.chars() {
        if matches!(sign, '"' | '`' | '$' | '\\') {
            word.push('\\');
        }
        word.push(sign);
    }
    word.push('"');
    word
}

/// The first word of a command.
fn first_word(command: &str) -> Option<String> {
    let command = command.trim_start();
    let word = match command.strip_prefix('"') {
        None => command.split_whitespace().next()?.to_owned(),
        Some(rest) => {
            let (mut word, mut signs) = (String::new(), rest.chars());
            loop {
                match signs.next()? {
                    '"' => break word,
                    '\\' => word.push(signs.next()?),
                    sign => word.push(sign),
                }
            }
        }
    };
    Some(word.replace("%%", "%"))
}

/// A text as the value of a desktop entry.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
}

fn unescaped(value: &str) -> String {
    let (mut text, mut signs) = (String::new(), value.chars());
    while let Some(sign) = signs.next() {
        match (sign, sign == '\\') {
            (_, true) => text.push(match signs.next() {
                Some('s') => ' ',
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            }),
            (sign, false) => text.push(sign),
        }
    }
    text
}

#[cfg(test)]
mod tests;
