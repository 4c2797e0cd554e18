//! Desktop notifications about the end of a long answer or a download, if no window of the app is focused; a click
//! leads there. The app's icon shows how many models are being downloaded.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::{ChatSummary, Download, DownloadState, UnavailableReason, WindowName};
use notify_rust::{Notification, NotificationResponse};
use tauri::{AppHandle, Manager};

use crate::app::state::App;
use crate::desktop::menu;
use crate::desktop::open_requests::{self, OpenTarget};
use crate::system::badge::Badge;
use crate::windows::window;
use crate::words::{self, Words};

/// The user is assumed to wait for shorter answers.
const LONG: Duration = Duration::from_secs(10);

/// The end of an answer or a download, and the target of a click.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    Answer { chat: String, title: String },
    Download { model: String, failed: bool },
}

/// The running answers, with their starts.
#[derive(Default)]
struct Answers(BTreeMap<String, Instant>);

impl Answers {
    /// The chats whose long answer ended since the last call.
    fn look(&mut self, running: impl IntoIterator<Item = String>, chats: &[ChatSummary], now: Instant) -> Vec<Ended> {
        let before = std::mem::take(&mut self.0);
        let began = |chat: &String| before.get(chat).copied().unwrap_or(now);
        self.0 = running.into_iter().map(|chat| (chat.clone(), began(&chat))).collect();
        let gone = before
            .into_iter()
            .filter(|(chat, began)| !self.0.contains_key(chat) && now.duration_since(*began) >= LONG);
        // A chat that was deleted meanwhile is not reported.
        gone.filter_map(|(chat, _)| chats.iter().find(|summary| summary.id == chat))
            .map(|summary| Ended::Answer {
                chat: summary.id.clone(),
                title: summary.title.clone(),
            })
            .collect()
    }
}

/// The running downloads, by model.
#[derive(Default)]
struct Downloads(BTreeMap<String, DownloadState>);

impl Downloads {
    /// The downloads that ended since the last call.
    fn look(&mut self, downloads: &[Download]) -> Vec<Ended> {
        let now = downloads.iter().map(|download| (download.id.clone(), download.state));
        let before = std::mem::replace(&mut self.0, now.collect());
        let is_end = |state: &DownloadState| matches!(state, DownloadState::Done | DownloadState::Failed);
        let ended = self
            .0
            .iter()
            .filter(|(model, state)| is_end(state) && before.get(*model).is_some_and(|before| !is_end(before)));
        let ended = ended.map(|(model, state)| Ended::Download {
            model: model.clone(),
            failed: *state == DownloadState::Failed,
        });
        ended.collect()
    }

    fn running(&self) -> usize {
        self.0.values().filter(|state| state.is_under_way()).count()
    }
}

/// Watches the answers of this process until the app ends.
pub async fn follow_answers(app: AppHandle) {
    let chat = app.state::<App>().chat.clone();
    let (mut changes, mut answers) = (chat.changes(), Answers::default());
    while changes.changed().await.is_ok() {
        let running: Vec<String> = chat.answers().running().into_iter().map(|answer| answer.chat).collect();
        // The list is read only if an answer was running.
        let chats = match answers.0.is_empty() {
            true => Vec::new(),
            false => chat.chats().list().await.unwrap_or_default(),
        };
        for ended in answers.look(running, &chats, Instant::now()) {
            tell(&app, ended);
        }
    }
}

/// Watches the downloads until the app ends.
pub async fn follow_downloads(app: AppHandle) {
    let mut downloads = app.state::<App>().hub.downloads().watch();
    let (mut known, mut badge) = (Downloads::default(), Badge::default());
    known.look(&downloads.borrow_and_update());
    while downloads.changed().await.is_ok() {
        let ended = known.look(&downloads.borrow_and_update());
        badge.show(&app, known.running()).await;
        for one in ended {
            tell(&app, one);
        }
    }
}

