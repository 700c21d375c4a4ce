//! Where a command reads: this host, or captured trees that stand for moments of one.

use std::path::{Path, PathBuf};

use quell_engine::snapshot::{Snapshot, Window};
use quell_host::{Depth, Machine};

use crate::error::{Exit, Failure, path_text};

/// Where a command reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// This host, now.
    Live,
    /// Two moments of a host.
    Moments(PathBuf, PathBuf),
    /// One moment of a host: no rates.
    Moment(PathBuf),
}

impl Source {
    /// What `--root` means: not given, once, twice. A directory with `t0` and `t1` in it is two moments.
    ///
    /// # Errors
    /// Given more than twice.
    pub(crate) fn of(roots: &[PathBuf]) -> Result<Self, Failure> {
        match roots {
            [] => Ok(Self::Live),
            [dir] if dir.join("t0").is_dir() && dir.join("t1").is_dir() => {
                Ok(Self::moments(&dir.join("t0"), &dir.join("t1")))
            }
            [dir] => Ok(Self::Moment(dir.clone())),
            [t0, t1] => Ok(Self::moments(t0, t1)),
            _ => Err(Failure::usage("--root was given more than twice: two moments make the rates")),
        }
    }

    pub(crate) fn moments(t0: &Path, t1: &Path) -> Self {
        Self::Moments(t0.into(), t1.into())
    }
}

impl Source {
    /// The machine at the latest moment, for what one moment tells.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn latest(&self) -> Result<Machine, Failure> {
        match self {
            Self::Live => live(),
            Self::Moments(_, dir) | Self::Moment(dir) => under(dir),
        }
    }
}

/// What was asked for, with every link followed where it is a path: `/dev/disk/by-id/...` names no device itself.
pub(crate) fn followed(machine: &mut Machine, text: &str) -> String {
    if !text.starts_with('/') {
        return text.to_owned();
    }
    String::from_utf8_lossy(&machine.real_path(text.as_bytes())).into_owned()
}

/// Two captured moments, as the window between them.
///
/// # Errors
/// A tree cannot be opened, or the second is not later than the first.
pub(crate) fn between(t0: &Path, t1: &Path) -> Result<Window, Failure> {
    let window = Window { t0: moment(t0)?, looks: Vec::new(), t1: moment(t1)?, pasted: None };
    let order = window.t1.clock.system.0.cmp(&window.t0.clock.system.0);
    if order.is_lt() {
        let what = format!("the second moment is earlier than the first: {}", path_text(t1));
        return Err(Failure::usage(what).hint("give the earlier tree first, both of the same boot"));
    }
    Ok(window)
}

/// One captured moment.
///
/// # Errors
/// The tree cannot be opened.
pub(crate) fn moment(dir: &Path) -> Result<Snapshot, Failure> {
    Ok(under(dir)?.snapshot(Depth::Full))
}

fn under(dir: &Path) -> Result<Machine, Failure> {
    Machine::under(dir).map_err(|error| Failure::host(Exit::Usage, &error).hint("quell capture DIR writes such a tree"))
}

/// This host.
///
/// # Errors
/// Its root cannot be opened.
pub(crate) fn live() -> Result<Machine, Failure> {
    Machine::live().map_err(|error| Failure::host(Exit::NotJudged, &error))
}
