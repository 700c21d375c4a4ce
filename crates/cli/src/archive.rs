//! Packed captures: `NAME.tar.xz` with `NAME/t0` and `NAME/t1` in it, as the project's fixtures are kept.

use std::io;
use std::path::{Path, PathBuf};

use lzma_rust2::XzReader;
use tempfile::TempDir;

/// A new directory to unpack into, gone with the value: in memory where the host has that, for a capture is some 1,500
/// small files, and a disk that is in trouble should not have to make them.
///
/// # Errors
/// No directory can be made, neither in memory nor in the place for temporary files.
pub fn scratch() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("quell-");
    if std::env::var_os("TMPDIR").is_none()
        && let Ok(dir) = builder.tempdir_in("/dev/shm")
    {
        return Ok(dir);
    }
    builder.tempdir()
}

/// Unpacks a capture below `into`, and returns the folder that holds its two moments.
///
/// # Errors
/// The archive is damaged or not a capture, or `into` cannot be written.
pub fn unpack(packed: &[u8], into: &Path) -> io::Result<PathBuf> {
    let mut archive = tar::Archive::new(XzReader::new(packed, false));
    // The times and owners of the copied files mean nothing, and setting them takes a call a file.
    archive.set_preserve_mtime(false);
    archive.set_preserve_permissions(false);
    std::fs::create_dir_all(into)?;
    let mut top = None;
    for entry in archive.entries()? {
        let mut entry = entry?;
        if top.is_none() {
            top = entry.path()?.components().next().map(|first| into.join(first));
        }
        entry.unpack_in(into)?;
    }
    top.filter(|dir| dir.join("t0").is_dir() && dir.join("t1").is_dir())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no capture: t0 and t1 are not in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_capture_gives_two_moments() {
        let dir = scratch().unwrap();
        let top = unpack(include_bytes!("../../../fixtures/captures/01-healthy-idle.tar.xz"), dir.path()).unwrap();
        assert_eq!(top, dir.path().join("01-healthy-idle"));
        assert!(std::fs::read_to_string(top.join("t1/proc/diskstats")).unwrap().contains("vda"));
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let dir = scratch().unwrap();
        assert!(unpack(b"", dir.path()).is_err());
        assert!(unpack(b"\xfd7zXZ\0 and then nothing of it", dir.path()).is_err());
    }
}
