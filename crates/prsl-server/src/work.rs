//! Work off the async threads: bounded queues, a time limit, and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::problem::Problem;
use crate::settings::RequestLimits;

/// The queue of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Requests about models that are served.
    Served,
    /// Requests that bring a model along. Their model is compiled first, which takes longer and cannot be interrupted,
    /// so they never take all workers.
    Posted,
}

/// Two queues and their workers.
pub(crate) struct Workers {
    served: Queue,
    posted: Queue,
    time: Duration,
}

struct Queue {
    /// Requests that may run or wait.
    admitted: Arc<Semaphore>,
    /// Requests that may run.
    running: Arc<Semaphore>,
}

impl Queue {
    fn new(requests: usize, workers: usize) -> Self {
        let semaphore = |n: usize| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)));
        Self { admitted: semaphore(requests), running: semaphore(workers) }
    }
}

/// Tells running work whether anybody still waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    is_cancelled: Arc<AtomicBool>,
    deadline: Instant,
    time: Duration,
}

impl Watch {
    fn new(time: Duration) -> Self {
        Self { is_cancelled: Arc::default(), deadline: Instant::now() + time, time }
    }

    /// Returns an error if the request was cancelled or its time is over. Work calls it between chunks of rows.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.is_cancelled.load(Ordering::Relaxed) || Instant::now() >= self.deadline {
            return Err(self.over_time());
        }
        Ok(())
    }

    fn over_time(&self) -> Problem {
        let seconds = self.time.as_secs_f64();
        let detail = format!(
            "the answer takes longer than the limit of {seconds} s; send fewer rows, or a model with a smaller plan"
        );
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "TimeLimit", detail)
    }
}

/// Cancels the work when the request is dropped: the client is gone, or the time is over.
struct CancelOnDrop(Watch);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }
}

impl Workers {
    pub(crate) fn new(limits: &RequestLimits) -> Self {
        Self {
            served: Queue::new(limits.requests, limits.workers),
            posted: Queue::new(limits.posted.requests, (limits.workers / 2).max(1)),
            time: limits.time,
        }
    }

    /// Runs a job on a thread of its own. Returns 503 if the queue is full, or if the job did not start in time.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        job: impl FnOnce(&Watch) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let queue = match lane {
            Lane::Served => &self.served,
            Lane::Posted => &self.posted,
        };
        let Ok(admitted) = Arc::clone(&queue.admitted).try_acquire_owned() else {
            return Err(Problem::busy("too many requests wait already; try again after a second"));
        };
        let watch = Watch::new(self.time);
        let Ok(running) = timeout_at(watch.deadline, Arc::clone(&queue.running).acquire_owned()).await else {
            return Err(Problem::busy("no worker was free within the time limit; try again after a second"));
        };
        let running = running.map_err(|_| Problem::internal())?;
        let guard = CancelOnDrop(watch.clone());
        let done = spawn(job, watch.clone(), [admitted, running]);
        let done = timeout_at(watch.deadline, done).await.map_err(|_| watch.over_time())?;
        drop(guard);
        done.unwrap_or_else(|error| {
            tracing::error!(%error, "a request failed");
            Err(Problem::internal())
        })
    }

    /// The number of requests that run or wait.
    pub(crate) fn busy(&self, limits: &RequestLimits) -> usize {
        let busy = |queue: &Queue, most: usize| most.saturating_sub(queue.admitted.available_permits());
        busy(&self.served, limits.requests) + busy(&self.posted, limits.posted.requests)
    }
}

/// Starts a job. It keeps its permits until it ends, even if nobody waits any more.
fn spawn<T: Send + 'static>(
    job: impl FnOnce(&Watch) -> Result<T, Problem> + Send + 'static,
    watch: Watch,
    permits: [OwnedSemaphorePermit; 2],
) -> tokio::task::JoinHandle<Result<T, Problem>> {
    tokio::task::spawn_blocking(move || {
        let result = watch.check().and_then(|()| job(&watch));
        drop(permits);
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::settings::PostedLimits;

    fn workers(requests: usize, workers: usize, time: Duration) -> Arc<Workers> {
        let posted = PostedLimits { requests: 1, ..PostedLimits::default() };
        let limits = RequestLimits { requests, workers, time, posted, ..RequestLimits::default() };
        Arc::new(Workers::new(&limits))
    }

    /// A job that waits until the sender is dropped or used.
    fn waiting(receiver: mpsc::Receiver<()>) -> impl FnOnce(&Watch) -> Result<(), Problem> + Send {
        move |_| {
            let _ = receiver.recv();
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_full_queue_refuses_more_and_the_other_queue_does_not() {
        let workers = workers(1, 1, Duration::from_secs(60));
        let (end, receiver) = mpsc::channel();
        let shared = Arc::clone(&workers);
        let first = tokio::spawn(async move { shared.run(Lane::Served, waiting(receiver)).await });
        while workers.served.running.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = workers.run(Lane::Served, |_| Ok(())).await.expect_err("the queue is full");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let response = axum::response::IntoResponse::into_response(refused);
        assert_eq!(response.headers()["retry-after"], "1");
        assert!(workers.run(Lane::Posted, |_| Ok(())).await.is_ok());
        drop(end);
        assert!(first.await.expect("no panic").is_ok());
        assert!(workers.run(Lane::Served, |_| Ok(())).await.is_ok());
    }

    #[tokio::test]
    async fn a_dropped_request_cancels_its_work() {
        let workers = workers(4, 1, Duration::from_secs(60));
        let (started, is_started) = mpsc::channel();
        let (ended, is_ended) = mpsc::channel();
        let shared = Arc::clone(&workers);
        let job = move |watch: &Watch| {
            let _ = started.send(());
            while watch.check().is_ok() {
                std::thread::yield_now();
            }
            let _ = ended.send(());
            Ok(())
        };
        let request = tokio::spawn(async move { shared.run(Lane::Served, job).await });
        while is_started.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        request.abort();
        assert!(request.await.is_err());
        is_ended.recv().expect("the work has noticed");
        assert!(workers.run(Lane::Served, |_| Ok(())).await.is_ok());
    }

    #[tokio::test]
    async fn work_beyond_the_time_limit_is_refused_and_keeps_its_worker_until_it_ends() {
        let workers = workers(2, 1, Duration::from_millis(1));
        let (end, receiver) = mpsc::channel();
        let refused = workers.run(Lane::Served, waiting(receiver)).await.expect_err("it takes too long");
        assert!(matches!(
            refused.status(),
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::SERVICE_UNAVAILABLE
        ));
        drop(end);
        let panicked = workers.run(Lane::Posted, |_| -> Result<(), Problem> { panic!("on purpose") }).await;
        assert!(panicked.is_err());
    }
}
