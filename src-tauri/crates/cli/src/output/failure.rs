use std::io;
use std::process::ExitCode;

use serde_json::json;

use super::exit_code;
use super::terminal::line;

/// Prints a failure of a program and gives the exit code. A closed pipe leaves nobody to tell.
pub fn fail(program: &str, error: &anyhow::Error, json: bool) -> ExitCode {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if !error.chain().any(closed) {
        print_failure(program, error, json);
    }
    ExitCode::from(exit_code::FAILED)
}

/// Prints a failure: a line on standard error, and with `json` an object on standard output.
pub fn print_failure(program: &str, error: &anyhow::Error, json: bool) {
    let code = error
        .downcast_ref::<protocol::Error>()
        .map_or(json!("failed"), |error| json!(error.code));
    let message = sentence(error);
    if json {
        let _ = line(&json!({"type": "error", "code": code, "message": message}));
    }
    eprintln!("{program}: {}", message.replace('\n', " "));
}

/// An error and its causes as one sentence. The system's errors of files are put into words, without their numbers.
pub fn sentence(error: &anyhow::Error) -> String {
    let causes = error.chain().map(|cause| match cause.downcast_ref::<io::Error>() {
        Some(cause) => of_system(cause),
        None => without_numbers(&cause.to_string()),
    });
    causes.collect::<Vec<_>>().join(": ")
}

fn of_system(error: &io::Error) -> String {
    let sentence = match error.kind() {
        io::ErrorKind::NotFound => "no such file",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::IsADirectory => "is a directory",
        io::ErrorKind::NotADirectory => "not a directory",
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::InvalidData if error.get_ref().is_none() => "not a text file",
        _ => return without_numbers(&error.to_string()),
    };
    sentence.to_owned()
}

/// The text without ` (os error 2)` after the system's text.
pub fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| {
        said + part.split_once(')').map_or(part, |(_, after)| after)
    })
}

/// Prints a remark of `ponder` on standard error; the command goes on.
pub fn warn(message: &str) {
    eprintln!("ponder: {message}");
}
