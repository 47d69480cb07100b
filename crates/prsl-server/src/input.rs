//! Bodies of requests: read within the limits on size and time.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;
use crate::service::Service;
use crate::settings::RequestLimits;

/// The headers and the whole body of a request.
pub(crate) struct Input {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The share of the memory for bodies.
    _buffer: OwnedSemaphorePermit,
}

/// The memory for the bodies of all requests.
pub(crate) struct Buffers {
    blocks: Arc<Semaphore>,
}

/// Bytes of a block of memory for bodies.
const BLOCK: usize = 4096;

impl Buffers {
    pub(crate) fn new(limits: &RequestLimits) -> Self {
        // One body of the largest size always fits.
        let bytes = limits.buffered_bytes.max(limits.body_bytes);
        let n_blocks = bytes.div_ceil(BLOCK).min(Semaphore::MAX_PERMITS);
        Self { blocks: Arc::new(Semaphore::new(n_blocks)) }
    }

    /// Memory for a body of up to this many bytes.
    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let n_blocks = u32::try_from(bytes.div_ceil(BLOCK)).unwrap_or(u32::MAX);
        Arc::clone(&self.blocks).try_acquire_many_owned(n_blocks).map_err(|_| {
            Problem::busy("the bodies of other requests take all memory for bodies; try again after a second")
        })
    }
}

impl FromRequest<Service> for Input {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Service) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let limits = &service.settings().limits;
        let given = parts.headers.get(header::CONTENT_LENGTH);
        let given = given.and_then(|given| given.to_str().ok()?.parse::<u64>().ok());
        if given.is_some_and(|given| given > limits.body_bytes as u64) {
            return Err(too_large(limits));
        }
        // A body of unknown length may have any length up to the limit.
        let most = given.and_then(|given| usize::try_from(given).ok()).unwrap_or(limits.body_bytes);
        let buffer = service.buffers().take(most)?;
        let body = tokio::time::timeout(limits.body_time, read(body, limits)).await;
        let body = body.map_err(|_| too_slow(limits))??;
        Ok(Self { headers: parts.headers, body, _buffer: buffer })
    }
}

impl Input {
    /// Returns an error unless the body says that it is JSON. Pages of other sites cannot send JSON unasked.
    pub(crate) fn require_json(&self) -> Result<(), Problem> {
        let given = self.headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok());
        let essence = given.unwrap_or("").split(';').next().unwrap_or("").trim();
        if essence.eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        let detail = "the body must be JSON, with the header `Content-Type: application/json`";
        Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "MediaType", detail))
    }
}

async fn read(body: Body, limits: &RequestLimits) -> Result<Bytes, Problem> {
    match Limited::new(body, limits.body_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limits)),
        Err(_) => {
            let detail = "the body ended before it was complete; send it again";
            Err(Problem::new(StatusCode::BAD_REQUEST, "Body", detail))
        }
    }
}

fn too_large(limits: &RequestLimits) -> Problem {
    let limit = limits.body_bytes;
    let detail = format!("the body has more than {limit} bytes, the limit; send fewer rows at a time");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BodySize", detail)
}

fn too_slow(limits: &RequestLimits) -> Problem {
    let seconds = limits.body_time.as_secs_f64();
    let detail =
        format!("the body took longer than {seconds} s, the limit; send it faster, or less at a time");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "BodyTime", detail)
}
