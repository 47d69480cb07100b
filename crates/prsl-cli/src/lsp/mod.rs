//! `prsl lsp`: a language server for editors.
//!
//! One thread reads messages, one answers them, and one analyzes texts. Answers that need inference wait for the analysis;
//! all others do not.

mod analysis;
mod completion;
mod diagnostics;
mod formatting;
mod frame;
mod hover;
mod message;
mod server;
mod text;
mod types;

use std::io::{self, BufReader};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use anyhow::{Context, Result};
use prsl_server::PostedLimits;

use self::analysis::{AnalysisLimits, Queue};
use self::server::{Event, Server};
use crate::arguments::MemoryLimit;

/// Messages that wait to be answered. A client that sends more waits, too.
const MAX_WAITING: usize = 64;

/// Serve an editor: errors as you type, completion, formatting, marginals
#[derive(Debug, clap::Args)]
#[command(after_help = "\
This is a language server. It speaks the Language Server Protocol on standard input and output, and is started by an editor \
for files that end with `.prsl`:
  VS Code    install the extension in the folder `editors/vscode`
  Neovim     vim.lsp.config.prsl = { cmd = { 'prsl', 'lsp' }, filetypes = { 'prsl' } }
             vim.lsp.enable('prsl')
  Helix      [language-server.prsl] command = 'prsl', args = ['lsp'] in languages.toml
  Emacs      (add-to-list 'eglot-server-programs '(prsl-mode . (\"prsl\" \"lsp\")))
`docs/editors.md` has more.

It shows the findings of `prsl check`, formats as `prsl fmt`, and completes keywords, labels and categories. The hover of a label \
has its marginal without evidence, and that of a rule its sentence and the cost of inference. Costly questions are not answered: \
memory and counted work are limited.

Exits with 0 after `shutdown` and `exit`, and with 1 if the editor ends otherwise.")]
pub struct Arguments {
    /// Accepted because some editors add it; the server always uses standard input and output
    #[arg(long, hide_short_help = true)]
    stdio: bool,
    #[command(flatten)]
    memory: MemoryLimit,
}

impl Arguments {
    /// Serves until the editor ends the session.
    pub fn run(self) -> Result<ExitCode> {
        // An editor is as careful with a text as the service with a model that a request brings along.
        let limits = AnalysisLimits { memory: self.memory.limits(), work: PostedLimits::default().work };
        let (events, received) = mpsc::sync_channel(MAX_WAITING);
        let queue = Arc::new(Queue::default());
        let (outcomes, jobs) = (events.clone(), Arc::clone(&queue));
        thread::Builder::new()
            .name("analysis".to_owned())
            .spawn(move || analysis::run(&jobs, limits, &outcomes))
            .context("cannot start a thread")?;
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read_all(&events))
            .context("cannot start a thread")?;
        let is_done = Server::new(io::stdout().lock(), queue).run(&received)?;
        Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Reads messages until the input ends.
fn read_all(events: &SyncSender<Event>) {
    let mut input = BufReader::new(io::stdin().lock());
    while let Ok(Some(frame)) = frame::read(&mut input) {
        if events.send(Event::Received(frame)).is_err() {
            return;
        }
    }
    // If nobody listens, the session has ended.
    let _ = events.send(Event::Closed);
}
