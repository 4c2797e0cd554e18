//! Questions in a dialog of the system, asked before something that a page must not do by itself: no page draws the
//! dialog or can answer it, so a script in a page gains nothing by calling the command.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use protocol::{Reason, Result};
use tauri::WebviewWindow;
use tauri_plugin_dialog::{DialogExt, FilePath, MessageDialogButtons, MessageDialogKind, MessageDialogResult};
use tokio::sync::{oneshot, Mutex};

use crate::system::failed;

/// A question with its buttons. GTK takes the texts as formats, so none has a percent sign.
pub struct Question {
    /// The question itself.
    pub title: &'static str,
    /// The consequences.
    pub text: String,
    /// The button that agrees.
    pub yes: &'static str,
    /// A button that agrees to more.
    pub more: Option<&'static str>,
    /// The button that declines.
    pub no: &'static str,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Agreed.
    Yes,
    /// Agreed to more.
    More,
    /// Declined, or the dialog was closed.
    No,
}

/// Time in which nobody reads a question: a key that comes sooner was meant for the page, which may ask while a person
/// types.
const UNREAD: Duration = Duration::from_millis(500);

/// Held while a question is shown.
static SHOWN: Mutex<()> = Mutex::const_new(());

/// Asks a question above a window and waits for the answer. While another question is shown, the answer is no: a page
/// that calls commands in a row shows one dialog, not a pile of them.
pub async fn ask(window: &WebviewWindow, question: Question) -> Answer {
    let Ok(_shown) = SHOWN.try_lock() else {
        return Answer::No;
    };
    if let Some(answer) = answer_of_test() {
        return answer;
    }
    let Question {
        title,
        text,
        yes,
        more,
        no,
    } = question;
    let buttons = match more {
        None => MessageDialogButtons::OkCancelCustom(yes.to_owned(), no.to_owned()),
        Some(more) => MessageDialogButtons::YesNoCancelCustom(yes.to_owned(), more.to_owned(), no.to_owned()),
    };
    let (given, answer) = oneshot::channel();
    let asked = Instant::now();
    let dialog = window.dialog().message(text).title(title).parent(window);
    let dialog = dialog.kind(MessageDialogKind::Warning).buttons(buttons);
    // The user may have closed the window; then nobody waits for the answer.
    dialog.show_with_result(move |result| drop(given.send(result)));
    match answer.await {
        _ if asked.elapsed() < UNREAD => Answer::No,
        Ok(MessageDialogResult::Custom(label)) if label == yes => Answer::Yes,
        Ok(MessageDialogResult::Custom(label)) if more.is_some_and(|more| label == more) => Answer::More,
        _ => Answer::No,
    }
}

/// Asks for a folder above a window; `None` if the user chose none.
///
/// # Errors
/// For what is no folder of this computer.
pub async fn choose_folder(window: &WebviewWindow, title: &str) -> Result<Option<PathBuf>> {
    if let Some(chosen) = paths_of_test() {
        return Ok(chosen.into_iter().next());
    }
    let (chosen, answer) = oneshot::channel();
    let dialog = window.dialog().file().set_parent(window).set_title(title);
    // The user may have closed the window; then nobody waits for the answer.
    dialog.pick_folder(move |path| drop(chosen.send(path)));
    let what = "this is no folder of this computer";
    let folder = answer.await.ok().flatten().map(FilePath::into_path);
    folder.transpose().map_err(failed(Reason::FileNotOpened, what))
}

/// Asks for files in the system's dialog; none if the user chose none.
///
/// # Errors
/// For what is no file of this computer.
pub async fn choose_files(window: &WebviewWindow, title: &str) -> Result<Vec<PathBuf>> {
    if let Some(chosen) = paths_of_test() {
        return Ok(chosen);
    }
    let (chosen, answer) = oneshot::channel();
    let dialog = window.dialog().file().set_parent(window).set_title(title);
    // As above.
    dialog.pick_files(move |paths| drop(chosen.send(paths)));
    let paths = answer.await.ok().flatten().unwrap_or_default();
    let paths = paths
        .into_iter()
        .map(FilePath::into_path)
        .collect::<std::result::Result<_, _>>();
    paths.map_err(failed(Reason::FileNotOpened, "this is no file of this computer"))
}

/// The paths, one to a line, in the file that a test of the real window names, as below.
#[cfg(debug_assertions)]
fn paths_of_test() -> Option<Vec<PathBuf>> {
    let file = std::env::var_os("PONDER_TEST_PATHS")?;
    let paths = std::fs::read_to_string(file).unwrap_or_default();
    Some(paths.lines().map(PathBuf::from).collect())
}

#[cfg(not(debug_assertions))]
fn paths_of_test() -> Option<Vec<PathBuf>> {
    None
}

/// The answer in the file that a test of the real window names: WebDriver reaches pages alone. Only the debug build
/// looks for it, and an unset or unreadable answer is no.
#[cfg(debug_assertions)]
fn answer_of_test() -> Option<Answer> {
    let file = std::env::var_os("PONDER_TEST_ANSWER")?;
    let answer = std::fs::read_to_string(file).unwrap_or_default();
    Some(match answer.as_str() {
        "yes" => Answer::Yes,
        "more" => Answer::More,
        _ => Answer::No,
    })
}

#[cfg(not(debug_assertions))]
fn answer_of_test() -> Option<Answer> {
    None
}
