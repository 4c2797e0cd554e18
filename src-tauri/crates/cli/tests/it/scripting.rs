//! The contract with scripts: standard input and output, exit codes, names of models; and the answers to mistakes.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::pebble::{changed_pebble, text};
use crate::support::serving::import_embedder;
use crate::support::{command, joined, last, lines, run, run_json};

/// Runs it with this text on standard input.
fn piped(home: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = command(home, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that fails early reads none of it.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn prompt_tokens(output: &Output) -> u64 {
    let printed = lines(output);
    let tokens = &last(&printed)["usage"]["prompt_tokens"];
    tokens.as_u64().unwrap_or_else(|| panic!("{output:?}"))
}

#[test]
fn standard_input_is_asked_about_together_with_the_question() {
    let home = tempfile::tempdir().unwrap();
    let ask = ["ask", "--json", "--thinking", "off", "--max-tokens", "4"];
    let with =
        |args: &[&str], input: &str| prompt_tokens(&piped(home.path(), &[&ask[..], args].concat(), input.as_bytes()));
    let (alone, both) = (with(&["Review this"], ""), with(&["Review this"], "+ let one = 1;\n"));
    assert!(both > alone + 4, "{alone} tokens without the input, {both} with it");
    assert_eq!(both, with(&[], "+ let one = 1;\n\nReview this\n"));
    assert!(with(&["--file", "-", "Review this"], "+ let one = 1;\n") > both);
    let broken = piped(home.path(), &["ask", "Review this"], b"caf\xe9");
    assert_eq!(broken.status.code(), Some(1));
    assert!(err(&broken).contains("--file -"), "{broken:?}");
    let mut endless = command(home.path(), &["ask", "Review this"])
        .stdin(fs::File::open("/dev/zero").unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(endless.wait().unwrap().code(), Some(1));
}

#[test]
fn standard_output_is_the_answer_alone() {
    let home = tempfile::tempdir().unwrap();
    let ask = ["ask", "--model", "pebble", "--temperature", "0", "--thinking", "on"];
    let asked = run(home.path(), &[&ask[..], &["What is 347 + 589?"]].concat());
    assert_eq!(out(&asked), "347 + 589 = **936**\n");
    assert!(err(&asked).contains("carry 1"), "{asked:?}");
    let both = run(
        home.path(),
        &[&ask[..], &["--show-thinking", "What is 347 + 589?"]].concat(),
    );
    let shown = out(&both);
    let (thought, answer) = shown.split_once("\n\n347 + 589 = **936**").unwrap();
    assert!(thought.contains("carry 1") && answer == "\n", "{shown}");
    let file = home.path().join("answer.md");
    let written = run(
        home.path(),
        &[&ask[..], &["-o", text(&file), "What is 347 + 589?"]].concat(),
    );
    assert_eq!(out(&written), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), "347 + 589 = **936**\n");
}

#[test]
fn a_file_keeps_what_it_has_until_there_is_an_answer() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("chat.json");
    let conversation = r#"[{"role": "user", "content": "What is 347 + 589?"}]"#;
    fs::write(&file, conversation).unwrap();
    let files = ["--messages", text(&file), "-o", text(&file)];
    let refused = run(
        home.path(),
        &[&["ask", "--model", "no/such-model"], &files[..]].concat(),
    );
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), conversation);
    let options = ["ask", "--model", "pebble", "--temperature", "0", "--thinking", "on"];
    let asked = run(home.path(), &[&options, &files[..]].concat());
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "347 + 589 = **936**\n");
}

#[test]
fn exit_codes_tell_scripts_what_happened() {
    let home = tempfile::tempdir().unwrap();
    for (args, code, said) in [
        (&["ask", "--thinking", "off", "What is 2 + 3?"][..], 0, ""),
        (&["ask", "--model", "no/such-model", "Hi"], 1, "no/such-model"),
        (&["ask", "--top-k", "many", "Hi"], 2, "many"),
        (&["ask", "--temperature", "-1", "Hi"], 2, "between 0 and 100"),
        (&["chat", "--top-p", "2"], 2, "between 0 and 1."),
        (&["ask", "--context-length", "20", "Hi"], 2, "512 or more"),
        (&["ask", "--kv-bits", "5", "Hi"], 2, "4 or 8"),
        (&["asks", "Hi"], 2, "'ask'"),
        (&["ask", "-5 + 3?"], 2, "'-- -5'"),
        (&["ask", "what", "is", "this"], 2, "in quotes"),
        (
            &["ask", "--thinking", "off", "--max-tokens", "3", "Tell me a story."],
            3,
            "--max-tokens",
        ),
        (
            &[
                "ask",
                "--json",
                "--thinking",
                "off",
                "--max-tokens",
                "3",
                "Tell me a story.",
            ],
            3,
            "--max-tokens",
        ),
    ] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(err(&output).contains(said), "{args:?}: {output:?}");
    }
    let alone = run(home.path(), &[]);
    assert_eq!(alone.status.code(), Some(0));
    assert!(
        out(&alone).contains("Commands:") && alone.stderr.is_empty(),
        "{alone:?}"
    );
    let bytes = OsStr::from_bytes(b"a\xffb");
    let not_text = command(home.path(), &["ask"]).arg(bytes).output().unwrap();
    assert_eq!(not_text.status.code(), Some(2), "{not_text:?}");
    assert!(!err(&not_text).contains("panicked"), "{not_text:?}");
}

