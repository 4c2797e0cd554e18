//! Requests from outside to open something: links, files, a clicked notification. One may arrive before the chat window
//! exists, so it waits here until that window's page takes it. None acts by itself: text becomes a draft, chats are
//! imported after a question, a file is attached.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::{OpenRequest, WindowName};
use protocol::{Error, Reason, Result};
use tauri::{AppHandle, Manager, Url};

use crate::app::state::App;
use crate::events::OPEN_REQUESTED;
use crate::system::ponder_link::{self, DeepLink};
use crate::windows::window;

/// The file extension of exported chats.
const CHAT_FILE: &str = "ponderchat";

/// The maximum size of an attached file, in bytes; the window has the same limit.
pub const LONGEST_FILE: u64 = 50_000_000;

/// The maximum number of requests taken at once, about as many files as a user opens on purpose.
const MOST: usize = 32;

/// A request to open something, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenTarget {
    /// A link that begins with `ponder:`.
    Link(String),
    /// A file that the user opened with Ponder.
    File(PathBuf),
    /// A chat, by its id.
    Chat(String),
}

/// Requests that wait for the chat window, and the files that it may ask for.
#[derive(Default)]
pub struct OpenRequests(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: Vec<OpenRequest>,
    files: HashMap<String, PathBuf>,
    last_key: u64,
}

impl OpenRequests {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Only single insertions and removals happen under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the requests that wait.
    pub fn take(&self) -> Vec<OpenRequest> {
        std::mem::take(&mut self.waiting().requests)
    }

    /// The file of this key.
    ///
    /// # Errors
    /// `NotFound` if it was taken already.
    pub fn take_file(&self, key: &str) -> Result<PathBuf> {
        let file = self.waiting().files.remove(key);
        file.ok_or_else(|| Error::because(Reason::FileGone, "this file was taken already; open it once more"))
    }

    fn add(&self, request: OpenRequest) {
        self.waiting().requests.push(request);
    }

    fn add_file(&self, path: PathBuf) -> String {
        let mut waiting = self.waiting();
        waiting.last_key += 1;
        let key = waiting.last_key.to_string();
        waiting.files.insert(key.clone(), path);
        key
    }
}

/// The requests in the arguments of a start: links and files, as desktops pass them. Relative paths are resolved
/// against `folder`.
pub fn of_arguments<S: AsRef<str>>(arguments: &[S], folder: &Path) -> Vec<OpenTarget> {
    let requests = arguments.iter().map(AsRef::as_ref).skip(1).filter_map(|argument| {
        if argument.is_empty() || argument.starts_with('-') {
            return None;
        }
        if ponder_link::is_link(argument) {
            return Some(OpenTarget::Link(argument.to_owned()));
        }
        match Url::parse(argument) {
            Ok(url) if url.scheme() == "file" => of_url(&url),
            _ => Some(OpenTarget::File(folder.join(argument))),
        }
    });
    requests.take(MOST).collect()
}

/// The request of a URL with which the system opens Ponder.
pub fn of_url(url: &Url) -> Option<OpenTarget> {
    match url.scheme() {
        "file" => url.to_file_path().ok().map(OpenTarget::File),
        _ => Some(OpenTarget::Link(url.to_string())),
    }
}

/// Opens links, chats and files; the windows that show them come to the front.
pub fn open(app: &AppHandle, targets: Vec<OpenTarget>) {
    if targets.is_empty() {
        return;
    }
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        for target in targets.into_iter().take(MOST) {
            let (shown, request) = match target {
                OpenTarget::Link(link) => of_link(&link),
                OpenTarget::Chat(id) => (WindowName::Chat, Some(OpenRequest::Chat { id })),
                OpenTarget::File(path) => (WindowName::Chat, Some(of_file(&app, path).await)),
            };
            match request {
                Some(request) => add(&app, request),
                None => {
                    window::show(&app, shown).unwrap_or_else(|error| tracing::warn!("a link showed no window: {error}"))
                }
            }
        }
    });
}

/// Hands a request to the chat window, which comes to the front for it.
pub fn add(app: &AppHandle, request: OpenRequest) {
    app.state::<OpenRequests>().add(request);
    let told =
        window::show(app, WindowName::Chat).and_then(|()| window::send(app, WindowName::Chat, OPEN_REQUESTED, ()));
    if let Err(error) = told {
        tracing::warn!("the chat window did not hear of what was brought to it: {error}");
    }
}

