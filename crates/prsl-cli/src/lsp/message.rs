//! Messages of JSON-RPC 2.0.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The id of a request, which its response repeats.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// A message of the client: a request if it has an id, a notification if it has none. A response has no method.
#[derive(Debug, Deserialize)]
pub struct Message {
    /// The id of a request.
    pub id: Option<Id>,
    /// The method.
    pub method: Option<String>,
    /// The parameters.
    #[serde(default)]
    pub params: Value,
}

/// Why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    code: i32,
    message: String,
}

impl Failure {
    /// The body of a message is not JSON, or its frame is wrong.
    pub fn parse(message: impl Into<String>) -> Self {
        Self { code: -32700, message: message.into() }
    }

    /// The message is not a request that can be made now.
    pub fn request(message: impl Into<String>) -> Self {
        Self { code: -32600, message: message.into() }
    }

    /// The server does not know the method.
    pub fn method(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        Self { code: -32601, message: format!("the method `{method}` is not supported") }
    }

    /// The parameters are wrong.
    pub fn params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    /// The client has not sent `initialize` yet.
    pub fn not_initialized() -> Self {
        Self { code: -32002, message: "the first request must be `initialize`".to_owned() }
    }

    /// The client has cancelled the request.
    pub fn cancelled() -> Self {
        Self { code: -32800, message: "the request was cancelled".to_owned() }
    }

    /// The text has changed since the request.
    pub fn modified() -> Self {
        Self { code: -32801, message: "the text has changed since the request".to_owned() }
    }
}

/// Reads a message. An error has the id of the request, if it can be read.
pub fn read(body: &[u8]) -> Result<Message, (Option<Id>, Failure)> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| (None, Failure::parse(format!("the message is not JSON: {error}"))))?;
    if !value.is_object() {
        return Err((None, Failure::request("a message is an object")));
    }
    let id = value.get("id").and_then(|id| Id::deserialize(id).ok());
    serde_json::from_value(value)
        .map_err(|error| (id, Failure::request(format!("the message is no request: {error}"))))
}

/// The response to a request. Without an id, the request could not be read.
pub fn response(id: Option<&Id>, result: Result<Value, Failure>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Failure { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

/// A notification of the server.
pub fn notification(method: &str, params: &impl Serialize) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}
