//! Heat and power of the computer.

use api::Slowdown;
use command::command;

/// The reason why the computer runs slower now; `null` if the system reports none.
#[command(chat)]
pub async fn slowed_by() -> Option<Slowdown> {
    ::power::slowdown()
}
