//! The sockets of this computer, as Linux's kernel lists them in `/proc/net/tcp`.

use std::fs;
use std::net::SocketAddr;

/// The state of a socket that listens.
pub(crate) const LISTEN: &str = "0A";

/// A socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Socket<'a> {
    local: &'a str,
    remote: &'a str,
    pub(crate) state: &'a str,
    /// The user that made it.
    pub(crate) user: u32,
    /// Its number among the open files; 0 once no program holds it.
    pub(crate) inode: &'a str,
}

/// The text of all tables; empty where the system shows none.
pub(crate) fn text() -> String {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    tables.concat()
}

/// The sockets of a table.
pub(crate) fn sockets(text: &str) -> impl Iterator<Item = Socket<'_>> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(Socket {
            local: fields.get(1)?,
            remote: fields.get(2)?,
            state: fields.get(3)?,
            user: fields.get(7)?.parse().ok()?,
            inode: fields.get(9)?,
        })
    })
}

impl Socket<'_> {
    /// True if this is its local port.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.local.ends_with(&format!(":{port:04X}"))
    }
}

/// The socket at the `local` end of a connection to `remote`. The table is searched as text: a busy server's has
/// thousands of lines, and is looked at for every new connection.
pub(crate) fn connection(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<Socket<'_>> {
    let ends = |form: fn(SocketAddr) -> String| format!(" {} {} ", form(local), form(remote));
    [ends(in_table), ends(in_table_mapped)].iter().find_map(|ends| {
        let start = table[..table.find(ends)?].rfind('\n').map_or(0, |newline| newline + 1);
        sockets(&table[start..]).next()
    })
}

/// An address as the kernel writes it: words of four bytes in the order of the processor.
fn in_table(address: SocketAddr) -> String {
    let octets = match address.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let word = |bytes: &[u8]| format!("{:08X}", bytes.try_into().map_or(0, u32::from_ne_bytes));
    let words: String = octets.chunks(4).map(word).collect();
    format!("{words}:{:04X}", address.port())
}

/// The same as a socket of IPv6 has it that speaks IPv4.
fn in_table_mapped(address: SocketAddr) -> String {
    let marker = format!("{:08X}", u32::from_ne_bytes([0, 0, 0xFF, 0xFF]));
    match address.ip().to_canonical() {
        std::net::IpAddr::V4(_) => format!("{}{marker}{}", "0".repeat(16), in_table(address)),
        std::net::IpAddr::V6(_) => in_table(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_kernel_does() {
        if cfg!(target_endian = "big") {
            return;
        }
        let written = |address: &str| in_table(address.parse().unwrap());
        assert_eq!(written("127.0.0.1:8231"), "0100007F:2027");
        assert_eq!(written("[::1]:39"), "00000000000000000000000001000000:0027");
        assert_eq!(written("[::ffff:127.0.0.1]:39"), "0100007F:0027");
        let mapped = in_table_mapped("127.0.0.1:39".parse().unwrap());
        assert_eq!(mapped, "0000000000000000FFFF00000100007F:0027");
    }
}
