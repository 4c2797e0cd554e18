//! Requests and answers on a pipe: a header in JSON and bytes, each after its length.

use std::io::{self, Read, Write};

/// The largest header: the text of a document, escaped.
const MAX_HEADER: u64 = 1 << 30;
/// The largest body: the pixels of the largest image.
const MAX_BODY: u64 = 1 << 30;

/// A request or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// JSON.
    pub(crate) header: Vec<u8>,
    /// Bytes that JSON would only make longer.
    pub(crate) body: Vec<u8>,
}

impl Frame {
    /// Writes it in full.
    pub(crate) fn write(&self, pipe: &mut impl Write) -> io::Result<()> {
        pipe.write_all(&(self.header.len() as u64).to_le_bytes())?;
        pipe.write_all(&(self.body.len() as u64).to_le_bytes())?;
        pipe.write_all(&self.header)?;
        pipe.write_all(&self.body)?;
        pipe.flush()
    }

    /// Reads one in full. Memory grows with what arrives, not with what is announced.
    ///
    /// # Errors
    /// `UnexpectedEof` if the pipe ends before or within it; `InvalidData` for lengths beyond all limits.
    pub(crate) fn read(pipe: &mut impl Read) -> io::Result<Self> {
        let mut lengths = [0; 16];
        pipe.read_exact(&mut lengths)?;
        let (header, body) = lengths.split_at(8);
        Ok(Self {
            header: part(pipe, header, MAX_HEADER)?,
            body: part(pipe, body, MAX_BODY)?,
        })
    }
}

fn part(pipe: &mut impl Read, length: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    if length > max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    pipe.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let frame = Frame {
            header: b"{}".to_vec(),
            body: vec![7; 300_000],
        };
        let mut pipe = Vec::new();
        frame.write(&mut pipe).expect("written");
        frame.write(&mut pipe).expect("written");
        let mut pipe = pipe.as_slice();
        assert_eq!(Frame::read(&mut pipe).expect("read"), frame);
        assert_eq!(Frame::read(&mut pipe).expect("read"), frame);
        assert_eq!(
            Frame::read(&mut pipe).expect_err("the end").kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn lengths_that_are_too_large_or_not_true_are_errors() {
        let announced = [u64::MAX.to_le_bytes(), 0u64.to_le_bytes()].concat();
        let error = Frame::read(&mut announced.as_slice()).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let cut = [&[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], b"{}"].concat();
        let error = Frame::read(&mut cut.as_slice()).expect_err("cut off");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
