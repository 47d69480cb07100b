//! `prsl serve`: models over HTTP.

mod browser;

use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use prsl_server::{LogFormat, RequestLimits, Service, Settings, Token};

use crate::arguments::{MemoryLimit, seconds};
use crate::memory::Memory;
use crate::output;

/// Serve models over HTTP: predictions, explanations, checks, and the Open Inference Protocol
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl serve --open warehouse.prsl
  prsl serve --dir models --writable
  prsl serve --dir models --addr 0.0.0.0:8080 --token-file token
  curl --json '{\"model\": \"warehouse\", \"beliefs\": {\"feet\": \"standing\"}}' localhost:8080/api/v1/predict

A model's name is its file's name without the ending. `/` is a page to explore models in a browser, `/docs` describes all requests, `/v2` is the Open Inference Protocol \
version 2, and `/metrics` is for Prometheus. Files are loaded again when they change; if a file has errors, the old version \
stays, and `/readyz` and the log say why.

Other machines cannot reach the default address. For another one, a token is needed, which requests send as \
`Authorization: Bearer TOKEN`; `--no-auth` lets everybody in.

SIGTERM ends the service after it has answered all requests that it has accepted.")]
pub struct Arguments {
    /// The models, `.prsl` text or JSON [default: the warehouse example, unless `--dir` is given]
    models: Vec<PathBuf>,
    /// Also serve all models of this folder, including those added later
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The address to listen on; port 0 is a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    addr: SocketAddr,
    /// A file with the token that requests must carry
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Answer everybody who can reach the address
    #[arg(long, conflicts_with = "token_file")]
    no_auth: bool,
    /// Let requests write and delete models of the folder; old versions are kept in `.versions`
    #[arg(long, requires = "dir")]
    writable: bool,
    #[command(flatten)]
    memory: MemoryLimit,
    /// The maximum number of rows in a request
    #[arg(long, value_name = "N", default_value_t = RequestLimits::default().rows)]
    max_rows: usize,
    /// The maximum size of a request
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    max_body: Memory,
    /// The maximum time for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    max_time: Duration,
    /// The maximum number of requests that run or wait; more are answered with 503
    #[arg(long, value_name = "N", default_value_t = RequestLimits::default().requests)]
    max_requests: usize,
    /// The number of requests that run at the same time [default: one per core, at least 2]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// The format of the log on standard error [default: text on a terminal, else json]
    #[arg(long)]
    log: Option<Log>,
}

/// The address at which a browser on this machine reaches the service.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) if address.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        SocketAddr::V6(_) if address.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Log {
    /// One line of text for each event
    Text,
    /// One JSON object for each event
    Json,
}

impl Arguments {
    /// Serves until the process is told to end.
    pub fn run(self) -> Result<ExitCode> {
        let settings = self.settings()?;
        prsl_server::check_address(self.addr, &settings, self.no_auth)?;
        prsl_server::start_log(match self.log {
            Some(Log::Json) => LogFormat::Json,
            Some(Log::Text) => LogFormat::Text,
            None if io::stderr().is_terminal() => LogFormat::Text,
            None => LogFormat::Json,
        });
        let service = Service::open(&self.models, self.dir.as_deref(), settings)?;
        let names = service.model_names().join(", ");
        let announce = |address: SocketAddr| {
            // A closed standard output is no reason to end.
            let _ = output::print(&format!("listening on http://{address}, serving {names}\n"));
            if self.open && !browser::open(&format!("http://{}/", reachable(address))) {
                let _ = output::print(&format!(
                    "no browser could be started; open http://{}/ in one\n",
                    reachable(address)
                ));
            }
        };
        prsl_server::run(service, self.addr, announce)?;
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self) -> Result<Settings> {
        let default = RequestLimits::default();
        let limits = RequestLimits {
            rows: self.max_rows,
            body_bytes: usize::try_from(self.max_body.bytes).unwrap_or(usize::MAX),
            time: self.max_time,
            requests: self.max_requests,
            workers: self.workers.unwrap_or(default.workers),
            ..default
        };
        let token = self.token_file.as_deref().map(Token::read).transpose()?;
        let local_host_only = token.is_none() && !self.no_auth;
        let memory = self.memory.limits().memory;
        Ok(Settings { token, local_host_only, writable: self.writable, limits, memory })
    }
}
