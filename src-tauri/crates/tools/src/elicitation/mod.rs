//! Requests of a server for the person amid a call (*elicitation* in the Model Context Protocol): a form, or an address to
//! open.

mod address;
mod field;
mod form;

use serde_json::{json, Value};

use crate::visible::visible;

pub use address::Address;
pub use field::{Choice, Field, Input, Number, TextFormat};
pub use form::{Form, Problem};

/// Bytes of a request at most.
const LONGEST: usize = 64 << 10;

/// Characters of a message at most.
const LONGEST_MESSAGE: usize = 8000;

/// A request for the person. No text in it has invisible characters, but for names and values that go back to the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The server's words to the person.
    pub message: String,
    /// The thing that it wants.
    pub wants: Wants,
}

/// The things that a server wants of the person.
#[derive(Debug, Clone, PartialEq)]
pub enum Wants {
    /// That a form is filled in.
    Form(Form),
    /// That an address is opened in the browser. What happens there is between the person and the address.
    Address(Address),
}

/// The person's reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Yes, with the values of a form.
    Accept(Option<Value>),
    /// No.
    Decline,
    /// Neither: the window was closed, or the call ended.
    Cancel,
}

impl Elicitation {
    /// Reads the parameters of `elicitation/create`.
    ///
    /// # Errors
    /// A sentence for the server. Nobody is asked then.
    pub fn read(params: &Value) -> Result<Self, String> {
        let size = serde_json::to_string(params).map_or(usize::MAX, |text| text.len());
        if size > LONGEST {
            return Err(format!("a request for the person has at most {LONGEST} bytes"));
        }
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        if message.chars().count() > LONGEST_MESSAGE {
            return Err(format!(
                "a message to the person has at most {LONGEST_MESSAGE} characters"
            ));
        }
        let wants = match params.get("mode").and_then(Value::as_str) {
            None | Some("form") => Wants::Form(Form::read(params.get("requestedSchema").unwrap_or(&Value::Null))?),
            Some("url") => {
                let address = params.get("url").and_then(Value::as_str).unwrap_or_default();
                Wants::Address(Address::read(address)?)
            }
            Some(_) => return Err("only forms and addresses can be asked for".to_owned()),
        };
        Ok(Self {
            message: visible(message),
            wants,
        })
    }
}

impl Reply {
    /// The result of `elicitation/create`.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Accept(Some(content)) => json!({ "action": "accept", "content": content }),
            Self::Accept(None) => json!({ "action": "accept" }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_hides_nothing_and_has_a_limit() {
        let ask =
            |message: &str| json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } });
        let read = Elicitation::read(&ask("Your \u{202e}eman\u{202c}?")).unwrap();
        assert_eq!(read.message, "Your ⟨U+202E⟩eman⟨U+202C⟩?");
        Elicitation::read(&ask(&"x".repeat(8001))).unwrap_err();
        let mut large = ask("Name?");
        large["requestedSchema"]["properties"]["a"] = json!({ "type": "string", "description": "x".repeat(70_000) });
        Elicitation::read(&large).unwrap_err();
    }

    #[test]
    fn only_forms_and_addresses_are_asked_for() {
        for params in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "message": "?" }),
            json!({ "message": "?", "mode": "script", "url": "https://example.org" }),
            json!({ "message": "?", "mode": "url" }),
            json!({ "message": "?", "mode": "url", "url": "file:///etc/passwd" }),
            json!({ "message": "?", "requestedSchema": "yes" }),
        ] {
            assert!(Elicitation::read(&params).is_err(), "{params}");
        }
    }

    #[test]
    fn a_reply_is_what_the_protocol_says() {
        let content = json!({ "name": "Ada" });
        assert_eq!(
            Reply::Accept(Some(content.clone())).to_value(),
            json!({ "action": "accept", "content": content })
        );
        assert_eq!(Reply::Decline.to_value(), json!({ "action": "decline" }));
        assert_eq!(Reply::Cancel.to_value(), json!({ "action": "cancel" }));
        assert_eq!(Reply::Accept(None).to_value(), json!({ "action": "accept" }));
    }
}