fn of_link(link: &str) -> (WindowName, Option<OpenRequest>) {
    let request = match ponder_link::read(link) {
        Ok(DeepLink::Models) => return (WindowName::Models, None),
        Ok(DeepLink::Settings) => return (WindowName::Settings, None),
        Ok(DeepLink::NewChat(text)) => OpenRequest::Draft { text },
        Ok(DeepLink::Chat(id)) => OpenRequest::Chat { id },
        Err(reason) => OpenRequest::Refused {
            error: Error::because(Reason::LinkRefused, format!("Nothing was done: {reason}.")),
        },
    };
    (WindowName::Chat, Some(request))
}

async fn of_file(app: &AppHandle, path: PathBuf) -> OpenRequest {
    let state = app.state::<App>();
    let look = move || look_at(&path).map(|(name, chats)| (path, name, chats));
    let (path, name, chats) = match state.run_blocking(look).await {
        Ok(looked) => looked,
        Err(error) => return OpenRequest::Refused { error },
    };
    let requests = app.state::<OpenRequests>();
    let Some(bytes) = chats else {
        return OpenRequest::File {
            key: requests.add_file(path),
            name,
        };
    };
    match state.chat.library().look_into_import(bytes).await {
        Ok(found) => OpenRequest::Chats {
            key: requests.add_file(path),
            name,
            found,
        },
        Err(error) => OpenRequest::Refused { error },
    }
}

/// The name of a file, and its bytes if it contains chats.
fn look_at(path: &Path) -> Result<(String, Option<Vec<u8>>)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let chats = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case(CHAT_FILE));
    let longest = if chats { chat::LONGEST_IMPORT } else { LONGEST_FILE };
    read_file(path, longest).map(|bytes| (name, chats.then_some(bytes)))
}

/// The bytes of a regular file of at most `longest` bytes.
///
/// # Errors
/// Says what the path is instead.
pub fn read_file(path: &Path, longest: u64) -> Result<Vec<u8>> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let refuse = |because, reason: &str| {
        let error = Error::because(because, format!("{name} was not opened: {reason}."));
        Err(error.with("name", name.as_ref()))
    };
    // Checked before opening, because opening a pipe waits for its writer.
    match fs::metadata(path) {
        Ok(file) if !file.is_file() => return refuse(Reason::FileNotOpened, "it is no file"),
        Ok(file) if file.len() > longest => return refuse(Reason::FileNotOpened, "it is too large"),
        Ok(_) => {}
        Err(error) => return refuse(Reason::FileGone, &error.to_string()),
    }
    fs::read(path).or_else(|error| refuse(Reason::FileUnreadable, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_links_files_or_nothing() {
        let arguments = [
            "ponder-app",
            "--at-login",
            "",
            "PONDER:new?text=a",
            "file:///home/ann/a%20chat.ponderchat",
            "notes.md",
            "/tmp/../etc/hosts",
            "-rf",
        ];
        let file = |path: &str| OpenTarget::File(path.into());
        let wanted = [
            OpenTarget::Link("PONDER:new?text=a".into()),
            file("/home/ann/a chat.ponderchat"),
            file("/work/notes.md"),
            file("/tmp/../etc/hosts"),
        ];
        assert_eq!(of_arguments(&arguments, Path::new("/work")), wanted);
        let many = vec!["a"; 1000];
        assert_eq!(of_arguments(&many, Path::new("/")).len(), MOST);
    }

    #[test]
    fn a_link_cannot_name_a_file() {
        for link in [
            "ponder:file:///etc/passwd",
            "ponder:///etc/passwd",
            "ponder:import?path=/etc/passwd",
        ] {
            let requests = of_arguments(&["ponder-app", link], Path::new("/"));
            assert_eq!(requests, [OpenTarget::Link(link.into())]);
            let (shown, request) = of_link(link);
            assert_eq!(shown, WindowName::Chat);
            assert!(matches!(request, Some(OpenRequest::Refused { .. })), "{request:?}");
        }
    }

    #[test]
    fn a_file_is_asked_for_once_and_by_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "12345").unwrap();
        let requests = OpenRequests::default();
        let key = requests.add_file(path.clone());
        assert!(requests.take_file("/etc/passwd").is_err());
        assert_eq!(requests.take_file(&key).unwrap(), path);
        assert!(requests.take_file(&key).is_err());

        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        assert!(read_file(&path, 4).unwrap_err().message.contains("too large"));
        assert!(read_file(folder.path(), 4).unwrap_err().message.contains("no file"));
        assert!(read_file(Path::new("/dev/zero"), u64::MAX)
            .unwrap_err()
            .message
            .contains("no file"));
        assert!(read_file(&folder.path().join("b"), 4).is_err());
    }
}
