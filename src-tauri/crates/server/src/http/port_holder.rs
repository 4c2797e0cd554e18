//! The program that listens on a port of this computer, if the system reveals it.

use api::PortHolder;

#[cfg(target_os = "linux")]
use crate::http::tcp_table;

/// The program that listens on this port. Only Linux reveals it without running another program, and only for the
/// user's own processes.
#[cfg(target_os = "linux")]
pub(crate) fn of(port: u16) -> Option<PortHolder> {
    use std::fs;
    use std::path::Path;

    let table = tcp_table::text();
    let sockets: Vec<String> = listening(&table, port).collect();
    let holds = |process: &Path| {
        let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let mut links = open.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbered = processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let (process, folder): (u32, _) = numbered.find(|(_, folder)| holds(folder))?;
    let name = fs::read_to_string(folder.join("comm")).ok()?.trim().to_owned();
    Some(PortHolder { name, process })
}

/// Unknown on other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of(_port: u16) -> Option<PortHolder> {
    None
}

/// The listening sockets of a port in a table of the kernel, in the form of `/proc/PID/fd` links.
#[cfg(target_os = "linux")]
fn listening(table: &str, port: u16) -> impl Iterator<Item = String> + '_ {
    let listening = tcp_table::sockets(table).filter(move |socket| socket.has_port(port));
    let listening = listening.filter(|socket| socket.state == tcp_table::LISTEN);
    listening.map(|socket| format!("socket:[{}]", socket.inode))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_is_found_by_the_port() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            assert_eq!(
                of(port).map(|holder| holder.process),
                Some(std::process::id()),
                "{address}"
            );
            drop(listener);
            assert_eq!(of(port), None);
        }
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:2027 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n   \
            1: 0100007F:2027 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n   \
            2: 0100007F:0027 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1\n";
        assert_eq!(listening(table, 0x2027).collect::<Vec<_>>(), ["socket:[4711]"]);
        assert_eq!(listening(table, 0x27).collect::<Vec<_>>(), ["socket:[4713]"]);
    }
}