fn tell(app: &AppHandle, ended: Ended) {
    let wanted = app.state::<App>().chat.settings().follow().borrow().notifications;
    if !wanted || menu::is_looked_at(app) {
        return;
    }
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        // macOS asks the user once, with the first notification.
        #[cfg(target_os = "macos")]
        if !notify_rust::request_auth().await.unwrap_or(false) {
            return tracing::info!("no notification is shown: macOS was told not to");
        }
        let mut notification = Notification::new();
        let words = words::current(&app);
        let (summary, body) = said(&ended, words);
        notification
            .summary(summary)
            .body(body)
            .appname("Ponder")
            .action("default", words.open);
        #[cfg(target_os = "linux")]
        notification
            .icon("ponder-app")
            .hint(notify_rust::Hint::DesktopEntry("Ponder".into()));
        let answered = match notification.show_async().await {
            // A notification that is never answered occupies a thread until the desktop closes it.
            Ok(shown) => tauri::async_runtime::spawn_blocking(move || {
                let mut clicked = false;
                let waited = shown.wait_for_response(|response: &NotificationResponse| {
                    clicked = matches!(response, NotificationResponse::Default)
                });
                waited.map(|()| clicked).unwrap_or(false)
            }),
            Err(error) => return tracing::info!("the desktop shows no notification: {error}"),
        };
        if answered.await.unwrap_or(false) {
            go_to(&app, ended);
        }
    });
}

/// The two lines of a notification: the subject, and the outcome.
fn said<'a>(ended: &'a Ended, words: &Words) -> (&'a str, &'static str) {
    match ended {
        Ended::Answer { title, .. } if title.is_empty() => ("Ponder", words.an_answer),
        Ended::Answer { title, .. } => (title, words.the_answer),
        Ended::Download { model, failed: false } => (model, words.model_ready),
        Ended::Download { model, failed: true } => (model, words.model_failed),
    }
}

fn go_to(app: &AppHandle, ended: Ended) {
    match ended {
        Ended::Answer { chat, .. } => open_requests::open(app, vec![OpenTarget::Chat(chat)]),
        Ended::Download { .. } => {
            if let Err(error) = window::show(app, WindowName::Models) {
                tracing::warn!("the Models window did not come to the front: {error}");
            }
        }
    }
}

/// The reason why the desktop shows no notifications; `None` if it does.
pub async fn unavailable_reason() -> Option<UnavailableReason> {
    #[cfg(target_os = "linux")]
    if !crate::system::session_bus::offers("org.freedesktop.Notifications", true).await {
        return Some(UnavailableReason::NoNotifications);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(id: &str, title: &str) -> ChatSummary {
        let value = serde_json::json!({
            "id": id, "title": title, "created_at": 0, "updated_at": 0, "pinned": false, "running": false, "unread": true, "revision": 1,
            "archived": false, "project": null,
        });
        serde_json::from_value(value).expect("a chat")
    }

    #[test]
    fn long_answers_are_told_of_once_and_short_ones_and_deleted_chats_are_not() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let chats = [summary("a", "A chat"), summary("b", "Another")];
        let run = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut answers = Answers::default();
        assert_eq!(answers.look(run(&["a", "gone"]), &[], start), []);
        assert_eq!(answers.look(run(&["a", "b", "gone"]), &chats, after(9)), []);
        assert_eq!(
            answers.look(run(&["a"]), &chats, after(12)),
            [],
            "b took three seconds, and the other chat was deleted"
        );
        let told = answers.look(run(&[]), &chats, after(13));
        assert_eq!(
            told,
            [Ended::Answer {
                chat: "a".into(),
                title: "A chat".into()
            }]
        );
        assert_eq!(answers.look(run(&[]), &chats, after(14)), []);
        let said_in = |language| said(&told[0], words::of(Some(language)));
        assert_eq!(said_in("en"), ("A chat", "Response ready"));
        assert_eq!(said_in("de"), ("A chat", "Antwort fertig"));
        assert_eq!(said_in("ar"), ("A chat", "الإجابة جاهزة"));
    }

    #[test]
    fn downloads_are_told_of_when_they_end_and_counted_while_they_run() {
        let download = |id: &str, state: &str| {
            let value = serde_json::json!({
                "id": id, "revision": "main", "commit": null, "state": state, "files": [], "done": 0, "total": 0,
                "bytes_per_second": 0, "seconds_left": null, "retry_at": null, "error": null,
            });
            serde_json::from_value::<Download>(value).expect("a download")
        };
        let mut downloads = Downloads::default();
        // An end before the start of the app is not reported.
        assert_eq!(
            downloads.look(&[
                download("old", "done"),
                download("a", "running"),
                download("b", "verifying")
            ]),
            []
        );
        assert_eq!(downloads.running(), 2);
        assert_eq!(
            downloads.look(&[
                download("old", "done"),
                download("a", "paused"),
                download("b", "failed")
            ]),
            [Ended::Download {
                model: "b".into(),
                failed: true
            }]
        );
        assert_eq!(downloads.running(), 0);
        assert_eq!(
            downloads.look(&[download("a", "done")]),
            [Ended::Download {
                model: "a".into(),
                failed: false
            }]
        );
        assert_eq!(downloads.look(&[download("a", "done")]), []);
    }
}
