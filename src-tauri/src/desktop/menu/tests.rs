use tauri::menu::MenuItemKind;
use tauri::test::{mock_builder, mock_context, noop_assets, MockRuntime};

use super::*;
use crate::words;

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

/// An app with a menu bar in this language.
fn app_in(language: &str) -> tauri::App<MockRuntime> {
    let app = mock_builder().build(mock_context(noop_assets())).expect("an app");
    app.manage(Commands::<MockRuntime>::default());
    set(app.handle(), words::of(Some(language))).expect("every entry and its keys are understood");
    app
}

fn columns(app: &tauri::App<MockRuntime>) -> Vec<Submenu<MockRuntime>> {
    let columns = app.menu().expect("a menu").items().expect("columns");
    columns
        .iter()
        .map(|column| column.as_submenu().expect("a menu").clone())
        .collect()
}

/// The texts of the menus, in order.
fn texts(app: &tauri::App<MockRuntime>) -> Vec<String> {
    let text_of = |entry| match entry {
        MenuItemKind::MenuItem(entry) => entry.text(),
        MenuItemKind::Check(entry) => entry.text(),
        MenuItemKind::Predefined(entry) => entry.text(),
        _ => panic!("nothing else stands in a menu"),
    };
    let mut texts = Vec::new();
    for column in columns(app) {
        texts.push(column.text().expect("a title"));
        texts.extend(
            column
                .items()
                .expect("entries")
                .into_iter()
                .map(|entry| text_of(entry).expect("text")),
        );
    }
    texts
}

#[test]
fn the_bar_has_the_standard_menus_and_every_command_once() {
    let app = app_in("en");
    let titles: Vec<String> = columns(&app)
        .iter()
        .map(|column| column.text().expect("text"))
        .collect();
    assert_eq!(titles, ["Ponder", "File", "Edit", "View", "Chat", "Window", "Help"]);

    let mut chosen = Vec::new();
    for column in columns(&app) {
        let entries = column.items().expect("entries");
        chosen.extend(entries.iter().filter_map(|entry| match entry {
            MenuItemKind::MenuItem(entry) => Some(command_of(entry.id().as_ref()).expect("a command")),
            MenuItemKind::Check(entry) => Some(command_of(entry.id().as_ref()).expect("a command")),
            _ => None,
        }));
    }
    chosen.sort();
    // macOS brings its own entry for this one, with its own keys.
    let wanted: Vec<Command> = Command::ALL
        .into_iter()
        .filter(|command| *command != Command::FullScreen)
        .collect();
    assert_eq!(chosen, wanted);
    let commands = app.state::<Commands<MockRuntime>>();
    assert_eq!(commands.entries().keys().copied().collect::<Vec<_>>(), wanted);

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
fn the_bar_is_in_the_language_that_is_set_and_what_can_be_chosen_stays() {
    let app = app_in("en");
    let commands = app.state::<Commands<MockRuntime>>();
    commands.set_available(BTreeSet::from([Command::Stop]), BTreeSet::new());
    commands.set_front(WindowName::Chat, true);
    let english = texts(&app);
    for text in ["Settings…", "Find in This Chat…", "Quit Ponder", "Bring All to Front"] {
        assert!(english.contains(&text.to_owned()), "{english:?}");
    }
    for (tag, wanted) in [
        (
            "de",
            [
                "Ablage",
                "Einstellungen …",
                "Alles auswählen",
                "Antwort stoppen",
                "Über Ponder",
            ],
        ),
        ("ar", ["ملف", "الإعدادات…", "تحديد الكل", "إيقاف الإجابة", "حول Ponder"]),
    ] {
        set(app.handle(), words::of(Some(tag))).expect("a menu");
        let texts = texts(&app);
        for text in wanted {
            assert!(texts.contains(&text.to_owned()), "{texts:?}");
        }
        let same = texts.iter().zip(&english).filter(|(text, english)| text == english);
        let same: BTreeSet<&str> = same.map(|(text, _)| text.as_str()).collect();
        assert!(
            same.is_subset(&BTreeSet::from(["", "Ponder", "Chat"])),
            "{tag}: {same:?}"
        );

        let entries = commands.entries().clone();
        let enabled = |command: Command| entries[&command].is_enabled().expect("it says");
        assert_eq!(
            [Command::Stop, Command::Composer].map(enabled),
            [true, false],
            "as before"
        );
        commands.set_front(WindowName::Chat, false);
        assert!(!enabled(Command::Stop), "the new entries follow");
        commands.set_front(WindowName::Chat, true);
    }
}

#[test]
fn entries_follow_the_front_window_and_what_its_page_can_do() {
    let app = app_in("en");
    let commands = app.state::<Commands<MockRuntime>>();
    let enabled = || {
        let entries = commands.entries().clone();
        let enabled = entries
            .into_iter()
            .filter(|(_, entry)| entry.is_enabled().expect("it says"));
        enabled.map(|(command, _)| command).collect::<BTreeSet<_>>()
    };
    let always = BTreeSet::from([
        Command::NewChat,
        Command::TemporaryChat,
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
    // Commands of every window's page, and of the window itself.
    let in_front = [
        Command::ZoomIn,
        Command::ZoomOut,
        Command::ZoomReset,
        Command::Help,
        Command::CloseWindow,
    ];
    let with = |more: &[Command]| {
        always
            .iter()
            .chain(&in_front)
            .chain(more)
            .copied()
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(enabled(), always, "no window is in front");

    let none = BTreeSet::new();
    commands.set_available(
        BTreeSet::from([Command::Composer, Command::Stop, Command::Find]),
        none.clone(),
    );
    assert_eq!(enabled(), always, "the page is not looked at");
    commands.set_front(WindowName::Chat, true);
    assert_eq!(enabled(), with(&[Command::Composer, Command::Stop, Command::Find]));
    commands.set_available(BTreeSet::from([Command::Composer, Command::Regenerate]), none);
    assert_eq!(
        enabled(),
        with(&[Command::Composer, Command::Regenerate]),
        "the answer ended"
    );

    // The next window may say that it is in front before this one says that it is not.
    commands.set_front(WindowName::Settings, true);
    commands.set_front(WindowName::Chat, false);
    assert_eq!(enabled(), with(&[]));
    assert_eq!(commands.front(), Some(WindowName::Settings));
    commands.set_front(WindowName::Settings, false);
    assert_eq!(enabled(), always);
}

#[test]
fn a_switch_has_its_mark_while_it_is_on_also_in_another_language() {
    let app = app_in("en");
    let commands = app.state::<Commands<MockRuntime>>();
    let marked = || {
        let entries = commands.entries().clone();
        match &entries[&Command::Thinking] {
            Item::Switch(entry) => entry.is_checked().expect("it says"),
            Item::Plain(_) => panic!("it has no mark"),
        }
    };
    assert!(!marked());
    let thinking = BTreeSet::from([Command::Thinking]);
    commands.set_available(thinking.clone(), thinking.clone());
    assert!(marked());
    set(app.handle(), words::of(Some("de"))).expect("a menu");
    assert!(marked());
    commands.set_available(thinking, BTreeSet::new());
    assert!(!marked());
}
