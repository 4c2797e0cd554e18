//! The user of this computer whose program is at the other end of a connection, if the system reveals it.

use std::net::SocketAddr;

/// True if the program at the other end of this connection within this computer belongs to another user than this one.
/// Reads files. Where the system does not tell, nobody is another user.
#[cfg(target_os = "linux")]
pub(crate) fn is_other(own: SocketAddr, peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback() && is_other_in(&crate::http::tcp_table::text(), own, peer)
}

/// Only Linux tells.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_other(_own: SocketAddr, _peer: SocketAddr) -> bool {
    false
}

/// Both ends are in one table. An end that no program holds any more says user 0, whoever it was.
#[cfg(target_os = "linux")]
fn is_other_in(table: &str, own: SocketAddr, peer: SocketAddr) -> bool {
    use crate::http::tcp_table::connection;

    let end = |local, remote| connection(table, local, remote);
    match (end(own, peer), end(peer, own)) {
        (Some(own), Some(peer)) => peer.user != own.user || peer.inode == "0",
        _ => false,
    }
}

#[cfg(all(test, target_os = "linux", target_endian = "little"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const TABLE: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:2027 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n   \
        1: 0100007F:2027 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1\n   \
        2: 0100007F:D431 0100007F:2027 01 00000000:00000000 00:00000000 00000000  1000        0 4713 1\n   \
        3: 0100007F:2027 0100007F:D432 01 00000000:00000000 00:00000000 00000000  1000        0 4714 1\n   \
        4: 0100007F:D432 0100007F:2027 01 00000000:00000000 00:00000000 00000000  1001        0 4715 1\n   \
        5: 0100007F:2027 0100007F:D433 08 00000000:00000000 00:00000000 00000000     0        0 4716 1\n   \
        6: 0100007F:D433 0100007F:2027 05 00000000:00000000 00:00000000 00000000     0        0 0 1\n";

    #[test]
    fn a_program_of_another_user_is_known_by_its_end() {
        let other = |port: u16| is_other_in(TABLE, "127.0.0.1:8231".parse().unwrap(), ([127, 0, 0, 1], port).into());
        assert_eq!((other(0xD431), other(0xD432)), (false, true));
        // The end was closed, so its user is not told; and one that is not in the table.
        assert_eq!((other(0xD433), other(0xD434)), (true, false));
    }

    #[test]
    fn ones_own_programs_are_no_other() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            assert!(!is_other(server.local_addr().unwrap(), peer));
            let (table, own) = (crate::http::tcp_table::text(), server.local_addr().unwrap());
            assert!(
                crate::http::tcp_table::connection(&table, peer, own).is_some(),
                "{table}"
            );
            drop(client);
        }
    }
}
