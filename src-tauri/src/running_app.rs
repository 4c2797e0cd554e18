//! An app that runs already with the same data folder, on Linux. The plugin that keeps it alone finds it after the history, the engine and the toolkit
//! were started, and ends the second start in their midst: the toolkit's thread for raw keys then uses libraries that `exit` is taking down, which now
//! and then is a crash.

use zbus::blocking::Connection;

/// What the plugin calls its object on the session bus, after the name it was given: see `tauri-plugin-single-instance`, src/platform_impl/linux.rs.
const SUFFIX: &str = ".SingleInstance";
const INTERFACE: &str = "org.SingleInstance.DBus";
const METHOD: &str = "ExecuteCallback";

/// Gives what this start was given to the app that runs; whether there is one and it took it. If not, the plugin decides, as it also does between two
/// starts at the same moment.
pub fn takes(name: &str, arguments: &[String], folder: &str) -> bool {
    let name = format!("{name}{SUFFIX}");
    let path = format!("/{}", name.replace('.', "/").replace('-', "_"));
    Connection::session()
        .and_then(|bus| bus.call_method(Some(name.as_str()), path.as_str(), Some(INTERFACE), METHOD, &(arguments, folder)))
        .is_ok()
}
