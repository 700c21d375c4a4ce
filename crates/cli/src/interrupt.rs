//! Ctrl-C: the first one ends a watch, the second one ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// Whether the user asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes Ctrl-C over from here on.
    ///
    /// # Errors
    /// The kernel refuses a signal handler.
    pub(crate) fn take_over() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        // In this order: the second signal finds the flag that the first one set.
        flag::register_conditional_default(SIGINT, Arc::clone(&asked))?;
        flag::register(SIGINT, Arc::clone(&asked))?;
        Ok(Self(asked))
    }

    /// Whether the user asked to stop.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
