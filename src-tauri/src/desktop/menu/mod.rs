//! The menu bar as data; [`crate::desktop::run_command`] executes its entries. Only macOS shows it. The keys are those
//! that the windows listen to, from one list (`ui/src/shared/shortcuts.json`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::{Command, WindowName};
use serde::Deserialize;
use tauri::menu::{
    AboutMetadata, CheckMenuItem, IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu, HELP_SUBMENU_ID,
    WINDOW_SUBMENU_ID,
};
use tauri::{AppHandle, Manager, Runtime};

use crate::words::Words;

/// Shortcuts by command, shared with the windows.
const SHORTCUTS: &str = include_str!("../../../../ui/src/shared/shortcuts.json");

#[derive(Debug, Deserialize)]
struct Shortcut {
    key: String,
    shift: bool,
}

/// Actions that macOS implements itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    About,
    Services,
    Hide,
    HideOthers,
    ShowAll,
    Undo,
    Redo,
    Cut,
    Copy,
    Paste,
    SelectAll,
    FullScreen,
    Minimize,
    Maximize,
    BringAllToFront,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Line,
    Role(Role),
    Command(Command),
    /// A command that opens a dialog first.
    Asks(Command),
    /// A command that switches something, with a mark while it is on.
    Switch(Command),
}

/// A menu of the bar. The system adds to two of them: the list of windows, and the search in all menus.
struct Column {
    id: &'static str,
    title: fn(&Words) -> &'static str,
    entries: &'static [Entry],
}

use Entry::{Asks, Command as Do, Line, Role as By, Switch};

const BAR: [Column; 7] = [
    Column {
        id: "app",
        title: |_| "Ponder",
        entries: &[
            By(Role::About),
            Line,
            Asks(Command::Settings),
            Asks(Command::InstallCommand),
            Line,
            By(Role::Services),
            Line,
            By(Role::Hide),
            By(Role::HideOthers),
            By(Role::ShowAll),
            Line,
            // Not the system's own entry, which ends the app without asking what runs.
            Do(Command::Quit),
        ],
    },
    Column {
        id: "file",
        title: |words| words.file_menu,
        entries: &[
            Do(Command::NewChat),
            Do(Command::TemporaryChat),
            Do(Command::QuickEntry),
            Line,
            Asks(Command::Import),
            Asks(Command::Export),
            Line,
            Do(Command::CloseWindow),
        ],
    },
    Column {
        id: "edit",
        title: |words| words.edit_menu,
        entries: &[
            By(Role::Undo),
            By(Role::Redo),
            Line,
            By(Role::Cut),
            By(Role::Copy),
            By(Role::Paste),
            By(Role::SelectAll),
            Line,
            Asks(Command::Find),
            Asks(Command::Search),
        ],
    },
    Column {
        id: "view",
        title: |words| words.view_menu,
        entries: &[
            Do(Command::ZoomReset),
            Do(Command::ZoomIn),
            Do(Command::ZoomOut),
            Line,
            By(Role::FullScreen),
        ],
    },
    Column {
        id: "chat",
        title: |words| words.chat_menu,
        entries: &[
            Do(Command::Composer),
            Do(Command::Regenerate),
            Line,
            Do(Command::Stop),
            Do(Command::AnswerNow),
            Line,
            Switch(Command::Thinking),
            Asks(Command::TwoAnswers),
            Asks(Command::ChatSettings),
        ],
    },
    Column {
        id: WINDOW_SUBMENU_ID,
        title: |words| words.window_menu,
        entries: &[
            By(Role::Minimize),
            By(Role::Maximize),
            Line,
            Do(Command::Models),
            Line,
            By(Role::BringAllToFront),
        ],
    },
    Column {
        id: HELP_SUBMENU_ID,
        title: |words| words.help_menu,
        entries: &[Asks(Command::Palette), Do(Command::Help), Do(Command::About)],
    },
];

/// The state that decides which entries are enabled.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Situation {
    /// The frontmost window; `None` if another program is in front.
    front: Option<WindowName>,
    /// The commands that the chat window's page offers now.
    available: BTreeSet<Command>,
    /// The switches that are on.
    checked: BTreeSet<Command>,
}

