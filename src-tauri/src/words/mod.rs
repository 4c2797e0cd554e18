//! The texts that the shell shows itself: in menus, titles, notifications and the system's dialogs. A JSON file for
//! each language; the tests refuse one that lacks a text. The pages' texts are in `ui/src/locales`, where the same
//! commands have the same names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::{Command, WindowName};
use serde::Deserialize;
use tauri::{AppHandle, Manager, Runtime};

use crate::app::state::App;

/// The texts of a language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// The language, a BCP 47 tag.
    pub tag: &'static str,
    /// The suffix of a command that opens a dialog first.
    pub asks: &'static str,
    /// Names as in the palette; in English with a menu's capitals.
    commands: BTreeMap<Command, &'static str>,

    // Menus, and the actions of macOS itself.
    pub file_menu: &'static str,
    pub edit_menu: &'static str,
    pub view_menu: &'static str,
    pub chat_menu: &'static str,
    pub window_menu: &'static str,
    pub help_menu: &'static str,
    pub about: &'static str,
    pub services: &'static str,
    pub hide: &'static str,
    pub hide_others: &'static str,
    pub show_all: &'static str,
    pub undo: &'static str,
    pub redo: &'static str,
    pub cut: &'static str,
    pub copy: &'static str,
    pub paste: &'static str,
    pub select_all: &'static str,
    pub minimize: &'static str,
    pub maximize: &'static str,
    pub all_to_front: &'static str,

    /// The tray's entry that shows the chat window.
    pub show: &'static str,
    /// The title of the window that says why the app could not start.
    pub could_not_start: &'static str,
    /// The title of the window in which calls of tools wait.
    pub consent: &'static str,
    /// The question before a server of tools is switched on.
    pub run_tool_server_question: &'static str,
    /// Its consequences; the command stands before it.
    pub run_tool_server_text: &'static str,
    /// The question before a server of tools at an address is switched on.
    pub connect_tool_server_question: &'static str,
    /// Its consequences; the address stands before it.
    pub connect_tool_server_text: &'static str,
    /// The kind of files in the dialog that chooses a bundle.
    pub bundle_kind: &'static str,
    /// The button that does it.
    pub switch_on: &'static str,
    /// The question before the page opens at which somebody signs in to a server of tools.
    pub sign_in_question: &'static str,
    /// Its consequences; the address stands before it.
    pub sign_in_text: &'static str,
    /// The button that opens it.
    pub open_page: &'static str,
    /// The page in the browser after somebody signed in.
    pub signed_in_page: &'static str,
    /// The page in the browser after that was refused.
    pub sign_in_refused_page: &'static str,
    /// The title of the window that shows a damaged history.
    pub history_damaged: &'static str,

    // Notifications.
    /// The end of an answer in a chat without a title.
    pub an_answer: &'static str,
    /// The end of an answer in the chat of this title.
    pub the_answer: &'static str,
    /// The end of this model's download.
    pub model_ready: &'static str,
    /// The failure of this model's download.
    pub model_failed: &'static str,
    /// The button of a notification.
    pub open: &'static str,

    /// The name of the collection of the user's own chats.
    pub own_chats: &'static str,

    // The system's dialogs.
    /// The title of the dialog that saves a file.
    pub save: &'static str,
    /// The title of the dialog that adds a model folder.
    pub add_folder: &'static str,
    pub add_files: &'static str,
    /// The name of the file with the notes on all documents.
    pub reading_notes: &'static str,
    /// The button that declines a question.
    pub cancel: &'static str,
    /// The question before the first endpoint on another computer.
    pub endpoint_question: &'static str,
    /// Its consequences, with the endpoint's `{address}`.
    pub endpoint_text: &'static str,
    /// Its button that agrees.
    pub add: &'static str,
    /// The question before the server answers other computers.
    pub network_question: &'static str,
    /// Its consequences.
    pub network_text: &'static str,
    /// Its button that agrees.
    pub allow: &'static str,
    /// The question before all chats are deleted.
    pub delete_question: &'static str,
    /// Its consequences.
    pub delete_text: &'static str,
    /// The consequence of leaving the backups.
    pub backups_text: &'static str,
    /// The button that leaves the backups.
    pub delete_chats: &'static str,
    /// The button that deletes them as well.
    pub delete_backups: &'static str,

    /// The reason for preventing sleep, as the system shows it.
    pub awake: &'static str,
    /// The kind of app in menus of Linux; `linux/ponder.desktop` is written with it.
    #[cfg_attr(not(test), allow(dead_code))]
    pub generic_name: &'static str,
}

/// Every language, in the order of `ui/src/locales/languages.svelte.ts`, which begins with English.
static ALL: LazyLock<[Words; 3]> = LazyLock::new(|| {
    let files = [
        include_str!("en.json"),
        include_str!("de.json"),
        include_str!("ar.json"),
    ];
    files.map(|file| serde_json::from_str(file).expect("every text is there, as the tests make sure"))
});

/// The texts of the app's language.
pub fn current<R: Runtime>(app: &AppHandle<R>) -> &'static Words {
    of(app.state::<App>().chat.settings().follow().borrow().language.as_deref())
}

/// The texts of a language, a BCP 47 tag; `None` is the system's. The pages choose by the same rule
/// (`wantedLanguages`).
pub fn of(language: Option<&str>) -> &'static Words {
    match language {
        Some(tag) if !tag.is_empty() => first_spoken([tag]),
        _ => first_spoken(of_system()),
    }
}

/// The user's languages on this computer, in order, as the web view reports them to pages.
#[cfg(target_os = "macos")]
fn of_system() -> impl Iterator<Item = String> {
    sys_locale::get_locales()
}

/// The language of this session, as the web view reports it to pages.
#[cfg(not(target_os = "macos"))]
fn of_system() -> Option<String> {
    of_locale(|name| std::env::var(name).ok())
}

/// The language of the `LC_CTYPE` locale, the only one that WebKitGTK reads.
#[cfg(not(target_os = "macos"))]
fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = set.find(|locale| !locale.is_empty())?;
    Some(locale.split('.').next()?.replace('_', "-"))
}

/// The texts of the first of these languages that Ponder supports, or English.
fn first_spoken<T: AsRef<str>>(wanted: impl IntoIterator<Item = T>) -> &'static Words {
    let spoken = |tag: &str| ALL.iter().find(|words| words.tag == tag);
    let of_tag = |tag: T| {
        let tag = tag.as_ref();
        spoken(tag).or_else(|| spoken(tag.split('-').next()?))
    };
    wanted.into_iter().find_map(of_tag).unwrap_or(&ALL[0])
}

impl Words {
    /// The name of a command.
    pub fn command(&self, command: Command) -> &'static str {
        self.commands.get(&command).copied().unwrap_or_default()
    }

    /// The title of a window.
    pub fn title(&self, window: WindowName) -> &'static str {
        match window {
            WindowName::Chat => "Ponder",
            WindowName::Models => self.command(Command::Models),
            WindowName::Settings => self.command(Command::Settings),
            WindowName::Quick => self.command(Command::QuickEntry),
            WindowName::Consent => self.consent,
            WindowName::Failure => self.could_not_start,
        }
    }
}

#[cfg(test)]
mod tests;
