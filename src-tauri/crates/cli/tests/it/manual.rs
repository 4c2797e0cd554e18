//! The manual and the completions, as the shells and `man` read them.

use std::process::Command;

use crate::support::run;

fn completions(shell: &str) -> String {
    let home = tempfile::tempdir().expect("a folder");
    let output = run(home.path(), &["completions", shell]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The words that bash offers after some words of a command line.
fn bash_offers(words: &[&str]) -> Vec<String> {
    let script = format!(
        "{}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_ponder ponder \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        completions("bash"),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .output()
        .expect("bash starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    assert_eq!(bash_offers(&["ponder", "his"]), ["history"]);
    assert!(bash_offers(&["ponder", "ask", "--temp"]).contains(&"--temperature".to_owned()));
    assert_eq!(bash_offers(&["ponder", "ask", "--thinking", "m"]), ["medium"]);
    assert!(
        !bash_offers(&["ponder", ""]).contains(&"manual".to_owned()),
        "what packages use is not offered"
    );
}

#[test]
fn zsh_and_fish_read_their_completions() {
    let home = tempfile::tempdir().expect("a folder");
    for shell in ["zsh", "fish"] {
        let script = completions(shell);
        assert!(
            script.contains("thinking-budget") && script.contains("history"),
            "{shell}"
        );
        let file = home.path().join(shell);
        std::fs::write(&file, &script).expect("written");
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(read) => assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr)),
            Err(_) => println!("report: {shell} is not installed, so it did not read its completions"),
        }
    }
}

#[test]
fn the_manual_has_a_page_for_every_command_that_is_shown() {
    let home = tempfile::tempdir().expect("a folder");
    let pages = home.path().join("pages");
    std::fs::create_dir(&pages).expect("made");
    let output = run(home.path(), &["manual", pages.to_str().expect("text")]);
    assert!(output.status.success(), "{output:?}");
    let help = String::from_utf8(run(home.path(), &["--help"]).stdout).expect("text");
    let shown: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(shown.contains(&"ask") && shown.contains(&"serve"), "{help}");
    for name in &shown {
        let page = std::fs::read_to_string(pages.join(format!("ponder-{name}.1"))).expect("a page");
        assert!(page.contains(".TH ponder-"), "{page}");
    }
    let all = std::fs::read_dir(&pages).expect("listed").count();
    assert_eq!(
        all,
        shown.len() + 1,
        "a page for `ponder` itself, and none for what is hidden"
    );
    let first = std::fs::read_to_string(pages.join("ponder.1")).expect("a page");
    assert!(first.contains("Talk to language models on this computer"), "{first}");
    match Command::new("man")
        .args(["--warnings", "-l"])
        .arg(pages.join("ponder-ask.1"))
        .output()
    {
        Ok(read) => {
            let text = String::from_utf8_lossy(&read.stdout).into_owned();
            assert!(
                read.status.success() && text.contains("ponder"),
                "{}",
                String::from_utf8_lossy(&read.stderr)
            );
        }
        Err(_) => println!("report: man is not installed, so it did not read the manual"),
    }
}
