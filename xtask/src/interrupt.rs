//! Ctrl-C as a value: what was made must be removed, and the default action of the signal removes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether somebody wants this to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on a signal to end is only noted.
    pub(crate) fn take_over() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("set a signal handler")?;
        }
        Ok(Self(flag))
    }

    /// An error once somebody wants this to end: on its way up, what was made is removed.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(!self.0.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }
}
