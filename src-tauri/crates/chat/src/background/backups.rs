//! A backup of the history a day.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::sleep;

use crate::core::Core;

/// How old the newest backup may become.
const BACKUP_EVERY: Duration = Duration::from_secs(24 * 3600);
/// The time between two checks whether a backup is due.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// The time from the start to the first check, well after the start, which it must not slow down.
const FIRST_LOOK: Duration = Duration::from_secs(60);

/// Makes a backup a day, as long as somebody uses the chats, and reports a file that turns out to be damaged.
pub(crate) async fn back_up_daily(core: Weak<Core>) {
    sleep(FIRST_LOOK).await;
    loop {
        let Some(core) = core.upgrade() else { return };
        if let Err(error) = core.history.back_up(BACKUP_EVERY).await {
            tracing::warn!(%error, "no backup of the history was made");
            if error.is_damage() {
                core.damaged.send_replace(true);
            }
        }
        drop(core);
        sleep(LOOK_EVERY).await;
    }
}
