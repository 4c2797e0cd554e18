//! The one outbound client: nothing else opens a connection to another computer.
