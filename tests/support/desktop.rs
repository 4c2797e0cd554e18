//! A desktop's services on the session bus: notifications, tray icons, and a panel with numbers on icons.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;

use zbus::blocking::connection::Builder;
use zbus::blocking::fdo::DBusProxy;
use zbus::blocking::{Connection, MessageIterator, Proxy};
use zbus::interface;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::{OwnedValue, Value};

use super::driver::Window;

/// A notification.
#[derive(Debug, Clone)]
pub struct Notification {
    pub id: u32,
    pub summary: String,
    pub body: String,
    pub actions: Vec<String>,
}

/// A number on an app's icon, as the app reports it to a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IconNumber {
    /// The app's desktop entry.
    pub entry: String,
    pub count: i64,
    pub is_visible: bool,
}

/// The reports to a panel, and the sender of the last one.
#[derive(Default)]
struct Panel {
    numbers: Vec<IconNumber>,
    sender: Option<String>,
}

/// The desktop of a window's session.
pub struct Desktop {
    connection: Connection,
    panel: Arc<Mutex<Panel>>,
    shown: Arc<Mutex<Vec<Notification>>>,
    icons: Arc<Mutex<Vec<String>>>,
}

struct Notifications(Arc<Mutex<Vec<Notification>>>);

#[interface(name = "org.freedesktop.Notifications")]
impl Notifications {
    fn get_capabilities(&self) -> Vec<String> {
        vec!["actions".into(), "body".into()]
    }

    fn get_server_information(&self) -> (String, String, String, String) {
        ("desktop".into(), "Ponder's tests".into(), "1".into(), "1.2".into())
    }

    #[expect(clippy::too_many_arguments, reason = "the specification has them")]
    fn notify(
        &self,
        _app_name: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _lasts: i32,
    ) -> u32 {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = shown.len() as u32 + 1;
        shown.push(Notification {
            id,
            summary,
            body,
            actions,
        });
        id
    }

    async fn close_notification(&self, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>, id: u32) {
        Self::notification_closed(&emitter, id, 3).await.expect("told");
    }

    #[zbus(signal)]
    async fn notification_closed(emitter: &SignalEmitter<'_>, id: u32, reason: u32) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn action_invoked(emitter: &SignalEmitter<'_>, id: u32, action: &str) -> zbus::Result<()>;
}

struct Watcher(Arc<Mutex<Vec<String>>>);

#[interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    fn register_status_notifier_item(&self, #[zbus(header)] header: zbus::message::Header<'_>, service: String) {
        // An app gives its name, or a path on its connection.
        let name = match service.starts_with('/') {
            true => header.sender().map(ToString::to_string).unwrap_or_default(),
            false => service,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }

    fn register_status_notifier_host(&self, _service: String) {}

    #[zbus(property)]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }
}

impl Desktop {
    /// The desktop services in the session of this window.
    pub fn of(window: &Window) -> Self {
        let environment = window.environment();
        let (_, bus) = environment
            .iter()
            .find(|(name, _)| name == "DBUS_SESSION_BUS_ADDRESS")
            .expect("a session bus");
        let (shown, icons) = (Arc::default(), Arc::default());
        let connection = Builder::address(bus.as_str())
            .and_then(|builder| builder.serve_at("/org/freedesktop/Notifications", Notifications(Arc::clone(&shown))))
            .and_then(|builder| builder.serve_at("/StatusNotifierWatcher", Watcher(Arc::clone(&icons))))
            .and_then(|builder| builder.name("org.freedesktop.Notifications"))
            .and_then(|builder| builder.name("org.kde.StatusNotifierWatcher"))
            .and_then(Builder::build)
            .expect("a desktop");
        let panel = Arc::default();
        follow_numbers(&connection, &panel);
        Self {
            connection,
            panel,
            shown,
            icons,
        }
    }

    /// The numbers on icons so far.
    pub fn numbers(&self) -> Vec<IconNumber> {
        self.panel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .numbers
            .clone()
    }

