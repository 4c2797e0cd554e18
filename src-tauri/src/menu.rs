//! The menu bar: what stands in it is data, what it does is [`crate::perform`]'s. Only macOS shows it. The keys are those that the
//! windows listen to, from one list (`ui/src/lib/shortcuts.json`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::{Command, WindowName};
use serde::Deserialize;
use tauri::menu::{AboutMetadata, IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu, HELP_SUBMENU_ID, WINDOW_SUBMENU_ID};
use tauri::{AppHandle, Manager, Runtime};

/// Keys by command, as the windows have them.
const SHORTCUTS: &str = include_str!("../../ui/src/lib/shortcuts.json");

#[derive(Debug, Deserialize)]
struct Shortcut {
    key: String,
    shift: bool,
}

/// What macOS does by itself.
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
    Command(Command, &'static str),
}

/// A menu of the bar. To two of them the system adds: the list of windows, and the search in all menus.
struct Column {
    id: &'static str,
    title: &'static str,
    entries: &'static [Entry],
}

use Entry::{Command as Do, Line, Role as By};

const BAR: [Column; 7] = [
    Column {
        id: "app",
        title: "Ponder",
        entries: &[
            By(Role::About),
            Line,
            Do(Command::Settings, "Settings…"),
            Do(Command::InstallCommand, "Install Command “ponder”…"),
            Line,
            By(Role::Services),
            Line,
            By(Role::Hide),
            By(Role::HideOthers),
            By(Role::ShowAll),
            Line,
            // Not the system's own entry, which ends the app without asking what runs.
            Do(Command::Quit, "Quit Ponder"),
        ],
    },
    Column {
        id: "file",
        title: "File",
        entries: &[
            Do(Command::NewChat, "New Chat"),
            Do(Command::QuickEntry, "Quick Entry"),
            Line,
            Do(Command::Import, "Import Chats…"),
            Do(Command::Export, "Export Chat…"),
            Line,
            Do(Command::CloseWindow, "Close Window"),
        ],
    },
    Column {
        id: "edit",
        title: "Edit",
        entries: &[
            By(Role::Undo),
            By(Role::Redo),
            Line,
            By(Role::Cut),
            By(Role::Copy),
            By(Role::Paste),
            By(Role::SelectAll),
            Line,
            Do(Command::Find, "Find in Chat…"),
            Do(Command::Search, "Search All Chats…"),
        ],
    },
    Column {
        id: "view",
        title: "View",
        entries: &[
            Do(Command::ZoomReset, "Actual Size"),
            Do(Command::ZoomIn, "Zoom In"),
            Do(Command::ZoomOut, "Zoom Out"),
            Line,
            By(Role::FullScreen),
        ],
    },
    Column {
        id: "chat",
        title: "Chat",
        entries: &[
            Do(Command::Composer, "Write a Question"),
            Do(Command::Regenerate, "Answer Again"),
            Line,
            Do(Command::Stop, "Stop Answer"),
            Do(Command::AnswerNow, "Answer Now"),
            Line,
            Do(Command::Thinking, "Switch Thinking"),
            Do(Command::TwoAnswers, "Two Answers"),
            Do(Command::ChatSettings, "Settings of This Chat…"),
        ],
    },
    Column {
        id: WINDOW_SUBMENU_ID,
        title: "Window",
        entries: &[
            By(Role::Minimize),
            By(Role::Maximize),
            Line,
            Do(Command::Models, "Models"),
            Line,
            By(Role::BringAllToFront),
        ],
    },
    Column {
        id: HELP_SUBMENU_ID,
        title: "Help",
        entries: &[
            Do(Command::Palette, "All Commands…"),
            Do(Command::Help, "Keyboard Shortcuts"),
            Do(Command::About, "Licences"),
        ],
    },
];

/// What decides which entries can be chosen.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Situation {
    /// The window in front; `None`: another program's.
    front: Option<WindowName>,
    /// What the chat window's page could do now.
    available: BTreeSet<Command>,
}

impl Situation {
    fn allows(&self, command: Command) -> bool {
        match command {
            command if command.opens_chat_window() => true,
            command if command.is_of_chat() => self.front == Some(WindowName::Chat) && self.available.contains(&command),
            command if command.is_of_page() => self.front.is_some_and(|window| window != WindowName::Failure),
            Command::CloseWindow | Command::FullScreen => self.front.is_some(),
            _ => true,
        }
    }
}

/// The commands of the menu bar, and what can be chosen of them.
pub struct Commands<R: Runtime> {
    situation: Mutex<Situation>,
    entries: BTreeMap<Command, MenuItem<R>>,
}

impl<R: Runtime> Default for Commands<R> {
    fn default() -> Self {
        Self {
            situation: Mutex::default(),
            entries: BTreeMap::new(),
        }
    }
}

