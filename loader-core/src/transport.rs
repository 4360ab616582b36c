//! The second of the three traits: how frames cross the distance. What is in a frame is no concern of a transport.

use std::{
    fmt::{Debug, Display},
    time::Instant,
};

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::{error::Result, store::Lane};

/// How one call may use the link.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions {
    /// When answers stop being of use: the stream then ends with [`crate::ErrorKind::Timeout`].
    pub deadline: Option<Instant>,
    /// Bytes of answers that the peer may have under way before the caller takes them; 0 leaves it to the transport.
    /// A transport never holds more than this for the call, plus one answer.
    pub credit_bytes: u64,
    /// The connection to use; `None` lets the transport choose.
    pub lane: Option<Lane>,
}

/// How transports differ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportCapability {
    /// The transport's scheme: `h3`, `tcp`, `rdma`.
    pub scheme: &'static str,
    /// Connections that fail and queue independently; at least 1.
    pub lanes: u16,
    /// Largest answer frame, bytes.
    pub max_frame_bytes: u64,
}

impl TransportCapability {
    /// One lane and frames up to 4 GiB; set what differs.
    pub fn new(scheme: &'static str) -> Self {
        Self {
            scheme,
            lanes: 1,
            max_frame_bytes: 1 << 32,
        }
    }
}

/// The client's end of a link.
///
/// # Contract
/// - One call is one request frame and any number of answer frames, which come whole and may come in any order.
/// - The stream ends after the last answer; an `Err` is its last element. Calls are independent: one that fails or is slow
///   does not end or hold up another on a healthy lane.
/// - Backpressure: a caller that does not poll stops the peer once `credit_bytes` are under way.
/// - An answer owns its memory; for RDMA that is the registered slot, given back when the last `Bytes` of it is dropped.
///
/// # Cancellation
/// Dropping the stream tells the peer to stop and leaks no credit, slot or connection.
pub trait Transport: Debug + Display + Send + Sync + 'static {
    /// What this transport can do.
    fn capability(&self) -> TransportCapability;
    /// Sends a request and yields its answers.
    fn call(&self, request: Bytes, options: CallOptions) -> BoxStream<'static, Result<Bytes>>;
}
