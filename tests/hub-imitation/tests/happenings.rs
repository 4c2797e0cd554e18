//! Every fault does what it says, as a strict client sees it: plain HTTP over a socket.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hub_imitation::{Fault, FaultTarget, Imitation, Origin, Repository, Times};

const SIZE: u64 = 3 << 20;

struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    /// The end of the connection before the announced length.
    broken: Option<ErrorKind>,
}

/// One request over a connection of its own; `Err` without any response.
fn get(url: &str, headers: &[(&str, &str)]) -> Result<Answer, ErrorKind> {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut line = TcpStream::connect(host).map_err(|error| error.kind())?;
    line.set_read_timeout(Some(Duration::from_millis(400)))
        .expect("a time-out");
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    write!(
        line,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
    )
    .map_err(|error| error.kind())?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 1 << 16];
    let ended = loop {
        match line.read(&mut buffer) {
            Ok(0) => break None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) => break Some(error.kind()),
        }
    };
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Err(ended.unwrap_or(ErrorKind::UnexpectedEof));
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let body = bytes.split_off(end + 4);
    let promised = headers
        .get("content-length")
        .and_then(|length| length.parse::<usize>().ok());
    let broken = promised
        .is_some_and(|promised| body.len() < promised)
        .then_some(ended.unwrap_or(ErrorKind::UnexpectedEof));
    Ok(Answer {
        status: status.expect("a status"),
        headers,
        body,
        broken,
    })
}

fn model(hub: &Imitation) -> (Repository, Vec<u8>) {
    let model = hub
        .repository("o/n")
        .generated("w.safetensors", SIZE, 1)
        .file("config.json", "{}");
    let bytes = model.bytes("w.safetensors").expect("a file has bytes");
    (model, bytes)
}

/// The address of the weights' bytes, from the hub's redirect.
fn place(hub: &Imitation) -> String {
    let answer = get(&format!("{}/o/n/resolve/main/w.safetensors", hub.endpoint()), &[]).expect("an answer");
    assert_eq!(answer.status, 302);
    answer.headers["location"].clone()
}

fn with(fault: Fault, headers: &[(&str, &str)]) -> (Result<Answer, ErrorKind>, Vec<u8>) {
    let hub = Imitation::start();
    let (_, bytes) = model(&hub);
    let place = place(&hub);
    hub.fault("w.safetensors", fault, Times::Once);
    let answer = get(&place, headers);
    assert!(!hub.faults_waiting(), "the fault has happened");
    let after = get(&place, &[]).expect("it is over");
    assert!(
        after.body == bytes || matches!(answer, Ok(Answer { broken: Some(_), .. })),
        "once is once"
    );
    (answer, bytes)
}

#[test]
fn a_healthy_hub_sends_what_is_asked_for() {
    let hub = Imitation::start();
    let (model, bytes) = model(&hub);
    let resolve = format!("{}/o/n/resolve/{}/w.safetensors", hub.endpoint(), model.commit());
    let head = get(&resolve, &[]).expect("an answer");
    let sha256 = model.etag("w.safetensors").expect("a hash");
    assert_eq!(head.headers["x-linked-etag"], format!("\"{sha256}\""));
    assert_eq!(head.headers["x-linked-size"], SIZE.to_string());
    assert_eq!(head.headers["x-repo-commit"], model.commit());
    let whole = get(&head.headers["location"], &[]).expect("an answer");
    assert!(whole.status == 200 && whole.body == bytes);
    let etag = whole.headers["etag"].clone();
    let some = get(
        &head.headers["location"],
        &[("Range", "bytes=1000000-1999999"), ("If-Range", &etag)],
    )
    .expect("an answer");
    assert!(some.status == 206 && some.body == bytes[1_000_000..2_000_000]);
    assert_eq!(some.headers["content-range"], format!("bytes 1000000-1999999/{SIZE}"));
    let other = get(
        &head.headers["location"],
        &[("Range", "bytes=5-"), ("If-Range", "\"other\"")],
    )
    .expect("an answer");
    assert!(other.status == 200 && other.body == bytes);
    let beyond = get(&head.headers["location"], &[("Range", &format!("bytes={SIZE}-"))]).expect("an answer");
    assert_eq!(
        (beyond.status, beyond.headers["content-range"].as_str()),
        (416, "bytes */3145728")
    );
    let pointer = get(&resolve.replace("/resolve/", "/raw/"), &[]).expect("an answer");
    assert!(String::from_utf8_lossy(&pointer.body).contains(&format!("oid sha256:{sha256}\nsize {SIZE}\n")));
    let small = format!("{}/o/n/resolve/main/config.json", hub.endpoint());
    let answer = get(&small, &[]).expect("an answer");
    assert!(answer.status == 200 && answer.body == b"{}");
    let unchanged = get(&small, &[("If-None-Match", &answer.headers["etag"])]).expect("an answer");
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert_eq!(
        hub.requests()
            .iter()
            .filter(|request| request.origin == Origin::Cdn)
            .count(),
        4
    );
}

