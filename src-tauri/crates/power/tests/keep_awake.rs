//! Sleep is held off through a session manager that is asked over a bus of its own, as logind is.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Sender};

use zbus::blocking::connection::Builder;
use zbus::zvariant;

/// A call of logind's `Inhibit`: what, who, why and mode, and the other end of the file that it returned.
type Inhibited = ([String; 4], UnixStream);

struct Logind(Sender<Inhibited>);

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Logind {
    fn inhibit(&self, what: String, who: String, why: String, mode: String) -> zvariant::OwnedFd {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.0.send(([what, who, why, mode], ours)).unwrap();
        OwnedFd::from(theirs).into()
    }
}

struct Bus(Child);

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sleep_is_held_off_until_the_guard_goes() {
    let bus = Command::new("dbus-daemon")
        .args(["--session", "--nofork", "--print-address"])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut bus) = bus.map(Bus) else {
        println!("report: no dbus-daemon here: skipped");
        return;
    };
    let mut address = String::new();
    BufReader::new(bus.0.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let (asked, inhibited) = channel();
    let _logind = Builder::address(address.trim())
        .unwrap()
        .name("org.freedesktop.login1")
        .unwrap()
        .serve_at("/org/freedesktop/login1", Logind(asked))
        .unwrap()
        .build()
        .unwrap();
    // There is one test in this program, and nothing else in it reads the environment.
    std::env::set_var("DBUS_SYSTEM_BUS_ADDRESS", address.trim());

    let awake = power::KeepAwake::new("An answer is being written").unwrap();
    let (asked, mut held) = inhibited.recv().unwrap();
    assert_eq!(asked, ["idle", "Ponder", "An answer is being written", "block"]);
    held.set_nonblocking(true).unwrap();
    let open = held.read(&mut [0]).unwrap_err();
    assert_eq!(open.kind(), std::io::ErrorKind::WouldBlock);
    drop(awake);
    held.set_nonblocking(false).unwrap();
    assert_eq!(held.read(&mut [0]).unwrap(), 0, "it is let go");

    drop(bus);
    std::env::set_var("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere");
    assert!(power::KeepAwake::new("An answer is being written").is_err());
}
