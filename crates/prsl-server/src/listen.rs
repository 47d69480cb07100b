//! Listens, serves connections, reloads models and ends gracefully.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use crate::app;
use crate::service::Service;
use crate::settings::Settings;
use crate::startup::StartError;

/// Time between two looks at the model files.
const POLL: Duration = Duration::from_millis(200);

/// Time for the headers of a request, and for the next request on an open connection.
const HEADER_TIME: Duration = Duration::from_secs(30);

/// Time in which connections that are in use end by themselves: their next answer says that it is the last.
const DRAIN: Duration = Duration::from_secs(1);

/// Time between two updates of the metrics' histograms.
const UPKEEP: Duration = Duration::from_secs(5);

/// Returns an error if other machines can reach an address and the service has no token, unless `no_auth` says so.
pub fn check_address(address: SocketAddr, settings: &Settings, no_auth: bool) -> Result<(), StartError> {
    if address.ip().is_loopback() || settings.token.is_some() || no_auth {
        return Ok(());
    }
    Err(StartError::Open { address })
}

/// Listens on an address until the process is told to end, by SIGTERM or SIGINT. A second signal ends it at once.
/// `announce` gets the address, whose port the system has chosen if it was 0.
pub fn run(
    service: Service,
    address: SocketAddr,
    announce: impl FnOnce(SocketAddr),
) -> Result<(), StartError> {
    let failed = |cause| StartError::Listen { address: address.to_string(), cause };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        let ended = signals()?;
        announce(listener.local_addr()?);
        serve(service, listener, ended).await
    });
    // Work that nobody waits for any more does not delay the end.
    runtime.shutdown_background();
    served.map_err(failed)
}

/// Resolves at the first signal. The second one ends the process.
#[cfg(unix)]
fn signals() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(1);
        });
    })
}

#[cfg(not(unix))]
fn signals() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Serves until `ended` resolves. Then all requests that were accepted are answered.
///
/// After the signal, connections are still accepted for a second, and each answer closes its connection. Connections
/// that stay idle are closed a second later.
pub async fn serve(
    service: Service,
    listener: TcpListener,
    ended: impl Future<Output = ()>,
) -> io::Result<()> {
    let background = [tokio::spawn(reload(service.clone())), tokio::spawn(keep_up(service.clone()))];
    let connections = Connections::new(&service);
    tokio::select! {
        () = connections.accept_all(&listener) => {}
        () = ended => {}
    }
    service.drain();
    tracing::info!(connections = connections.open(), "ending: requests that were accepted are answered");
    // New connections end after their first answer, so nobody who has connected by now is left without one.
    let drained = Instant::now() + DRAIN;
    tokio::select! {
        () = connections.accept_all(&listener) => {}
        _ = connections.closed_by(drained) => {}
    }
    connections.accept_waiting(&listener).await;
    drop(listener);
    // The last ones have sent their request by now, or are idle.
    if !connections.closed_by(Instant::now() + DRAIN).await {
        connections.close_idle();
    }
    let limits = &service.settings().limits;
    if !connections.closed_by(Instant::now() + limits.time + limits.body_time).await {
        tracing::warn!(connections = connections.open(), "some connections did not end in time");
    }
    background.iter().for_each(tokio::task::JoinHandle::abort);
    tracing::info!("ended");
    Ok(())
}

/// The open connections.
struct Connections {
    app: Router,
    permits: Arc<Semaphore>,
    open: Arc<AtomicUsize>,
    all_closed: Arc<Notify>,
    /// Becomes true when idle connections are to be closed.
    ending: watch::Sender<bool>,
}

impl Connections {
    fn new(service: &Service) -> Self {
        let most = service.settings().limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            app: app(service.clone()),
            permits: Arc::new(Semaphore::new(most)),
            open: Arc::default(),
            all_closed: Arc::default(),
            ending: watch::Sender::new(false),
        }
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Accepts connections until it is dropped.
    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => self.spawn(stream, permit),
                Err(error) => {
                    // Too many open files, for example. Connections that end make room.
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Accepts the connections that the system has accepted already.
    async fn accept_waiting(&self, listener: &TcpListener) {
        while let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await {
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else { return };
            self.spawn(stream, permit);
        }
    }

    fn spawn(&self, stream: TcpStream, permit: tokio::sync::OwnedSemaphorePermit) {
        self.open.fetch_add(1, Ordering::AcqRel);
        let (app, mut ending) = (self.app.clone(), self.ending.subscribe());
        let (open, all_closed) = (Arc::clone(&self.open), Arc::clone(&self.all_closed));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
            let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
            tokio::pin!(connection);
            let ended = async { ending.wait_for(|ending| *ending).await.is_ok() };
            tokio::select! {
                _ = connection.as_mut() => {}
                _ = ended => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.as_mut().await;
                }
            }
            drop(permit);
            if open.fetch_sub(1, Ordering::AcqRel) == 1 {
                all_closed.notify_one();
            }
        });
    }

    /// Closes idle connections from now on. Others are closed after their answer.
    fn close_idle(&self) {
        self.ending.send_replace(true);
    }

    /// Waits until no connection is open. Returns false if some still are at the deadline.
    async fn closed_by(&self, deadline: Instant) -> bool {
        while self.open() > 0 {
            if timeout_at(deadline, self.all_closed.notified()).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// Looks at the model files again and again.
async fn reload(service: Service) {
    let mut ticks = interval(POLL);
    loop {
        ticks.tick().await;
        let service = service.clone();
        let _ = tokio::task::spawn_blocking(move || service.refresh()).await;
    }
}

async fn keep_up(service: Service) {
    let mut ticks = interval(UPKEEP);
    loop {
        ticks.tick().await;
        service.metrics().upkeep();
    }
}