impl Situation {
    fn allows(&self, command: Command) -> bool {
        match command {
            command if command.opens_chat_window() => true,
            command if command.is_of_chat() => {
                self.front == Some(WindowName::Chat) && self.available.contains(&command)
            }
            command if command.is_of_page() => self.front.is_some_and(|window| window != WindowName::Failure),
            Command::CloseWindow | Command::FullScreen => self.front.is_some(),
            _ => true,
        }
    }
}

/// The entry of a command in the bar.
enum Item<R: Runtime> {
    Plain(MenuItem<R>),
    Switch(CheckMenuItem<R>),
}

impl<R: Runtime> Clone for Item<R> {
    fn clone(&self) -> Self {
        match self {
            Self::Plain(item) => Self::Plain(item.clone()),
            Self::Switch(item) => Self::Switch(item.clone()),
        }
    }
}

impl<R: Runtime> Item<R> {
    fn set_enabled(&self, enabled: bool) -> tauri::Result<()> {
        match self {
            Self::Plain(item) => item.set_enabled(enabled),
            Self::Switch(item) => item.set_enabled(enabled),
        }
    }

    #[cfg(test)]
    fn is_enabled(&self) -> tauri::Result<bool> {
        match self {
            Self::Plain(item) => item.is_enabled(),
            Self::Switch(item) => item.is_enabled(),
        }
    }

    fn set_checked(&self, checked: bool) -> tauri::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Switch(item) => item.set_checked(checked),
        }
    }
}

type Entries<R> = BTreeMap<Command, Item<R>>;

/// The commands of the menu bar, and which of them are enabled.
pub struct Commands<R: Runtime> {
    situation: Mutex<Situation>,
    entries: Mutex<Entries<R>>,
}

impl<R: Runtime> Default for Commands<R> {
    fn default() -> Self {
        Self {
            situation: Mutex::default(),
            entries: Mutex::default(),
        }
    }
}

impl<R: Runtime> Commands<R> {
    fn situation(&self) -> MutexGuard<'_, Situation> {
        self.situation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, Entries<R>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frontmost window.
    pub fn front(&self) -> Option<WindowName> {
        self.situation().front
    }

    /// Records that a window gained or lost the focus.
    pub fn set_front(&self, window: WindowName, focused: bool) {
        self.change(|situation| {
            if focused {
                situation.front = Some(window);
            } else if situation.front == Some(window) {
                situation.front = None;
            }
        });
    }

