//! Requests of servers for the person amid a call (*elicitation* in the Model Context Protocol).

use protocol::ToolRef;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A request of a server that waits for the person, as it is shown. Its texts have no invisible characters, but for the
/// names and values that go back to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WaitingElicitation {
    /// The name by which it waits.
    pub id: String,
    /// The chat whose call it belongs to.
    pub chat: String,
    /// The tool that was called.
    pub tool: ToolRef,
    /// The name of its server.
    pub server_name: String,
    /// The command or the address of its server.
    pub server_command: String,
    /// The server's words.
    pub message: String,
    /// The thing that it wants.
    pub wants: ElicitationWants,
}

/// The things that a server wants of the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ElicitationWants {
    /// That a form is filled in.
    Form {
        /// Its fields.
        fields: Vec<ElicitationField>,
    },
    /// That an address is opened in the browser.
    Address {
        /// The whole address.
        url: String,
        /// Its host.
        host: String,
    },
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ElicitationField {
    /// Its name, as the server knows it.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its description; empty if the server gives none.
    pub description: String,
    /// True if it must have a value.
    pub required: bool,
    /// True if it looks like a password, a key or the like, which a server must not ask for in a form.
    pub looks_secret: bool,
    /// The values that it takes.
    pub input: ElicitationInput,
}

/// The values that a field takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum ElicitationInput {
    /// A text.
    Text {
        /// The form that it has to have.
        format: Option<ElicitationFormat>,
        /// Characters at least.
        #[ts(type = "number | null")]
        min: Option<u64>,
        /// Characters at most.
        #[ts(type = "number | null")]
        max: Option<u64>,
        /// The value to begin with.
        default: Option<String>,
    },
    /// A number. Its limits and its value are texts, because a page rounds large ones.
    Number {
        /// True if it has to be a whole one.
        whole: bool,
        /// The least.
        min: Option<String>,
        /// The greatest.
        max: Option<String>,
        /// The value to begin with.
        default: Option<String>,
    },
    /// Yes or no.
    Boolean {
        /// The value to begin with.
        default: Option<bool>,
    },
    /// One of these.
    One {
        /// The values.
        choices: Vec<ElicitationChoice>,
        /// The value to begin with.
        default: Option<String>,
    },
    /// Some of these.
    Some {
        /// The values.
        choices: Vec<ElicitationChoice>,
        /// Values at least.
        #[ts(type = "number | null")]
        min: Option<u64>,
        /// Values at most.
        #[ts(type = "number | null")]
        max: Option<u64>,
        /// The values to begin with.
        default: Vec<String>,
    },
}

/// A form that a text has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ElicitationFormat {
    /// `name@example.org`.
    Email,
    /// An address with its scheme.
    Uri,
    /// `2026-11-28`.
    Date,
    /// `2026-11-28T12:00:00Z`.
    DateTime,
}

/// A value of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ElicitationChoice {
    /// As the server knows it.
    pub value: String,
    /// As it is shown. No two of a field look alike.
    pub title: String,
}

/// The fault in the value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct FieldProblem {
    /// The name of the field.
    pub field: String,
    /// The fault.
    pub problem: FieldProblemKind,
}

/// The faults that the value of a field can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum FieldProblemKind {
    /// It has none, and must.
    Missing,
    /// It is of another kind, or none of the choices.
    WrongKind,
    /// It has too few characters or values, or is too small.
    TooLittle,
    /// It has too many characters or values, or is too large.
    TooMuch,
    /// It does not have the form of an email address, a date or the like.
    BadFormat,
}
