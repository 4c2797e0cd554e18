//! Lines of standard input, and the end of standard output.

use std::io::{self, BufRead, Read};
use std::thread;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use tokio::sync::mpsc::{channel, Receiver};

/// Bytes of a line at most.
const LONGEST: u64 = 16 << 20;

/// Lines that wait to be read.
const WAITING: usize = 16;

/// A line of standard input.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// Its bytes, without its end.
    Whole(Vec<u8>),
    /// It is longer than a message may be, and was skipped.
    TooLong,
}

/// The lines of standard input, until it ends. A thread of its own reads them, for which nobody waits at the end.
pub fn lines() -> Receiver<Line> {
    let (send, receive) = channel(WAITING);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receive
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let count = input.take(LONGEST).read_until(b'\n', &mut line)?;
        let is_whole = line.ends_with(b"\n");
        match (is_whole, is_too_long) {
            _ if count == 0 && line.is_empty() && !is_too_long => return Ok(None),
            (true, true) => return Ok(Some(Line::TooLong)),
            (true, false) => {
                line.pop();
                return Ok(Some(Line::Whole(line)));
            }
            // The last line may have no end.
            (false, false) if (count as u64) < LONGEST => return Ok(Some(Line::Whole(line))),
            (false, true) if count == 0 => return Ok(Some(Line::TooLong)),
            (false, _) => {
                is_too_long = true;
                line.clear();
            }
        }
    }
}

/// True once nobody can read standard output any more.
pub fn output_is_closed() -> bool {
    let output = io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    let asked = poll(&mut polled, Some(&Timespec::default()));
    asked.is_ok() && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_never_ends_is_skipped_and_the_next_is_read() {
        let long = vec![b'x'; (LONGEST as usize) * 2 + 5];
        let text = [b"one\n\n".as_slice(), &long, b"\ntwo\r\nthree"].concat();
        let mut input = text.as_slice();
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input).unwrap() {
            lines.push(line);
        }
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(
            lines,
            [whole("one"), whole(""), Line::TooLong, whole("two\r"), whole("three")]
        );
        let mut input = long.as_slice();
        assert_eq!(next_line(&mut input).unwrap(), Some(Line::TooLong));
        assert_eq!(next_line(&mut input).unwrap(), None);
    }
}
