//! Where a path leads once every link in it is followed: `/dev/disk/by-id/...` to its node, `/var/lib/docker` to the disk
//! it was moved to.

use crate::machine::Machine;

/// As the kernel: a path through more links than this is a loop.
const LINKS_MAX: u32 = 40;

impl Machine {
    /// The path with every link in it followed, below the root and never out of it.
    ///
    /// What does not exist, or may not be looked at, is taken as it stands: a captured tree holds few of a host's links.
    pub fn real_path(&mut self, path: &[u8]) -> Vec<u8> {
        let mut todo: Vec<Vec<u8>> = parts(path);
        let mut done: Vec<Vec<u8>> = Vec::new();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part == b".." {
                done.pop();
                continue;
            }
            done.push(part);
            let Ok(target) = self.reader.read_link(&done.join(&b'/')) else { continue };
            links += 1;
            if links > LINKS_MAX {
                return path.into();
            }
            done.pop();
            if target.starts_with(b"/") {
                done.clear();
            }
            todo.extend(parts(&target));
        }
        [b"/".as_slice(), &done.join(&b'/')].concat()
    }
}

/// The parts of a path, the last one first.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&b| b == b'/').filter(|part| !matches!(*part, b"" | b".")).rev().map(Vec::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn machine() -> (tempfile::TempDir, Machine) {
        let tree = tempfile::tempdir().unwrap();
        for dir in ["proc", "dev/disk/by-id", "var/lib", "data/docker"] {
            fs::create_dir_all(tree.path().join(dir)).unwrap();
        }
        fs::write(tree.path().join("dev/sdb1"), "").unwrap();
        symlink("../../sdb1", tree.path().join("dev/disk/by-id/ata-X-part1")).unwrap();
        symlink("/data/docker", tree.path().join("var/lib/docker")).unwrap();
        symlink("a", tree.path().join("b")).unwrap();
        symlink("b", tree.path().join("a")).unwrap();
        let machine = Machine::under(tree.path()).unwrap();
        (tree, machine)
    }

    #[test]
    fn links_are_followed_wherever_they_stand_in_a_path() {
        let (_tree, mut machine) = machine();
        for (path, real) in [
            ("/dev/disk/by-id/ata-X-part1", "/dev/sdb1"),
            ("/var/lib/docker/overlay2/", "/data/docker/overlay2"),
            ("/var/../var/lib/./docker", "/data/docker"),
            ("/not/there", "/not/there"),
            ("/", "/"),
            ("/../../etc", "/etc"),
        ] {
            assert_eq!(machine.real_path(path.as_bytes()), real.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_loop_of_links_ends_where_it_began() {
        let (_tree, mut machine) = machine();
        assert_eq!(machine.real_path(b"/a/x"), b"/a/x");
    }
}
