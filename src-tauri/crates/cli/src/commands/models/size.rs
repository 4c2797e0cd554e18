/// Bytes for people, gigabytes with one decimal.
pub fn size(bytes: u64) -> String {
    with_decimals(bytes, 1)
}

/// The same with two, so that a large download is seen to move.
pub fn precise_size(bytes: u64) -> String {
    with_decimals(bytes, 2)
}

fn with_decimals(bytes: u64, decimals: usize) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.decimals$} GB", bytes as f64 / 1e9),
    }
}