impl<R: Runtime> Commands<R> {
    fn situation(&self) -> MutexGuard<'_, Situation> {
        self.situation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window in front.
    pub fn front(&self) -> Option<WindowName> {
        self.situation().front
    }

    /// A window came to the front, or is there no longer.
    pub fn set_front(&self, window: WindowName, focused: bool) {
        self.change(|situation| {
            if focused {
                situation.front = Some(window);
            } else if situation.front == Some(window) {
                situation.front = None;
            }
        });
    }

    /// What the chat window's page can do has changed.
    pub fn set_available(&self, available: BTreeSet<Command>) {
        self.change(|situation| situation.available = available);
    }

    fn change(&self, change: impl FnOnce(&mut Situation)) {
        let (before, now) = {
            let mut situation = self.situation();
            let before = situation.clone();
            change(&mut situation);
            (before, situation.clone())
        };
        for (command, entry) in &self.entries {
            if before.allows(*command) != now.allows(*command) {
                if let Err(error) = entry.set_enabled(now.allows(*command)) {
                    tracing::warn!("the menu entry {} is not as it should be: {error}", id(*command));
                }
            }
        }
    }
}

/// Builds the menu bar, with what can be chosen at first.
///
/// # Errors
/// When the window system refuses.
pub fn build<R: Runtime>(app: &AppHandle<R>) -> tauri::Result<(Menu<R>, Commands<R>)> {
    let keys = shortcuts();
    let mut commands = Commands::default();
    let menu = Menu::new(app)?;
    for column in &BAR {
        let submenu = Submenu::with_id(app, column.id, column.title, true)?;
        for entry in column.entries {
            match *entry {
                Line => submenu.append(&PredefinedMenuItem::separator(app)?)?,
                By(role) => submenu.append(&*by_system(app, role)?)?,
                Do(command, text) => {
                    let enabled = Situation::default().allows(command);
                    let keys = keys.get(&command).map(accelerator);
                    let item = MenuItem::with_id(app, id(command), text, enabled, keys)?;
                    submenu.append(&item)?;
                    commands.entries.insert(command, item);
                }
            }
        }
        menu.append(&submenu)?;
    }
    Ok((menu, commands))
}

fn by_system<R: Runtime>(app: &AppHandle<R>, role: Role) -> tauri::Result<Box<dyn IsMenuItem<R>>> {
    Ok(Box::new(match role {
        Role::About => {
            let (config, package) = (&app.config().bundle, app.package_info());
            let about = AboutMetadata {
                name: Some(package.name.clone()),
                version: Some(package.version.to_string()),
                copyright: config.copyright.clone(),
                ..AboutMetadata::default()
            };
            PredefinedMenuItem::about(app, None, Some(about))
        }
        Role::Services => PredefinedMenuItem::services(app, None),
        Role::Hide => PredefinedMenuItem::hide(app, None),
        Role::HideOthers => PredefinedMenuItem::hide_others(app, None),
        Role::ShowAll => PredefinedMenuItem::show_all(app, None),
        Role::Undo => PredefinedMenuItem::undo(app, None),
        Role::Redo => PredefinedMenuItem::redo(app, None),
        Role::Cut => PredefinedMenuItem::cut(app, None),
        Role::Copy => PredefinedMenuItem::copy(app, None),
        Role::Paste => PredefinedMenuItem::paste(app, None),
        Role::SelectAll => PredefinedMenuItem::select_all(app, None),
        Role::FullScreen => PredefinedMenuItem::fullscreen(app, None),
        Role::Minimize => PredefinedMenuItem::minimize(app, None),
        Role::Maximize => PredefinedMenuItem::maximize(app, None),
        Role::BringAllToFront => PredefinedMenuItem::bring_all_to_front(app, None),
    }?))
}

/// The word for a command, which is the id of its entry.
pub fn id(command: Command) -> String {
    match serde_json::to_value(command) {
        Ok(serde_json::Value::String(word)) => word,
        // A plain variant is a string.
        _ => String::new(),
    }
}

/// The command of an entry.
pub fn command_of(id: &str) -> Option<Command> {
    serde_json::from_value(id.into()).ok()
}

fn shortcuts() -> BTreeMap<Command, Shortcut> {
    let listed: BTreeMap<Command, Option<Shortcut>> = serde_json::from_str(SHORTCUTS).unwrap_or_default();
    listed.into_iter().filter_map(|(command, keys)| Some((command, keys?))).collect()
}

fn accelerator(Shortcut { key, shift }: &Shortcut) -> String {
    // The key cap that has the plus on most keyboards; menus know it by its other sign.
    let key = if key == "+" { "=" } else { key.as_str() };
    format!("CmdOrCtrl+{}{}", if *shift { "Shift+" } else { "" }, key.to_uppercase())
}

