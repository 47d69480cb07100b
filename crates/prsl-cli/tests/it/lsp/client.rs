//! A running language server, and a small client of the protocol.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::runner::Folder;

/// The address of the document that tests open.
pub const URI: &str = "file:///rules.prsl";

/// A running `prsl lsp`. It is killed when the test ends.
pub struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    n_requests: i64,
    /// Notifications that were received while a response was awaited.
    notifications: VecDeque<Value>,
}

impl Client {
    /// Starts the command.
    pub fn start(arguments: &str) -> Client {
        let mut command = Folder::new(&[]).command(&format!("lsp {arguments}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process =
            command.current_dir(env!("CARGO_MANIFEST_DIR")).spawn().expect("the command starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Client { process, input, output, n_requests: 0, notifications: VecDeque::new() }
    }

    /// Starts the command and a session.
    pub fn initialized(arguments: &str, capabilities: Value) -> (Client, Value) {
        let mut client = Client::start(arguments);
        let answer = client.ask("initialize", json!({"processId": null, "capabilities": capabilities}));
        client.notify("initialized", json!({}));
        (client, answer["capabilities"].clone())
    }

    /// Opens the document, and returns its diagnostics.
    pub fn open(&mut self, text: &str) -> Value {
        let document = json!({"uri": URI, "languageId": "prsl", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
        self.diagnostics()
    }

    /// Changes the document, and returns its diagnostics.
    pub fn change(&mut self, version: i64, changes: Value) -> Value {
        let document = json!({"uri": URI, "version": version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
        self.diagnostics()
    }

    /// The result of a request that succeeds.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// The code of a request that fails.
    pub fn refused(&mut self, method: &str, params: Value) -> i64 {
        let response = self.request(method, params);
        response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{response}"))
    }

    /// The result of a request about a position, which is that of a part of the text.
    pub fn ask_at(&mut self, method: &str, text: &str, part: &str, after: u64) -> Value {
        let start = text.find(part).unwrap_or_else(|| panic!("no `{part}`"));
        let line = text[..start].matches('\n').count();
        let column = start - text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let position = json!({"line": line, "character": column as u64 + after});
        self.ask(method, json!({"textDocument": {"uri": URI}, "position": position}))
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.n_requests += 1;
        let id = self.n_requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.notifications.push_back(message);
        }
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next diagnostics.
    pub fn diagnostics(&mut self) -> Value {
        let message = self.notifications.pop_front().unwrap_or_else(|| self.receive());
        assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
        message["params"].clone()
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// Sends bytes, which need not be a message.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it reads");
    }

    /// The next message.
    pub fn receive(&mut self) -> Value {
        let mut length = None;
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("text"), 0, "it has ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().ok(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length.expect("a length")];
        self.output.read_exact(&mut body).expect("a whole message");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Closes the input, and returns the exit code.
    pub fn close(&mut self) -> Option<i32> {
        drop(self.input.take());
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
