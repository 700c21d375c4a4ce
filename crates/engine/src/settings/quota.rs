//! Whether a container's writable layer can be given a size here.
//!
//! A runtime's `--storage-opt size=` is a project quota on the directory that the container writes to. The kernel has
//! those on XFS and ext4, the runtime asks for them on XFS alone, and in both the mount must have them on: a quota that
//! is counted and not enforced takes the option and holds nothing.

use crate::snapshot::{Mount, Snapshot};
use crate::stack::locate;

/// Whether the size of an overlay's upper directory can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerQuota {
    /// XFS with project quotas enforced.
    Holds,
    /// Project quotas are counted there and not enforced.
    CountedOnly,
    /// XFS, mounted without project quotas.
    Off,
    /// A file system on which runtimes set none.
    OtherFilesystem,
    /// What the upper directory lies on cannot be seen.
    Unseen,
}

impl LayerQuota {
    /// What to know about it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "storage-opt size can hold: XFS with project quotas",
            Self::CountedOnly => "storage-opt size holds nothing: project quotas are counted and not enforced",
            Self::Off => "storage-opt size is refused: the XFS below is mounted without pquota",
            Self::OtherFilesystem => "storage-opt size is refused: it needs XFS with pquota below the writable layer",
            Self::Unseen => "whether storage-opt size can hold is not seen from here",
        }
    }
}

/// Whether a runtime can limit what is written to an overlay. `None` for a mount that is none, or takes no writes.
#[must_use]
pub fn writable_layer_quota(overlay: &Mount, snapshot: &Snapshot) -> Option<LayerQuota> {
    let upper = overlay.upper_dir.as_deref().filter(|_| overlay.fs_type == "overlay")?;
    Some(layer_quota(upper, snapshot))
}

/// Whether a runtime can limit what is written to the upper directory of an overlay.
#[must_use]
pub fn layer_quota(upper_dir: &str, snapshot: &Snapshot) -> LayerQuota {
    let below = locate(upper_dir, snapshot).and_then(|place| place.mount_point);
    // The later of two mounts on one point is the one that is seen.
    let below = below.and_then(|point| snapshot.mounts.iter().rfind(|mount| mount.mount_point == point));
    match below {
        None => LayerQuota::Unseen,
        Some(below) if below.fs_type == "overlay" => LayerQuota::Unseen,
        Some(below) if below.fs_type != "xfs" => LayerQuota::OtherFilesystem,
        Some(below) => {
            let has = |option: &str| below.fs_options.split(',').any(|set| set == option);
            match (has("pquota") || has("prjquota"), has("pqnoenforce")) {
                (true, _) => LayerQuota::Holds,
                (_, true) => LayerQuota::CountedOnly,
                _ => LayerQuota::Off,
            }
        }
    }
}
