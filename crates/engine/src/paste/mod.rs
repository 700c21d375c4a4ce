//! From what a paste says to what the rules look at.
//!
//! The kernel files of a paste were read as a small captured tree, so a [`Window`] of them is there already. [`join`]
//! adds what is no kernel file: the devices that lsblk tells of, the rates that iostat has made, the runs of fio. The
//! rules then judge it as they judge a host, and do not know where a rate came from. Two things are taken for granted,
//! and said: readings whose time is not told are a second apart, and of several blocks of a table the worst stretch of
//! two or more is judged, since a mean over a quiet night hides the bad minute.

mod devices;
mod rates;
mod series;

use quell_paste::{Pasted, Statement};

use crate::rates::Rates;
use crate::snapshot::{CgroupMode, Window};

/// A paste, ready to be judged.
#[derive(Clone, Debug)]
pub struct Joined {
    /// What was read, and what the paste says beside.
    pub window: Window,
    /// What that is per second.
    pub rates: Rates,
    /// What was judged of it, for people: `blocks 6 to 10 of 10`.
    pub judged: Vec<String>,
}

/// Joins what a paste says to the snapshots of its kernel files.
#[must_use]
pub fn join(mut window: Window, pasted: Pasted) -> Joined {
    let stretch = series::worst(&pasted.tables);
    devices::add(&mut window, &pasted, stretch.as_ref());
    for snapshot in [&mut window.t0, &mut window.t1] {
        // A file that nobody pasted is no gap; one that was pasted and cannot be read is.
        snapshot.gaps.retain(|missing| missing.reason == quell_units::Gap::Malformed);
        for statement in &pasted.statements {
            match statement {
                Statement::CgroupVersion(version) if snapshot.host.cgroups == CgroupMode::Absent => {
                    snapshot.host.cgroups = if *version == 1 { CgroupMode::V1 } else { CgroupMode::V2 };
                }
                Statement::Kernel(release) if snapshot.host.kernel.is_err() => {
                    snapshot.host.kernel = Ok(release.clone());
                }
                _ => {}
            }
        }
    }
    let mut rates = Rates::of(&window);
    let mut judged = Vec::new();
    if let Some(stretch) = &stretch {
        rates::of_tables(&mut rates, &window, stretch);
        judged.push(stretch.to_string());
    }
    rates::of_benchmarks(&mut rates, &window, &pasted.benchmarks);
    window.pasted = Some(Box::new(pasted));
    Joined { window, rates, judged }
}
