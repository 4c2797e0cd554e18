//! Expressions in exact decimals.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of an expression at most; a model writes no longer one, and nesting takes stack.
const LONGEST: usize = 2_000;

/// How long an expression may take.
const TIME: Duration = Duration::from_secs(1);

/// Stack for an expression of that many brackets.
const STACK: usize = 64 << 20;

/// Bytes of a value at most.
const LONGEST_VALUE: usize = 4_000;

struct Until(Instant);

impl fend_core::Interrupt for Until {
    fn should_interrupt(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// The value of an expression.
pub fn value(expression: &str) -> Result<String, String> {
    if expression.trim().is_empty() {
        return Err("there is no expression".to_owned());
    }
    if expression.len() > LONGEST {
        return Err(format!("an expression has at most {LONGEST} bytes"));
    }
    let (found, value) = mpsc::channel();
    let expression = expression.to_owned();
    // A thread of its own has as much stack as the deepest expression takes.
    let computing = thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut context = fend_core::Context::new();
        let until = Until(Instant::now() + TIME);
        let value = fend_core::evaluate_with_interrupt(&expression, &mut context, &until);
        let _ = found.send(value.map(|value| value.get_main_result().to_owned()));
    });
    computing.map_err(|error| error.to_string())?;
    match value.recv_timeout(2 * TIME) {
        Ok(Ok(value)) if value.is_empty() => Err("the expression has no value".to_owned()),
        Ok(Ok(value)) if value.len() <= LONGEST_VALUE => Ok(value),
        Ok(Ok(_)) => Err("the value is too long".to_owned()),
        Ok(Err(reason)) => Err(reason),
        Err(RecvTimeoutError::Timeout) => Err("the expression takes too long".to_owned()),
        Err(RecvTimeoutError::Disconnected) => Err("the expression cannot be computed".to_owned()),
    }
}
