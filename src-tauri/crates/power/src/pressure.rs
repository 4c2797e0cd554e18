//! Memory pressure.

/// How short the computer's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryPressure {
    /// Programs wait for memory now and then; what is kept only to be faster should go.
    Warning,
    /// Nothing gets on for want of memory; whatever can be read again should go.
    Critical,
}
