//! Tests of the service through its router, without a socket.

mod answers;
mod faults;
mod fuzzing;
mod hostile;
mod posted;
mod protocol;
mod reload;
mod security;
mod server;
mod writable;
