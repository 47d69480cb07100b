//! A running server, and a small client of HTTP/1.1.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::thread::JoinHandle;

use crate::runner::Folder;

/// A running `prsl serve`. It is killed when the test ends.
pub struct Server {
    pub folder: Folder,
    pub address: String,
    process: Child,
    log: Option<JoinHandle<String>>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Server {
    /// Starts the command in a folder, on a free port.
    pub fn start(folder: Folder, arguments: &str) -> Server {
        let mut command = folder.command(&format!("serve {arguments} --addr 127.0.0.1:0"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the command starts");
        let stderr = process.stderr.take().expect("a pipe");
        let read = |mut stderr: ChildStderr| {
            let mut log = String::new();
            let _ = stderr.read_to_string(&mut log);
            log
        };
        let log = Some(std::thread::spawn(move || read(stderr)));
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("a line");
        let address = line.strip_prefix("listening on http://").and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("`{line}` names no address")).to_owned();
        Server { folder, address, process, log }
    }

    /// Tells the server to end, as a process manager does.
    pub fn terminate(&self) {
        let id = self.process.id().to_string();
        let status = std::process::Command::new("kill").args(["-TERM", &id]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Ends the server and returns its log.
    pub fn stop(&mut self) -> String {
        self.terminate();
        self.wait()
    }

    /// Waits until the server has ended, and returns its log.
    pub fn wait(&mut self) -> String {
        let status = self.process.wait().expect("it ends");
        let log = self.log.take().expect("it ends once").join().expect("the log is read");
        assert!(status.success(), "{status}: {log}");
        log
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, json: &serde_json::Value) -> Answer {
        self.send("POST", path, &[], json.to_string().as_bytes())
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = Connection::open(&self.address).expect("it accepts connections");
        connection.send(method, path, headers, body).expect("a whole request");
        connection.receive().expect("a whole answer")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A connection that takes one request after the other.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: &str) -> io::Result<Connection> {
        Ok(Connection { stream: BufReader::new(TcpStream::connect(address)?) })
    }

    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            head.push_str("Content-Type: application/json\r\n");
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat())
    }

    pub fn receive(&mut self) -> io::Result<Answer> {
        let incomplete = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is incomplete");
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(incomplete)?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
                None if line == "\r\n" => break,
                None => return Err(incomplete()),
            }
        }
        let answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { body, ..answer })
    }
}