#[test]
fn a_reader_that_closes_the_pipe_is_told_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path(), &["ask", "--json", "Count from 1 to 40"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(err(&output), "");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_model_has_the_name_that_the_server_lists() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = changed_pebble(elsewhere.path(), "Stone-4bit", |_| {});
    assert!(run(home.path(), &["import", text(&folder)]).status.success());
    let asked = run_json(
        home.path(),
        &[
            "ask",
            "--json",
            "-m",
            "Stone-4bit",
            "--thinking",
            "off",
            "What is 2 + 3?",
        ],
    );
    assert!(joined(&asked, "text").contains('5'), "{asked:?}");
    assert!(run(home.path(), &["remove", "--yes", "Stone-4bit"]).status.success());
    assert_eq!(
        run(home.path(), &["ask", "-m", "Stone-4bit", "Hi"]).status.code(),
        Some(1)
    );
}

#[test]
fn what_keeps_nothing_is_answered_without_a_place_for_data() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let home = file.join("home");
    let asked = run(&home, &["ask", "--thinking", "off", "What is 2 + 3?"]);
    assert!(asked.status.success() && out(&asked).contains('5'), "{asked:?}");
    assert!(err(&asked).contains("Continuing without it"), "{asked:?}");
}

#[test]
fn chats_are_shown_renamed_deleted_and_restored() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(out(&run(home, &["history"])).contains("No chats yet"));
    assert!(out(&run(home, &["history", "search", "tea"])).contains("No results"));
    let talked = piped(home, &["chat", "--temperature", "0"], b"My name is Yara.\n");
    assert!(talked.status.success(), "{talked:?}");
    let listed = || run_json(home, &["history", "--json"])[0]["chats"].clone();
    let id = listed()[0]["id"].as_str().unwrap().to_owned();
    assert!(out(&run(home, &["history", "show", &id])).contains("My name is Yara."));
    assert_eq!(
        run_json(home, &["history", "show", "--json", &id])[0]["chat"]["id"],
        id.as_str()
    );
    assert!(run(home, &["history", "rename", &id, "Names"]).status.success());
    assert_eq!(listed()[0]["title"], "Names");
    let file = home.join("chats.md");
    assert!(run(home, &["history", "export", "--all", "-o", text(&file)])
        .status
        .success());
    assert!(fs::read_to_string(&file).unwrap().contains("Names"));
    assert!(out(&run(home, &["history", "delete", &id])).contains("history restore"));
    assert!(run(home, &["history", "restore", &id]).status.success());
    let told = |args: &[&str]| run_json(home, &[&["history", "--json"][..], args].concat());
    assert_eq!(told(&["rename", &id, "Names"])[0]["renamed"], id.as_str());
    assert_eq!(told(&["delete", &id])[0]["deleted"], serde_json::json!([&id]));
    assert_eq!(listed(), serde_json::json!([]));
    assert!(run(home, &["history", "restore", &id]).status.success());
    assert_eq!(listed()[0]["title"], "Names");
    for command in ["show", "delete", "restore"] {
        assert_eq!(
            run(home, &["history", command, "nobody"]).status.code(),
            Some(1),
            "{command}"
        );
    }
}

#[test]
fn a_conversation_takes_commands_and_sends_none_of_them() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let notes = home.join("notes.txt");
    fs::write(&notes, "The tea is green.").unwrap();
    let lines = format!("/help\n/file {}\nWhat is 2 + 3?\n/retry\n/model pebble\n", text(&notes));
    let talked = piped(home, &["chat", "--temperature", "0"], lines.as_bytes());
    assert!(talked.status.success(), "{talked:?}");
    assert!(
        out(&talked).contains("/retry") && out(&talked).contains("notes.txt"),
        "{talked:?}"
    );
    let id = run_json(home, &["history", "--json"])[0]["chats"][0]["id"].clone();
    let stored = run_json(home, &["history", "show", "--json", id.as_str().unwrap()]);
    let messages = stored[0]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "assistant"], "{messages:?}");
    assert!(messages[0].to_string().contains("notes.txt"), "{messages:?}");
    for unknown in ["/hepl\n", "/image\n", "/model no/such-model\n"] {
        let refused = piped(home, &["chat"], unknown.as_bytes());
        assert_eq!(refused.status.code(), Some(1), "{unknown}: {refused:?}");
    }
}

#[test]
fn nothing_is_unloaded_where_nothing_runs() {
    let home = tempfile::tempdir().unwrap();
    let refused = run(home.path(), &["models", "unload"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("neither the app nor"), "{refused:?}");
}

#[test]
fn texts_are_embedded() {
    let home = tempfile::tempdir().unwrap();
    let Some(embedder) = import_embedder(home.path()) else {
        return;
    };
    let vectors = run_json(
        home.path(),
        &["embed", "-m", embedder, "tea", "a tea and a cake", "tea"],
    );
    assert_eq!(vectors.len(), 3);
    assert!(vectors[0].as_array().unwrap().len() > 1 && vectors[0] == vectors[2] && vectors[0] != vectors[1]);
    let piped = piped(
        home.path(),
        &["embed", "--json", "-m", embedder],
        b"tea\na tea and a cake\n",
    );
    let piped = lines(&piped);
    assert_eq!(
        (&piped[1]["text"], &piped[0]["embedding"]),
        (&"a tea and a cake".into(), &vectors[0])
    );
    assert_eq!(
        run(home.path(), &["embed", "-m", "pebble", "tea"]).status.code(),
        Some(1)
    );
}