/// Whether any window of the app is looked at. One that was hidden may still count as the one with the focus.
pub fn is_looked_at<R: Runtime>(app: &AppHandle<R>) -> bool {
    app.webview_windows()
        .values()
        .any(|window| window.is_visible().unwrap_or(false) && window.is_focused().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use tauri::menu::MenuItemKind;
    use tauri::test::{mock_builder, mock_context, noop_assets};

    use super::*;

    #[test]
    fn every_command_has_its_keys_or_none_and_no_two_have_the_same() {
        let listed: BTreeMap<Command, Option<Shortcut>> = serde_json::from_str(SHORTCUTS).expect("the list is read");
        assert_eq!(listed.into_keys().collect::<Vec<_>>(), Command::ALL);
        let keys: Vec<String> = shortcuts().values().map(accelerator).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
        assert_eq!(accelerator(&shortcuts()[&Command::Settings]), "CmdOrCtrl+,");
        assert_eq!(accelerator(&shortcuts()[&Command::Search]), "CmdOrCtrl+Shift+F");
        for command in Command::ALL {
            assert_eq!(command_of(&id(command)), Some(command));
        }
    }

    #[test]
    fn the_bar_has_the_standard_menus_and_every_command_once() {
        let app = mock_builder().build(mock_context(noop_assets())).expect("an app");
        let (menu, commands) = build(app.handle()).expect("every entry and its keys are understood");
        let columns = menu.items().expect("columns");
        let titles: Vec<String> = columns
            .iter()
            .map(|column| column.as_submenu().expect("a menu").text().expect("text"))
            .collect();
        assert_eq!(titles, ["Ponder", "File", "Edit", "View", "Chat", "Window", "Help"]);

        let mut chosen = Vec::new();
        for column in &columns {
            let entries = column.as_submenu().expect("a menu").items().expect("entries");
            chosen.extend(entries.iter().filter_map(|entry| match entry {
                MenuItemKind::MenuItem(entry) => Some(command_of(entry.id().as_ref()).expect("a command")),
                _ => None,
            }));
        }
        chosen.sort();
        // macOS brings its own entry for this one, with its own keys.
        let wanted: Vec<Command> = Command::ALL.into_iter().filter(|command| *command != Command::FullScreen).collect();
        assert_eq!(chosen, wanted);
        assert_eq!(commands.entries.keys().copied().collect::<Vec<_>>(), wanted);

        let roles: Vec<Role> = BAR
            .iter()
            .flat_map(|column| column.entries)
            .filter_map(|entry| match entry {
                By(role) => Some(*role),
                _ => None,
            })
            .collect();
        for role in [
            Role::About,
            Role::Services,
            Role::Hide,
            Role::Copy,
            Role::Paste,
            Role::FullScreen,
            Role::Minimize,
        ] {
            assert!(roles.contains(&role), "{role:?}");
        }
    }

    #[test]
    fn entries_follow_the_front_window_and_what_its_page_can_do() {
        let app = mock_builder().build(mock_context(noop_assets())).expect("an app");
        let (_menu, commands) = build(app.handle()).expect("a menu");
        let enabled = || {
            let entries = commands.entries.iter().filter(|(_, entry)| entry.is_enabled().expect("it says"));
            entries.map(|(command, _)| *command).collect::<BTreeSet<_>>()
        };
        let always = BTreeSet::from([
            Command::NewChat,
            Command::Search,
            Command::Palette,
            Command::Import,
            Command::Models,
            Command::Settings,
            Command::About,
            Command::QuickEntry,
            Command::InstallCommand,
            Command::Quit,
        ]);
        // What every window's page does, and the window itself.
        let in_front = [
            Command::ZoomIn,
            Command::ZoomOut,
            Command::ZoomReset,
            Command::Help,
            Command::CloseWindow,
        ];
        let with = |more: &[Command]| always.iter().chain(&in_front).chain(more).copied().collect::<BTreeSet<_>>();
        assert_eq!(enabled(), always, "no window is in front");

        commands.set_available(BTreeSet::from([Command::Composer, Command::Stop, Command::Find]));
        assert_eq!(enabled(), always, "the page is not looked at");
        commands.set_front(WindowName::Chat, true);
        assert_eq!(enabled(), with(&[Command::Composer, Command::Stop, Command::Find]));
        commands.set_available(BTreeSet::from([Command::Composer, Command::Regenerate]));
        assert_eq!(enabled(), with(&[Command::Composer, Command::Regenerate]), "the answer ended");

        // The next window may say that it is in front before this one says that it is not.
        commands.set_front(WindowName::Settings, true);
        commands.set_front(WindowName::Chat, false);
        assert_eq!(enabled(), with(&[]));
        assert_eq!(commands.front(), Some(WindowName::Settings));
        commands.set_front(WindowName::Settings, false);
        assert_eq!(enabled(), always);
    }
}