    /// Records the commands that the chat window's page offers, and the switches among them that are on.
    pub fn set_available(&self, available: BTreeSet<Command>, checked: BTreeSet<Command>) {
        self.change(|situation| {
            situation.available = available;
            situation.checked = checked;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Situation)) {
        let before = {
            let mut situation = self.situation();
            let before = situation.clone();
            change(&mut situation);
            before
        };
        self.follow(&before);
    }

    /// Updates the entries after a change since `before`.
    fn follow(&self, before: &Situation) {
        let now = self.situation().clone();
        // An entry is changed on the main thread, which must not wait for this lock meanwhile.
        let entries = self.entries().clone();
        for (command, entry) in entries {
            let enabled = if before.allows(command) == now.allows(command) {
                Ok(())
            } else {
                entry.set_enabled(now.allows(command))
            };
            // A click turns the mark around before the page has switched anything.
            let checked = entry.set_checked(now.checked.contains(&command));
            if let Err(error) = enabled.and(checked) {
                tracing::warn!("the menu entry {} is not as it should be: {error}", id(command));
            }
        }
    }
}

/// Replaces the app's menu bar by one in this language.
///
/// # Errors
/// When the window system refuses.
pub fn set<R: Runtime>(app: &AppHandle<R>, words: &Words) -> tauri::Result<()> {
    let commands = app.state::<Commands<R>>();
    let situation = commands.situation().clone();
    let (menu, entries) = build(app, words, &situation)?;
    app.set_menu(menu)?;
    *commands.entries() = entries;
    // Changes during the construction.
    commands.follow(&situation);
    Ok(())
}

fn build<R: Runtime>(app: &AppHandle<R>, words: &Words, situation: &Situation) -> tauri::Result<(Menu<R>, Entries<R>)> {
    let keys = shortcuts();
    let (menu, mut entries) = (Menu::new(app)?, Entries::new());
    for column in &BAR {
        let submenu = Submenu::with_id(app, column.id, (column.title)(words), true)?;
        for entry in column.entries {
            let (command, mark, switch) = match *entry {
                Line => {
                    submenu.append(&PredefinedMenuItem::separator(app)?)?;
                    continue;
                }
                By(role) => {
                    submenu.append(&*by_system(app, role, words)?)?;
                    continue;
                }
                Do(command) => (command, "", false),
                Asks(command) => (command, words.asks, false),
                Switch(command) => (command, "", true),
            };
            let text = format!("{}{mark}", words.command(command));
            let keys = keys.get(&command).map(accelerator);
            let (id, enabled) = (id(command), situation.allows(command));
            let item = if switch {
                let checked = situation.checked.contains(&command);
                let item = CheckMenuItem::with_id(app, id, text, enabled, checked, keys)?;
                submenu.append(&item)?;
                Item::Switch(item)
            } else {
                let item = MenuItem::with_id(app, id, text, enabled, keys)?;
                submenu.append(&item)?;
                Item::Plain(item)
            };
            entries.insert(command, item);
        }
        menu.append(&submenu)?;
    }
    Ok((menu, entries))
}

fn by_system<R: Runtime>(app: &AppHandle<R>, role: Role, words: &Words) -> tauri::Result<Box<dyn IsMenuItem<R>>> {
    let entry = match role {
        Role::About => {
            let (config, package) = (&app.config().bundle, app.package_info());
            let about = AboutMetadata {
                name: Some(package.name.clone()),
                version: Some(package.version.to_string()),
                copyright: config.copyright.clone(),
                ..AboutMetadata::default()
            };
            PredefinedMenuItem::about(app, Some(words.about), Some(about))
        }
        Role::Services => PredefinedMenuItem::services(app, Some(words.services)),
        Role::Hide => PredefinedMenuItem::hide(app, Some(words.hide)),
        Role::HideOthers => PredefinedMenuItem::hide_others(app, Some(words.hide_others)),
        Role::ShowAll => PredefinedMenuItem::show_all(app, Some(words.show_all)),
        Role::Undo => PredefinedMenuItem::undo(app, Some(words.undo)),
        Role::Redo => PredefinedMenuItem::redo(app, Some(words.redo)),
        Role::Cut => PredefinedMenuItem::cut(app, Some(words.cut)),
        Role::Copy => PredefinedMenuItem::copy(app, Some(words.copy)),
        Role::Paste => PredefinedMenuItem::paste(app, Some(words.paste)),
        Role::SelectAll => PredefinedMenuItem::select_all(app, Some(words.select_all)),
        Role::FullScreen => PredefinedMenuItem::fullscreen(app, Some(words.command(Command::FullScreen))),
        Role::Minimize => PredefinedMenuItem::minimize(app, Some(words.minimize)),
        Role::Maximize => PredefinedMenuItem::maximize(app, Some(words.maximize)),
        Role::BringAllToFront => PredefinedMenuItem::bring_all_to_front(app, Some(words.all_to_front)),
    };
    Ok(Box::new(entry?))
}

/// The string form of a command, used as the id of its entry.
pub fn id(command: Command) -> String {
    match serde_json::to_value(command) {
        Ok(serde_json::Value::String(word)) => word,
        // A unit variant serializes as a string.
        _ => String::new(),
    }
}

/// The command of an entry.
pub fn command_of(id: &str) -> Option<Command> {
    serde_json::from_value(id.into()).ok()
}

fn shortcuts() -> BTreeMap<Command, Shortcut> {
    let listed: BTreeMap<Command, Option<Shortcut>> = serde_json::from_str(SHORTCUTS).unwrap_or_default();
    listed
        .into_iter()
        .filter_map(|(command, keys)| Some((command, keys?)))
        .collect()
}

fn accelerator(Shortcut { key, shift }: &Shortcut) -> String {
    // The key with the plus on most keyboards; menus know it by its other character.
    let key = if key == "+" { "=" } else { key.as_str() };
    format!("CmdOrCtrl+{}{}", if *shift { "Shift+" } else { "" }, key.to_uppercase())
}

/// True if any window of the app is visible and focused. A hidden one may still count as focused.
pub fn is_looked_at<R: Runtime>(app: &AppHandle<R>) -> bool {
    app.webview_windows()
        .values()
        .any(|window| window.is_visible().unwrap_or(false) && window.is_focused().unwrap_or(false))
}

#[cfg(test)]
mod tests;
