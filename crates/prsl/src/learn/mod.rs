//! Learning: rules, calibrators and typical combinations from rows whose truth is known, all or in part.

mod adam;
mod calibration;
mod clique_tree;
mod examples;
mod factor;
mod objective;
mod scopes;
mod sweep;
mod thin;
mod typical;

pub use examples::Examples;
pub use thin::{Learned, Thin};