    /// True if the sender of the last number is still on the bus.
    pub fn knows_who_numbered(&self) -> bool {
        let sender = self.panel.lock().unwrap_or_else(PoisonError::into_inner).sender.clone();
        let name = sender.expect("somebody told of one");
        let bus = DBusProxy::new(&self.connection).expect("a bus");
        bus.name_has_owner(name.as_str().try_into().expect("a name"))
            .expect("an answer")
    }

    /// The notifications so far.
    pub fn shown(&self) -> Vec<Notification> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Clicks a notification.
    pub fn click(&self, id: u32) {
        let path = "/org/freedesktop/Notifications";
        self.connection
            .emit_signal(
                None::<&str>,
                path,
                path.trim_start_matches('/').replace('/', ".").as_str(),
                "ActionInvoked",
                &(id, "default"),
            )
            .expect("told");
    }

    /// True if an app has a tray icon.
    pub fn has_icon(&self) -> bool {
        !self.icons.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The labels in the menu of the newest icon.
    pub fn entries(&self) -> Vec<String> {
        self.menu().1.into_iter().map(|(_, label)| label).collect()
    }

    /// Chooses an entry in the menu of the newest icon.
    pub fn choose(&self, label: &str) {
        let (menu, entries) = self.menu();
        let found = entries.iter().find(|(_, text)| text == label);
        let (id, _) = found.unwrap_or_else(|| panic!("no entry is called {label}: {entries:?}"));
        let nothing = Value::from(0i32);
        menu.call::<_, _, ()>("Event", &(*id, "clicked", nothing, 0u32))
            .expect("it is chosen");
    }

    /// The menu of the newest icon, and its entries with their ids.
    fn menu(&self) -> (Proxy<'_>, Vec<(i32, String)>) {
        let name = self
            .icons
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last()
            .cloned()
            .expect("an icon");
        let item = Proxy::new(
            &self.connection,
            name.clone(),
            "/StatusNotifierItem",
            "org.kde.StatusNotifierItem",
        )
        .expect("an icon");
        let path: zbus::zvariant::OwnedObjectPath = item.get_property("Menu").expect("it has a menu");
        let menu = Proxy::new(&self.connection, name, path, "com.canonical.dbusmenu").expect("a menu");
        type Layout = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);
        let (_, (_, _, entries)): (u32, Layout) = menu
            .call("GetLayout", &(0, -1, Vec::<&str>::new()))
            .expect("its entries");
        let labelled = entries.into_iter().filter_map(|entry| {
            let (id, properties, _) = Layout::try_from(entry).ok()?;
            let text = String::try_from(properties.get("label")?.try_clone().ok()?).ok()?;
            Some((id, text.replace('_', "")))
        });
        let labelled = labelled.filter(|(_, label)| !label.is_empty()).collect();
        (menu, labelled)
    }

    /// Ends the services: no icons or notifications from now on.
    pub fn end(self) {
        self.connection.close().expect("it ends");
    }
}

/// Records the reports to a panel, from the return of this call on.
fn follow_numbers(connection: &Connection, panel: &Arc<Mutex<Panel>>) {
    let rule = "type='signal',interface='com.canonical.Unity.LauncherEntry',member='Update'";
    let told = MessageIterator::for_match_rule(rule, connection, None).expect("it is heard");
    let panel = Arc::clone(panel);
    spawn(move || {
        for message in told.flatten() {
            let read = message.body().deserialize::<(String, HashMap<String, OwnedValue>)>();
            let (entry, said) = read.expect("an app and what its icon shows");
            let mut panel = panel.lock().unwrap_or_else(PoisonError::into_inner);
            panel.numbers.push(IconNumber {
                entry,
                count: said
                    .get("count")
                    .and_then(|count| i64::try_from(count).ok())
                    .expect("a number"),
                is_visible: said
                    .get("count-visible")
                    .and_then(|shown| bool::try_from(shown).ok())
                    .expect("whether"),
            });
            panel.sender = message.header().sender().map(ToString::to_string);
        }
    });
}
