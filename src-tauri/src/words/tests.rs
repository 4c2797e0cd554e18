use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::desktop::menu;

fn messages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/src/locales")
}

/// The single-line texts of the pages in a language, by key.
fn texts(tag: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(messages().join(tag)).expect("the folder of a language");
    let mut texts = BTreeMap::new();
    for file in files {
        for line in fs::read_to_string(file.expect("a file").path())
            .expect("a text file")
            .lines()
        {
            let entry = line.trim().strip_prefix('\'').and_then(|line| line.strip_suffix("',"));
            if let Some((key, text)) = entry.and_then(|entry| entry.split_once("': '")) {
                texts.insert(key.to_owned(), text.to_owned());
            }
        }
    }
    texts
}

/// A name without what menus add: capitals, and the mark of what asks something first.
fn plain(name: &str) -> String {
    name.trim_end_matches('…').trim_end().to_lowercase()
}

#[test]
fn menus_and_pages_call_the_same_thing_by_the_same_name() {
    for words in ALL.iter() {
        let texts = texts(words.tag);
        let mut compared = 0;
        for command in Command::ALL {
            if let Some(text) = texts.get(&format!("command.{}", menu::id(command))) {
                assert_eq!(plain(words.command(command)), plain(text), "{} {command:?}", words.tag);
                compared += 1;
            }
        }
        assert_eq!(
            compared, 22,
            "{}: what the palette and the sheet of shortcuts offer",
            words.tag
        );
        let same = [
            ("models.title", words.title(WindowName::Models)),
            ("settings.title", words.title(WindowName::Settings)),
            ("quick.title", words.title(WindowName::Quick)),
            ("consent.title", words.title(WindowName::Consent)),
            ("startup.title", words.title(WindowName::Failure)),
            ("damage.title", words.history_damaged),
            ("command.undo", words.undo),
            ("common.copy", words.copy),
            ("common.save", words.save),
            ("folders.addFolder", words.add_folder),
            ("documents.ownChats", words.own_chats),
            ("documents.addFiles", words.add_files),
            ("settings.endpoints.add", words.add),
            ("settings.endpoints.cancel", words.cancel),
        ];
        for (key, word) in same {
            assert_eq!(plain(word), plain(&texts[key]), "{} {key}", words.tag);
        }
    }
}

#[test]
fn dialogs_of_gtk_get_no_text_that_is_a_format() {
    for words in ALL.iter() {
        assert!(!format!("{words:?}").contains('%'), "{}", words.tag);
        assert!(words.endpoint_text.contains("{address}"), "{}", words.tag);
        // An answer is known by the label of its button.
        let labels = [
            words.cancel,
            words.add,
            words.allow,
            words.delete_chats,
            words.delete_backups,
        ];
        assert_eq!(BTreeSet::from(labels).len(), labels.len(), "{}", words.tag);
    }
}

#[test]
fn the_shell_speaks_what_the_pages_speak_and_says_every_word() {
    let languages = fs::read_to_string(messages().join("languages.svelte.ts")).expect("the list of languages");
    let spoken = languages
        .lines()
        .filter_map(|line| line.trim().split_once(": { name: ").map(|(tag, _)| tag));
    assert_eq!(
        ALL.each_ref().map(|words| words.tag).to_vec(),
        spoken.collect::<Vec<_>>()
    );
    for words in ALL.iter() {
        // Every field is a text, and none is left empty.
        assert!(!format!("{words:?}").contains("\"\""), "{words:?}");
        assert!(words.commands.keys().copied().eq(Command::ALL), "{words:?}");
    }
}

/// The texts of the entry in the menu of Linux.
const OF_THE_MENU: [fn(&'static Words) -> &'static str; 3] = [
    |words| words.generic_name,
    |words| words.command(Command::NewChat),
    |words| words.command(Command::QuickEntry),
];

/// The entry in the menu of Linux with every translation of its texts below the English one.
fn translated(entry: &str) -> String {
    let mut others: Vec<&'static Words> = ALL.iter().skip(1).collect();
    others.sort_by_key(|words| words.tag);
    let mut fresh = String::new();
    for line in entry.lines().filter(|line| !line.contains("]=")) {
        fresh += &format!("{line}\n");
        let Some((key @ ("GenericName" | "Name"), english)) = line.split_once('=') else {
            continue;
        };
        if let Some(text) = OF_THE_MENU.iter().find(|text| text(&ALL[0]) == english) {
            for words in &others {
                fresh += &format!("{key}[{}]={}\n", words.tag, text(words));
            }
        }
    }
    fresh
}

/// The property list of macOS with the tag of every language.
fn localized(plist: &str) -> String {
    const LIST: &str = "<key>CFBundleLocalizations</key>\n  <array>\n";
    let (before, list) = plist.split_once(LIST).expect("the list of languages");
    let (_, after) = list.split_once("  </array>").expect("its end");
    let tags: String = ALL
        .iter()
        .map(|words| format!("    <string>{}</string>\n", words.tag))
        .collect();
    format!("{before}{LIST}{tags}  </array>{after}")
}

#[test]
fn the_files_of_linux_and_macos_have_every_language() {
    let file = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("src-tauri").join(path);
    let entry = fs::read_to_string(file("linux/ponder.desktop")).expect("the entry");
    for (key, text) in [
        ("GenericName", ALL[0].generic_name),
        ("Name", ALL[0].command(Command::NewChat)),
        ("Name", ALL[0].command(Command::QuickEntry)),
    ] {
        let wanted = format!("{key}={text}");
        assert!(entry.lines().any(|line| line == wanted), "{wanted}");
    }
    let plist = fs::read_to_string(file("macos/Info.plist")).expect("the property list");
    for (path, committed, fresh) in [
        ("linux/ponder.desktop", &entry, translated(&entry)),
        ("macos/Info.plist", &plist, localized(&plist)),
    ] {
        if *committed != fresh {
            fs::write(file(path), fresh).expect("it can be written");
            panic!("{path} was stale and is written anew: commit it");
        }
    }
}

#[test]
fn the_language_is_the_one_that_is_set_or_the_first_of_the_systems_that_is_spoken() {
    let first = |wanted: &[&str]| first_spoken(wanted).tag;
    assert_eq!(first(&["de-AT", "en"]), "de");
    assert_eq!(first(&["tlh", "ar-EG", "de"]), "ar");
    for odd in [&["C"][..], &["POSIX.UTF-8"], &["", "-", "DE"], &[]] {
        assert_eq!(first(odd), "en", "{odd:?}");
    }
    assert_eq!(of(Some("de")).tag, "de");
    #[cfg(not(target_os = "macos"))]
    for (set, language) in [
        (&[("LANG", "de_AT.UTF-8")][..], "de"),
        (&[("LC_ALL", ""), ("LC_CTYPE", "ar_EG"), ("LANG", "de_DE")], "ar"),
        (&[("LC_ALL", "C.UTF-8"), ("LANG", "de_DE")], "en"),
        (&[("LANGUAGE", "de:ar"), ("LC_MESSAGES", "de_DE")], "en"),
    ] {
        let set: BTreeMap<&str, &str> = set.iter().copied().collect();
        let found = of_locale(|name| set.get(name).map(|locale| (*locale).to_owned()));
        assert_eq!(first_spoken(found).tag, language, "{set:?}");
    }
    assert_eq!(of(Some("tlh")).tag, "en");
    assert_eq!(of(Some("")).tag, of(None).tag);
}
