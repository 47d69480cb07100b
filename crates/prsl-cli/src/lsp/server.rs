//! The server: the life of a session, the open documents, and the answers to requests.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::analysis::{Job, Outcome, Queue, Understood};
use super::frame::{self, Frame};
use super::message::{self, Failure, Id, Message};
use super::text::{Encoding, Lines, Position};
use super::types::{
    AboutDocument, AboutPosition, Cancel, Change, DidChange, DidOpen, InitializeParams, value,
};
use super::{completion, diagnostics, formatting, hover};

/// What the server reacts to.
#[derive(Debug)]
pub enum Event {
    /// A message of the client.
    Received(Frame),
    /// The client has closed its end.
    Closed,
    /// The analysis of a text.
    Analyzed {
        /// The document.
        uri: String,
        /// The revision of its text.
        revision: u64,
        /// What was found.
        outcome: Outcome,
    },
}

/// How far the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Started,
    Initialized,
    ShutDown,
}

/// A session with one client.
pub struct Server<W> {
    output: W,
    queue: Arc<Queue>,
    phase: Phase,
    client: Client,
    documents: HashMap<String, Open>,
    n_revisions: u64,
    /// Hovers that wait until their text is understood.
    waiting: Vec<Waiting>,
}

/// What the client wants.
pub struct Client {
    /// How it counts characters.
    pub encoding: Encoding,
    /// Whether it shows Markdown.
    pub markdown: bool,
    /// Whether diagnostics may refer to other places.
    pub related: bool,
}

/// An open document.
struct Open {
    text: String,
    /// The client's number of the version.
    version: i64,
    /// The server's number of the version. It is never used again, even if a document is closed and opened.
    revision: u64,
    /// What is known about the text, once it has been analyzed; `Some(None)` if it is not a model.
    understood: Option<Option<Box<Understood>>>,
}

struct Waiting {
    id: Id,
    uri: String,
    position: Position,
}

impl<W: Write> Server<W> {
    /// A session that has not begun.
    pub fn new(output: W, queue: Arc<Queue>) -> Self {
        let client = Client { encoding: Encoding::Utf16, markdown: false, related: false };
        let (documents, waiting) = (HashMap::new(), Vec::new());
        Self { output, queue, phase: Phase::Started, client, documents, n_revisions: 0, waiting }
    }

    /// Serves until the client says `exit` or closes its end. Returns whether it said `shutdown` before.
    pub fn run(mut self, events: &Receiver<Event>) -> io::Result<bool> {
        for event in events {
            match event {
                Event::Received(Frame::Refused(reason)) => self.respond(None, Err(Failure::parse(reason)))?,
                Event::Received(Frame::Body(body)) => match message::read(&body) {
                    Ok(message) if message.method.as_deref() == Some("exit") => break,
                    Ok(message) => self.receive(message)?,
                    Err((id, failure)) => self.respond(id.as_ref(), Err(failure))?,
                },
                Event::Closed => break,
                Event::Analyzed { uri, revision, outcome } => self.analyzed(&uri, revision, outcome)?,
            }
        }
        Ok(self.phase == Phase::ShutDown)
    }

    fn receive(&mut self, Message { id, method, params }: Message) -> io::Result<()> {
        match (id, method) {
            (Some(id), Some(method)) => match self.answer(&id, &method, params) {
                Ok(Some(result)) => self.respond(Some(&id), Ok(result)),
                Ok(None) => Ok(()),
                Err(failure) => self.respond(Some(&id), Err(failure)),
            },
            (None, Some(method)) if self.phase == Phase::Initialized => self.notice(&method, params),
            // The server sends no requests, so that there are no responses to wait for.
            _ => Ok(()),
        }
    }

    /// The answer to a request; `None` if it comes later.
    fn answer(&mut self, id: &Id, method: &str, params: Value) -> Result<Option<Value>, Failure> {
        match (self.phase, method) {
            (Phase::Started, "initialize") => Ok(Some(self.initialize(read(params)?))),
            (Phase::Started, _) => Err(Failure::not_initialized()),
            (Phase::ShutDown, _) => {
                Err(Failure::request("the server has been shut down; only `exit` may follow"))
            }
            (_, "initialize") => Err(Failure::request("the server has been initialized already")),
            (_, "shutdown") => {
                self.phase = Phase::ShutDown;
                Ok(Some(Value::Null))
            }
            (_, "textDocument/completion") => {
                let AboutPosition { text_document, position } = read(params)?;
                let text = &self.document(&text_document.uri)?.text;
                Ok(Some(value(&completion::list(text, position, self.client.encoding))))
            }
            (_, "textDocument/formatting") => {
                let AboutDocument { text_document } = read(params)?;
                let text = &self.document(&text_document.uri)?.text;
                Ok(Some(value(&formatting::edits(text, self.client.encoding))))
            }
            (_, "textDocument/hover") => {
                let AboutPosition { text_document, position } = read(params)?;
                self.document(&text_document.uri)?;
                let asked = Waiting { id: id.clone(), uri: text_document.uri, position };
                let answer = self.hover(&asked);
                if answer.is_none() {
                    self.waiting.push(asked);
                }
                Ok(answer)
            }
            _ => Err(Failure::method(method)),
        }
    }

