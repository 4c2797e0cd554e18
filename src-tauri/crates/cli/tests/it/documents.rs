//! Documents on the command line: what is read of them, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{last, lines, run, run_json};

const QUESTION: &str = "What is 347 + 589?";

fn file(home: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = home.join(name);
    fs::write(&path, bytes).expect("written");
    path
}

/// Arguments of `ponder ask` about documents.
fn about<'a>(files: &[&'a Path], more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "ask",
        "--json",
        "--thinking",
        "off",
        "--temperature",
        "0",
        "--max-tokens",
        "8",
    ];
    for file in files {
        arguments.extend(["--file", file.to_str().expect("text")]);
    }
    arguments.extend(more);
    arguments.push(QUESTION);
    arguments
}

fn prompt_tokens(events: &[Value]) -> u64 {
    last(events)["usage"]["prompt_tokens"].as_u64().expect("a number")
}

/// The words of a run that must fail.
fn refused(home: &Path, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert!(!output.status.success());
    let events = lines(&output);
    let said = events
        .last()
        .map(|event| event["message"].to_string())
        .unwrap_or_default();
    said + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_text_of_documents_goes_before_the_question() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let alone = prompt_tokens(&run_json(home, &about(&[], &[])));
    let notes: String = (1..=40).map(|line| format!("line {line} of the notes\n")).collect();
    let (notes, page) = (
        file(home, "notes.txt", notes),
        file(
            home,
            "page.html",
            "<title>x</title><p>A <b>page</b> of words.</p><script>var hidden = 'never read';</script>",
        ),
    );
    let one = prompt_tokens(&run_json(home, &about(&[&notes], &[])));
    let both = prompt_tokens(&run_json(home, &about(&[&notes, &page], &[])));
    let part = prompt_tokens(&run_json(home, &about(&[&notes], &["--part", "3-5"])));
    assert!(alone < part && part < one && one < both, "{alone} {part} {one} {both}");
    // A script is no text of a page.
    assert!(both - one < 60, "{}", both - one);
}

#[test]
fn what_cannot_be_read_is_refused_by_its_name() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let short = file(home, "short.txt", "one line\n");
    let empty = file(home, "empty.txt", "");
    let cut = file(home, "cut.pdf", "%PDF-1.7\n1 0 obj\n<<");
    let bits = file(home, "bits.bin", [0, 159, 146, 150, 0, 255, 254, 7]);
    let missing = home.join("missing.txt");
    for (path, more, words) in [
        (
            &short,
            &["--part", "7-9"][..],
            "it has only 1 line, and --part begins after the last",
        ),
        (&empty, &[], "empty.txt"),
        (&cut, &[], "cut.pdf"),
        (&bits, &[], "bits.bin"),
        (&missing, &[], "missing.txt"),
        (&home.to_owned(), &[], "cannot be read"),
    ] {
        let said = refused(home, &about(&[path], more));
        assert!(said.contains(words), "{}: {said}", path.display());
        assert!(!said.contains("panicked"), "{said}");
    }
    // A device that never ends is not read for ever.
    #[cfg(target_os = "linux")]
    refused(home, &about(&[Path::new("/dev/zero")], &[]));
    assert!(refused(home, &["ask", "--part", "1-2", QUESTION]).contains("--file"));
}

#[test]
fn what_is_too_long_is_refused_with_what_helps() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let long: String = (0..4000).map(|line| format!("{line} words and more words\n")).collect();
    let long = file(home, "long.txt", long);
    let said = refused(home, &about(&[&long], &[]));
    assert!(said.contains("Use --part to send only some pages or lines"), "{said}");
    run_json(home, &about(&[&long], &["--part", "1-20"]));
}