#[test]
fn connections_break_and_bodies_end_early() {
    let (cut, bytes) = with(Fault::Cut { after: 500_000 }, &[]);
    let cut = cut.expect("it has begun");
    assert!(
        cut.broken == Some(ErrorKind::ConnectionReset) && cut.body.len() <= 500_000 && bytes.starts_with(&cut.body)
    );
    let (broken, bytes) = with(Fault::Broken { bytes: 700_001 }, &[]);
    let broken = broken.expect("it has begun");
    assert!(broken.broken == Some(ErrorKind::UnexpectedEof) && broken.body == bytes[..700_001]);
    let (short, bytes) = with(Fault::Short { bytes: 600_000 }, &[("Range", "bytes=10-")]);
    let short = short.expect("an answer");
    assert!(short.broken.is_none() && short.body == bytes[10..600_010]);
    assert_eq!(short.headers["content-range"], format!("bytes 10-{}/{SIZE}", SIZE - 1));
    let (stalled, bytes) = with(Fault::Stall { after: 300_000 }, &[]);
    let stalled = stalled.expect("it has begun");
    assert!(stalled.broken == Some(ErrorKind::WouldBlock) && stalled.body == bytes[..300_000]);
}

#[test]
fn answers_lie() {
    let (corrupt, bytes) = with(Fault::Corrupt { at: 2_000_000 }, &[("Range", "bytes=1500000-")]);
    let body = corrupt.expect("an answer").body;
    let wrong: Vec<usize> = (0..body.len())
        .filter(|at| body[*at] != bytes[at + 1_500_000])
        .collect();
    assert_eq!(wrong, [500_000]);
    let (whole, bytes) = with(Fault::RangeIgnored, &[("Range", "bytes=100-")]);
    assert!(whole.is_ok_and(|whole| whole.status == 200 && whole.body == bytes));
    let (refused, _) = with(Fault::RangeRefused, &[("Range", "bytes=100-")]);
    assert!(refused.is_ok_and(|refused| refused.status == 416));
    let (shifted, bytes) = with(Fault::RangeShifted { by: 50 }, &[("Range", "bytes=100-199")]);
    let shifted = shifted.expect("an answer");
    assert!(shifted.status == 206 && shifted.body == bytes[150..200]);
    assert_eq!(shifted.headers["content-range"], format!("bytes 150-199/{SIZE}"));
    let (portal, _) = with(Fault::Portal, &[]);
    assert!(portal.is_ok_and(|portal| portal.status == 200 && portal.body.starts_with(b"<!doctype html>")));
    let busy = Fault::Status {
        code: 429,
        retry_after: Some(7),
    };
    let (busy, _) = with(busy, &[]);
    assert!(busy.is_ok_and(|busy| busy.status == 429 && busy.headers["retry-after"] == "7"));
}

#[test]
fn answers_come_slowly() {
    let started = Instant::now();
    let drip = Fault::Drip {
        bytes: SIZE / 4,
        pause: Duration::from_millis(30),
    };
    let (slow, bytes) = with(drip, &[]);
    assert!(slow.is_ok_and(|slow| slow.body == bytes));
    // Four pieces with a pause before each take at least that long.
    assert!(started.elapsed() >= Duration::from_millis(120));
}

#[test]
fn files_change_on_the_way() {
    for everywhere in [false, true] {
        let hub = Imitation::start();
        let (model, bytes) = model(&hub);
        let (place, commit) = (place(&hub), model.commit());
        let fault = if everywhere {
            Fault::Overwritten { after: 1_000_000 }
        } else {
            Fault::NewCommit { after: 1_000_000 }
        };
        hub.fault("w.safetensors", fault, Times::Once);
        assert!(get(&place, &[]).is_ok_and(|answer| answer.broken.is_some()));
        assert_ne!(model.commit(), commit);
        let changed = model.bytes("w.safetensors").expect("a file has bytes");
        assert!(changed.len() == bytes.len() && changed != bytes);
        let old = get(&place, &[]).expect("an answer").body;
        assert!(old == if everywhere { changed } else { bytes });
    }
}

#[test]
fn faults_happen_at_their_place_and_as_often_as_they_should() {
    let hub = Imitation::start();
    let (_, bytes) = model(&hub);
    let place = place(&hub);
    let api = format!("{}/api/models/o/n", hub.endpoint());
    let busy = Fault::Status {
        code: 503,
        retry_after: None,
    };
    hub.fault_at(FaultTarget::Api, Some("o/n"), None, busy, Times::N(2));
    let statuses: Vec<u16> = (0..3)
        .filter_map(|_| get(&api, &[]).ok())
        .map(|answer| answer.status)
        .collect();
    assert_eq!(statuses, [503, 503, 200]);
    hub.fault_at(FaultTarget::Api, Some("o/other"), None, Fault::Portal, Times::Always);
    hub.fault_at(
        FaultTarget::Resolve,
        None,
        Some("w.safetensors"),
        Fault::WrongEtag,
        Times::Always,
    );
    assert!(get(&api, &[]).is_ok_and(|answer| answer.body.starts_with(b"{")));
    let resolve = format!("{}/o/n/resolve/main/w.safetensors", hub.endpoint());
    let first = get(&resolve, &[]).expect("an answer").headers["x-linked-etag"].clone();
    hub.clear_faults();
    assert_ne!(get(&resolve, &[]).expect("an answer").headers["x-linked-etag"], first);
    hub.disappear(Origin::Cdn);
    assert!(matches!(
        get(&place, &[]),
        Err(ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
    ));
    assert!(get(&api, &[]).is_ok());
    hub.reappear(Origin::Cdn);
    let again = (0..200).find_map(|_| {
        get(&place, &[])
            .map_err(|_| std::thread::sleep(Duration::from_millis(10)))
            .ok()
    });
    assert!(again.is_some_and(|again| again.body == bytes));
    hub.fault_at(FaultTarget::Resolve, None, None, Fault::Cut { after: 0 }, Times::Once);
    assert!(get(&resolve, &[]).is_err());
}
