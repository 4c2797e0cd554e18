//! The role of the process that works on files.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::frame::Frame;
use crate::pool;
use crate::process::{ROLE, VERSION};
use crate::task::Work;
use crate::walls;

/// How long it waits for work.
const REST: Duration = Duration::from_secs(60);

/// Plays the role if this process was started for it: answers requests with these tasks of rooms until there are none.
/// Returns `None` for the program itself, whose tasks run in such a process from now on. A `main` calls it before
/// anything else.
pub fn take_role(rooms: &[&[&'static dyn Work]]) -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != ROLE) {
        pool::enable();
        return None;
    }
    let tasks = rooms.concat();
    let missing = walls::raise();
    let hello = serde_json::to_vec(&(VERSION, missing)).unwrap_or_default();
    let (requests, answers) = (io::stdin(), io::stdout());
    let hello = Frame {
        header: hello,
        body: Vec::new(),
    };
    match hello.write(&mut answers.lock()) {
        Ok(()) => Some(serve(&tasks, &mut requests.lock(), &mut answers.lock())),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

fn serve(tasks: &[&'static dyn Work], requests: &mut impl Read, answers: &mut impl Write) -> ExitCode {
    loop {
        // The end of the parent is the end of the pipe.
        if !walls::wait_for_input(REST) {
            return ExitCode::SUCCESS;
        }
        let request = match Frame::read(requests) {
            Ok(request) => request,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return ExitCode::SUCCESS,
            Err(_) => return ExitCode::FAILURE,
        };
        let Ok((name, input)) = serde_json::from_slice::<(String, serde_json::Value)>(&request.header) else {
            return ExitCode::FAILURE;
        };
        let Some(task) = tasks.iter().find(|task| task.name() == name) else {
            return ExitCode::FAILURE;
        };
        walls::allow(task.time());
        let Ok((header, body)) = task.answer(input, request.body) else {
            return ExitCode::FAILURE;
        };
        if (Frame { header, body }).write(answers).is_err() {
            return ExitCode::FAILURE;
        }
    }
}
