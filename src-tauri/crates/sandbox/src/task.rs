//! A function that runs in the other process.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::pool;

/// A named function from a value and bytes to a value and bytes, with its time. Both programs know it by its name.
pub struct Task<I, O> {
    name: &'static str,
    time: Duration,
    work: fn(I, Vec<u8>) -> (O, Vec<u8>),
}

impl<I, O> fmt::Debug for Task<I, O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Task").field("name", &self.name).finish()
    }
}

impl<I, O> Task<I, O> {
    /// A task. `time` begins when a process is free for it.
    pub const fn new(name: &'static str, time: Duration, work: fn(I, Vec<u8>) -> (O, Vec<u8>)) -> Self {
        Self { name, time, work }
    }
}

impl<I: Serialize + DeserializeOwned, O: Serialize + DeserializeOwned> Task<I, O> {
    /// Does the work in the other process, or in this one if this program has no such role.
    ///
    /// # Errors
    /// Those of the process. What is wrong with a file is part of the result.
    pub fn run(&self, input: I, bytes: Vec<u8>) -> Result<(O, Vec<u8>)> {
        let Some(pool) = pool::pool() else {
            return Ok((self.work)(input, bytes));
        };
        let header = serde_json::to_vec(&(self.name, input)).map_err(|error| Error::Start(error.into()))?;
        let answer = pool.answer(&Frame { header, body: bytes }, self.time)?;
        let output = serde_json::from_slice(&answer.header).map_err(|_| Error::Ended)?;
        Ok((output, answer.body))
    }
}

/// A task whose types are known to its room alone.
pub trait Work: Sync {
    /// The name of the task.
    fn name(&self) -> &'static str;

    /// Its time.
    fn time(&self) -> Duration;

    /// Does the work of a request.
    ///
    /// # Errors
    /// If the request is none of this task.
    fn answer(&self, input: serde_json::Value, bytes: Vec<u8>) -> serde_json::Result<(Vec<u8>, Vec<u8>)>;
}

impl<I: DeserializeOwned, O: Serialize> Work for Task<I, O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn time(&self) -> Duration {
        self.time
    }

    fn answer(&self, input: serde_json::Value, bytes: Vec<u8>) -> serde_json::Result<(Vec<u8>, Vec<u8>)> {
        let (output, bytes) = (self.work)(serde_json::from_value(input)?, bytes);
        Ok((serde_json::to_vec(&output)?, bytes))
    }
}
