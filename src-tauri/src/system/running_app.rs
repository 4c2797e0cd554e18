//! A running app with the same data folder, on Linux. The single-instance plugin detects it only after the history, the
//! engine and the toolkit were started, and exits in the middle of that: the toolkit's thread for raw keys then uses
//! libraries that `exit` is unloading, and sometimes crashes.

use zbus::blocking::Connection;

/// The suffix of the plugin's name on the session bus: see `tauri-plugin-single-instance`, src/platform_impl/linux.rs.
const SUFFIX: &str = ".SingleInstance";
const INTERFACE: &str = "org.SingleInstance.DBus";
const METHOD: &str = "ExecuteCallback";

/// Passes the arguments of this start to the running app. Returns true if there is one and it took them. Otherwise the
/// plugin decides, as also between two starts at the same moment.
pub fn takes(name: &str, arguments: &[String], folder: &str) -> bool {
    let name = format!("{name}{SUFFIX}");
    let path = format!("/{}", name.replace('.', "/").replace('-', "_"));
    Connection::session()
        .and_then(|bus| {
            bus.call_method(
                Some(name.as_str()),
                path.as_str(),
                Some(INTERFACE),
                METHOD,
                &(arguments, folder),
            )
        })
        .is_ok()
}
