//! The number on the app's icon: models being downloaded. The Dock shows it, and Linux panels that support Unity's
//! launcher signal, such as those of Plasma and Ubuntu; others ignore it.

use tauri::AppHandle;

/// The number that the icon shows.
#[derive(Default)]
pub struct Badge {
    count: usize,
    /// Panels remove the number when its sender leaves the session bus.
    #[cfg(target_os = "linux")]
    bus: Option<zbus::Connection>,
}

impl Badge {
    /// Shows a number, or none for 0.
    pub async fn show(&mut self, app: &AppHandle, count: usize) {
        if count == self.count {
            return;
        }
        self.count = count;
        if let Err(error) = self.set(app).await {
            tracing::info!("the app's icon does not show how many models are being fetched: {error}");
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn set(&self, app: &AppHandle) -> tauri::Result<()> {
        use tauri::Manager;

        let count = i64::try_from(self.count).ok().filter(|count| *count > 0);
        match app.get_webview_window(api::WindowName::Chat.as_str()) {
            Some(window) => window.set_badge_count(count),
            None => Ok(()),
        }
    }

    #[cfg(target_os = "linux")]
    async fn set(&mut self, _app: &AppHandle) -> zbus::Result<()> {
        use std::collections::HashMap;
        use zbus::zvariant::Value;

        /// The desktop entry that the package brings, by which a panel knows the icon.
        const ENTRY: &str = "application://Ponder.desktop";
        const PATH: &str = "/com/canonical/unity/launcherentry/1";
        const INTERFACE: &str = "com.canonical.Unity.LauncherEntry";

        let bus = match self.bus.take() {
            Some(bus) => bus,
            None => zbus::Connection::session().await?,
        };
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let shown = HashMap::from([("count", Value::from(count)), ("count-visible", Value::from(count > 0))]);
        bus.emit_signal(None::<&str>, PATH, INTERFACE, "Update", &(ENTRY, shown))
            .await?;
        // The connection is only needed while a number is shown.
        self.bus = (self.count > 0).then_some(bus);
        Ok(())
    }
}