    fn initialize(&mut self, params: InitializeParams) -> Value {
        let capabilities = params.capabilities;
        let has = |list: &[String], wanted: &str| list.iter().any(|offered| offered == wanted);
        self.client = Client {
            encoding: match has(&capabilities.general.position_encodings, Encoding::Utf8.name()) {
                true => Encoding::Utf8,
                false => Encoding::Utf16,
            },
            markdown: has(&capabilities.text_document.hover.content_format, "markdown"),
            related: capabilities.text_document.publish_diagnostics.related_information,
        };
        self.phase = Phase::Initialized;
        let incremental = 2;
        json!({
            "capabilities": {
                "positionEncoding": self.client.encoding.name(),
                "textDocumentSync": {"openClose": true, "change": incremental},
                "completionProvider": {"triggerCharacters": ["=", "{"]},
                "hoverProvider": true,
                "documentFormattingProvider": true,
            },
            "serverInfo": {"name": "prsl", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// Reacts to a notification. Nobody can be told that one is wrong, so wrong and unknown ones are ignored.
    fn notice(&mut self, method: &str, params: Value) -> io::Result<()> {
        match method {
            "textDocument/didOpen" => {
                let Ok(DidOpen { text_document }) = read(params) else { return Ok(()) };
                self.replace(text_document.uri, text_document.version, text_document.text)
            }
            "textDocument/didChange" => {
                let Ok(DidChange { text_document, content_changes }) = read(params) else { return Ok(()) };
                let Some(open) = self.documents.remove(&text_document.uri) else { return Ok(()) };
                let text =
                    content_changes.into_iter().fold(open.text, |text, change| self.changed(text, change));
                self.replace(text_document.uri, text_document.version, text)
            }
            "textDocument/didClose" => {
                let Ok(AboutDocument { text_document }) = read(params) else { return Ok(()) };
                self.documents.remove(&text_document.uri);
                self.give_up(&text_document.uri)?;
                let none = diagnostics::published(&text_document.uri, None, "", &[], &self.client);
                self.send(&message::notification("textDocument/publishDiagnostics", &none))
            }
            "$/cancelRequest" => {
                let Ok(Cancel { id }) = read(params) else { return Ok(()) };
                let Some(place) = self.waiting.iter().position(|waiting| waiting.id == id) else {
                    return Ok(());
                };
                self.waiting.remove(place);
                self.respond(Some(&id), Err(Failure::cancelled()))
            }
            _ => Ok(()),
        }
    }

    /// A text after a change.
    fn changed(&self, mut text: String, Change { range, text: new }: Change) -> String {
        match range {
            Some(range) => {
                let bytes = Lines::new(&text, self.client.encoding).bytes(range);
                text.replace_range(bytes, &new);
                text
            }
            None => new,
        }
    }

    /// Takes a new text of a document, and has it analyzed.
    fn replace(&mut self, uri: String, version: i64, text: String) -> io::Result<()> {
        self.n_revisions += 1;
        let revision = self.n_revisions;
        self.queue.push(Job { uri: uri.clone(), revision, text: text.clone() });
        self.give_up(&uri)?;
        self.documents.insert(uri, Open { text, version, revision, understood: None });
        Ok(())
    }

    /// Answers the hovers that wait for a text which is gone.
    fn give_up(&mut self, uri: &str) -> io::Result<()> {
        let gone = self.take_waiting(uri);
        gone.iter().try_for_each(|it| self.respond(Some(&it.id), Err(Failure::modified())))
    }

    /// The hovers that wait for a document. They wait no more.
    fn take_waiting(&mut self, uri: &str) -> Vec<Waiting> {
        let (taken, left) = std::mem::take(&mut self.waiting).into_iter().partition(|it| it.uri == uri);
        self.waiting = left;
        taken
    }

    /// Takes an outcome of the analysis, unless the text has changed.
    fn analyzed(&mut self, uri: &str, revision: u64, outcome: Outcome) -> io::Result<()> {
        let Some(open) = self.documents.get_mut(uri).filter(|open| open.revision == revision) else {
            return Ok(());
        };
        match outcome {
            Outcome::Understood(understood) => {
                open.understood = Some(understood);
                self.take_waiting(uri).iter().try_for_each(|it| {
                    let hover = self.hover(it).unwrap_or_default();
                    self.respond(Some(&it.id), Ok(hover))
                })
            }
            Outcome::Checked(findings) => {
                let published =
                    diagnostics::published(uri, Some(open.version), &open.text, &findings, &self.client);
                self.send(&message::notification("textDocument/publishDiagnostics", &published))
            }
        }
    }

    /// The hover at a position; `None` if the text has not been analyzed yet.
    fn hover(&self, Waiting { uri, position, .. }: &Waiting) -> Option<Value> {
        let open = self.documents.get(uri)?;
        let understood = open.understood.as_ref()?;
        let offset = Lines::new(&open.text, self.client.encoding).byte(*position);
        Some(value(&hover::at(&open.text, understood.as_deref(), offset, self.client.markdown)))
    }

    fn document(&self, uri: &str) -> Result<&Open, Failure> {
        self.documents.get(uri).ok_or_else(|| Failure::params(format!("`{uri}` is not open")))
    }

    fn respond(&mut self, id: Option<&Id>, result: Result<Value, Failure>) -> io::Result<()> {
        self.send(&message::response(id, result))
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        frame::write(&mut self.output, &serde_json::to_vec(message)?)
    }
}

/// The parameters of a method.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|error| Failure::params(format!("wrong parameters: {error}")))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The answers of a session without analysis to these messages, and the outcomes that come after them.
    fn answers(messages: &[Value], outcomes: Vec<(u64, Outcome)>) -> Vec<Value> {
        let (events, received) = mpsc::channel();
        let initialize = json!({"id": 0, "method": "initialize", "params": {}});
        for message in std::iter::once(&initialize).chain(messages) {
            let body = serde_json::to_vec(message).expect("JSON");
            events.send(Event::Received(Frame::Body(body))).expect("it is received");
        }
        for (revision, outcome) in outcomes {
            events.send(Event::Analyzed { uri: "a".to_owned(), revision, outcome }).expect("it is received");
        }
        drop(events);
        let mut output = Vec::new();
        Server::new(&mut output, Arc::default()).run(&received).expect("memory can be written");
        let mut input = &output[..];
        let bodies = std::iter::from_fn(|| frame::read(&mut input).expect("memory can be read"));
        let read = |frame: Frame| match frame {
            Frame::Body(body) => serde_json::from_slice(&body).expect("JSON"),
            Frame::Refused(reason) => panic!("{reason}"),
        };
        bodies.skip(1).map(read).collect()
    }

    fn open(text: &str) -> Value {
        let document = json!({"uri": "a", "languageId": "prsl", "version": 1, "text": text});
        json!({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    }

    fn hover(id: u64) -> Value {
        let params = json!({"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 6}});
        json!({"id": id, "method": "textDocument/hover", "params": params})
    }

    #[test]
    fn hovers_wait_for_the_analysis_and_other_requests_do_not() {
        let params = json!({"textDocument": {"uri": "a"}});
        let formatting = json!({"id": 2, "method": "textDocument/formatting", "params": params});
        let old = (0, Outcome::Checked(Vec::new()));
        let understood = (1, Outcome::Understood(None));
        let answers = answers(&[open("label a\n"), hover(1), formatting], vec![old, understood]);
        assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!(2), &json!([])));
        assert_eq!(answers[1]["id"], 1);
        assert_eq!(answers.len(), 2, "an old analysis publishes nothing: {answers:?}");
    }

    #[test]
    fn a_hover_whose_text_is_gone_or_that_is_cancelled_fails() {
        let cancel = json!({"method": "$/cancelRequest", "params": {"id": 1}});
        let close = json!({"method": "textDocument/didClose", "params": {"textDocument": {"uri": "a"}}});
        let change =
            json!({"textDocument": {"uri": "a", "version": 2}, "contentChanges": [{"text": "label b"}]});
        let change = json!({"method": "textDocument/didChange", "params": change});
        for (then, code) in [(cancel, -32800), (change, -32801), (close, -32801)] {
            let answers = answers(&[open("label a\n"), hover(1), then], vec![(1, Outcome::Understood(None))]);
            assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(1), &json!(code)));
        }
    }
}
