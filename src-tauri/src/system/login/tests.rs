use super::*;

fn login(form: Form, folder: &Path, program: &Path) -> Login {
    Login {
        form,
        file: Some(folder.join("autostart/ü/file")),
        program: Ok(program.to_owned()),
    }
}

fn program_in(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, "").expect("written");
    path
}

/// Names that a person may give to a folder, and that a shell or a parser would take for something else.
const NAMES: [&str; 9] = [
    "/usr/bin/ponder-app",
    "/opt/Äpp Örter/ponder-app",
    "/opt/100% sure/%u %f/ponder-app",
    "/opt/a \"b\" `c` $HOME $(reboot)/ponder-app",
    "/opt/back\\slash \\n\\s/ponder-app",
    "/opt/it's; rm -rf ~ & true | cat #/ponder-app",
    "/opt/<string>&amp;</string>/ponder-app",
    "/opt/=[Desktop Entry]/ponder-app",
    "/opt/تطبيق/ponder-app",
];

#[test]
fn every_name_of_a_program_comes_back_from_what_is_written() {
    for form in [Form::DesktopEntry, Form::LaunchAgent] {
        for name in NAMES {
            let text = form.text(name);
            assert_eq!(form.program(&text).as_deref(), Some(name), "{text}");
            assert_eq!(text.matches(AT_LOGIN).count(), 1, "{text}");
            assert!(!form.is_off(&text));
        }
    }
    // One line for each key, and no quotation marks where none are needed.
    let text = desktop_entry(NAMES[0]);
    assert!(
        text.contains("\nExec=/usr/bin/ponder-app --at-login\nTryExec=/usr/bin/ponder-app\n"),
        "{text}"
    );
    assert!(desktop_entry("/a $b/c").contains("Exec=\"/a \\\\$b/c\" --at-login"));
}

#[test]
fn it_is_switched_on_and_off() {
    let folder = tempfile::tempdir().expect("a folder");
    for form in [Form::DesktopEntry, Form::LaunchAgent] {
        let program = program_in(folder.path(), "ponder app");
        let login = login(form, folder.path(), &program);
        assert!(!login.is_on().expect("read"));
        login.set(false).expect("there was nothing to do");
        login.set(true).expect("written");
        assert!(login.is_on().expect("read"));
        let text = login.read().expect("read").expect("there");
        assert_eq!(form.program(&text).as_deref(), program.to_str());
        login.set(false).expect("removed");
        assert!(!login.is_on().expect("read"));
        assert!(!login.file().expect("a name").exists());
    }
}

#[test]
fn a_file_that_names_a_program_that_is_gone_names_this_one_from_then_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for form in [Form::DesktopEntry, Form::LaunchAgent] {
        let (before, now) = (program_in(folder.path(), "before"), program_in(folder.path(), "now"));
        let login = login(form, folder.path(), &now);
        assert!(!login.heal().expect("read"), "what is off stays off");
        assert!(!login.is_on().expect("read"));

        let other = self::login(form, folder.path(), &before);
        other.set(true).expect("written");
        assert!(!login.heal().expect("read"), "another copy that is there is left alone");
        fs::remove_file(&before).expect("removed");
        assert!(login.heal().expect("written"));
        let text = login.read().expect("read").expect("there");
        assert_eq!(form.program(&text).as_deref(), now.to_str());

        for broken in [
            "",
            "[Desktop Entry]\n",
            "Exec=/bin/sh\n",
            "Exec=\"/bin/sh",
            "\u{0}\u{fffd}<key>ProgramArguments</key><string>",
        ] {
            fs::write(login.file().expect("a name"), broken).expect("written");
            assert!(login.heal().expect("written"), "{broken:?} names nothing");
            assert_eq!(
                login.read().expect("read").expect("there"),
                form.text(now.to_str().expect("text"))
            );
        }
        login.set(false).expect("removed");
    }
}

#[test]
fn what_the_desktops_own_settings_switched_off_is_off_until_it_is_switched_on_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program_in(folder.path(), "ponder-app");
    let login = login(Form::DesktopEntry, folder.path(), &program);
    for line in ["Hidden=true", "X-GNOME-Autostart-enabled=false", "Hidden = true"] {
        login.set(true).expect("written");
        let file = login.file().expect("a name");
        let text = format!(
            "{}{line}\n[Desktop Action A]\nExec=/bin/false\n",
            fs::read_to_string(file).expect("read")
        );
        fs::write(file, text.replace(program.to_str().expect("text"), "/gone")).expect("written");
        assert!(!login.is_on().expect("read"), "{line}");
        assert!(!login.heal().expect("read"), "{line}");
        login.set(true).expect("written");
        assert!(login.is_on().expect("read"));
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let passing = login(
        Form::LaunchAgent,
        folder.path(),
        Path::new("/Volumes/Ponder/Ponder.app/Contents/MacOS/ponder-app"),
    );
    assert!(passing
        .set(true)
        .expect_err("it goes away")
        .message
        .contains("Applications"));
    assert!(!passing.is_on().expect("read"));
    let odd = login(
        Form::DesktopEntry,
        folder.path(),
        Path::new("/opt/two\nlines/ponder-app"),
    );
    assert!(odd.set(true).expect_err("no line").message.contains("as it was"));
    // A folder stands where the file would be.
    let taken = login(Form::DesktopEntry, folder.path(), Path::new("/usr/bin/ponder-app"));
    fs::create_dir_all(taken.file().expect("a name")).expect("made");
    for done in [taken.set(true), taken.set(false), taken.is_on().map(drop)] {
        assert!(done.expect_err("it is a folder").message.contains("as it was"));
    }
}
