//! The host's programs that a task runs, or that the lab copies into its VM, and the packages that have them.
//!
//! It comes first: everything after it takes the programs as given. In a CI container it installs them by itself, since
//! it can; on a developer's machine it only tells what to install, because that is not its to decide.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::output;

/// A program, or another file by its path, and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) program: &'static str,
    /// The package of Debian and Ubuntu.
    pub(crate) package: &'static str,
}

/// What the lab needs.
pub(crate) const LAB: &[Need] = &[
    Need { program: "qemu-system-x86_64", package: "qemu-system-x86" },
    Need { program: "busybox", package: "busybox-static" },
    Need { program: "fio", package: "fio" },
    Need { program: "iostat", package: "sysstat" },
    Need { program: "mke2fs", package: "e2fsprogs" },
    Need { program: "mkfs.xfs", package: "xfsprogs" },
    Need { program: "mkfs.btrfs", package: "btrfs-progs" },
    Need { program: "cryptsetup", package: "cryptsetup-bin" },
    Need { program: "lvm", package: "lvm2" },
    Need { program: "dmsetup", package: "dmsetup" },
    Need { program: "mdadm", package: "mdadm" },
    Need { program: "setpriv", package: "util-linux" },
    Need { program: "ldd", package: "libc-bin" },
    Need { program: "modprobe", package: "kmod" },
    Need { program: "depmod", package: "kmod" },
    Need { program: "apt-get", package: "apt" },
    Need { program: "dpkg-deb", package: "dpkg" },
    Need { program: "xz", package: "xz-utils" },
    Need { program: "zstd", package: "zstd" },
];

/// What makes the eBPF objects.
pub(crate) const BPF: &[Need] = &[
    Need { program: "clang", package: "clang" },
    Need { program: "llvm-strip", package: "llvm" },
    Need { program: "/usr/include/bpf/bpf_helpers.h", package: "libbpf-dev" },
];

/// What of these this host lacks.
fn missing(needs: &'static [Need]) -> Vec<&'static Need> {
    needs.iter().filter(|need| !is_there(need)).collect()
}

/// Installs what is missing, as root where there is apt. Else the error says what to install.
pub(crate) fn install_missing(needs: &'static [Need]) -> Result<()> {
    let absent = missing(needs);
    if absent.is_empty() {
        return Ok(());
    }
    let can_install = rustix::process::geteuid().is_root() && path("apt-get").is_some();
    ensure!(can_install, "{}", told(&absent));
    let mut packages: Vec<_> = absent.iter().map(|need| need.package).collect();
    packages.dedup();
    eprintln!("xtask: installing {}", packages.join(" "));
    output(apt_get().args(["update", "-qq"]))?;
    output(apt_get().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages))?;
    let absent = missing(needs);
    ensure!(absent.is_empty(), "installed, and still not there: {}", told(&absent));
    Ok(())
}

/// Where a program is. The folders of root's programs are looked through for everybody.
pub(crate) fn path(program: impl AsRef<Path>) -> Option<PathBuf> {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&searched).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(&program)).find(|path| is_executable(path))
}

/// The same, where a program that is missing is an error.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    path(name).with_context(|| {
        let package = LAB.iter().find(|need| need.program == name).map_or(name, |need| need.package);
        format!("{name} is not installed; hint: apt-get install {package}")
    })
}

/// A command of a program.
pub(crate) fn command(name: &str) -> Result<Command> {
    Ok(Command::new(program(name)?))
}

/// Whether an executable needs no loader, and so no libraries.
pub(crate) fn is_static(program: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let file = File::open(program).with_context(|| program.display().to_string())?;
    file.take(4096).read_to_end(&mut head)?;
    names_no_loader(&head).with_context(|| format!("{} is no 64-bit ELF program", program.display()))
}

fn is_there(need: &Need) -> bool {
    if need.program.starts_with('/') {
        return Path::new(need.program).is_file();
    }
    // The plain package `busybox` has a program of the same name that cannot be an initramfs's first.
    path(need.program).is_some_and(|path| need.program != "busybox" || is_static(&path).unwrap_or(false))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", OsStr::new("noninteractive"));
    command
}

fn told(absent: &[&Need]) -> String {
    let list: Vec<_> = absent.iter().map(|need| format!("{} (package {})", need.program, need.package)).collect();
    format!("this needs {}; hint: run it as root to have them installed", list.join(", "))
}

/// Looks for PT_INTERP among the program headers: `elf(5)`. None: this is no 64-bit little-endian ELF.
fn names_no_loader(head: &[u8]) -> Option<bool> {
    const PT_INTERP: [u8; 4] = [3, 0, 0, 0];
    head.strip_prefix(b"\x7fELF\x02\x01")?;
    // The program headers follow the file's own header, so that the low 16 bits hold all of their offset.
    let bytes = |at: usize| head.get(at..)?.first_chunk::<2>().copied().map(u16::from_le_bytes);
    let (at, size, count) = (bytes(32)?, bytes(54)?, bytes(56)?);
    let headers = head.get(usize::from(at)..)?.chunks(usize::from(size).max(1)).take(usize::from(count));
    Some(!headers.into_iter().any(|header| header.starts_with(&PT_INTERP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_listed_twice() {
        let needs: Vec<&Need> = LAB.iter().chain(BPF).collect();
        for (at, need) in needs.iter().enumerate() {
            assert!(needs[at + 1..].iter().all(|other| other.program != need.program), "{}", need.program);
        }
    }

    #[test]
    fn what_is_missing_is_told_with_its_package_and_a_hint() {
        let told = told(&[&LAB[0], &LAB[3]]);
        assert!(told.contains("qemu-system-x86_64 (package qemu-system-x86), iostat (package sysstat)"), "{told}");
        assert!(told.contains("as root"), "{told}");
    }

    #[test]
    fn a_program_that_nobody_has_is_not_found() {
        assert!(path("sh").is_some());
        assert_eq!(path("no-such-program-of-quell"), None);
        assert!(command("no-such-program-of-quell").is_err());
        assert!(command("sh").is_ok());
    }

    fn elf(types: &[u32]) -> Vec<u8> {
        let mut head = b"\x7fELF\x02\x01".to_vec();
        head.resize(64, 0);
        head[32] = 64;
        head[54] = 56;
        head[56] = types.len().try_into().unwrap();
        for kind in types {
            head.extend(kind.to_le_bytes());
            head.extend([0; 52]);
        }
        head
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert_eq!(names_no_loader(&elf(&[6, 3, 1])), Some(false));
        assert_eq!(names_no_loader(&elf(&[6, 1, 1])), Some(true));
        assert_eq!(names_no_loader(b"#!/bin/sh\n"), None);
        assert_eq!(names_no_loader(b"\x7fELF\x02\x01"), None);
    }
}
