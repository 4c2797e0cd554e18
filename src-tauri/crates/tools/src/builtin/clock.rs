//! The time.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The time now in a zone of the IANA database, such as `2026-11-27 22:15:03 +01:00 (Europe/Berlin), Friday, week 48`.
pub fn time(zone: &str) -> Result<String, String> {
    let found = TimeZone::get(zone).map_err(|_| format!("there is no time zone “{zone}”"))?;
    let now: Zoned = Timestamp::now().to_zoned(found);
    let text = now.strftime("%Y-%m-%d %H:%M:%S %:z (%Q), %A, week %V");
    Ok(text.to_string())
}
