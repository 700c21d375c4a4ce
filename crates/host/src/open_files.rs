//! The files that containers have open for writing, and the size of docker's json logs.
//!
//! Two snapshots of these tell which file a container writes, and how fast it grows. A file that is opened, written and
//! closed between the two is not seen; nor is one that is mapped and closed. Only processes of containers that have
//! written something are asked, the ones that wrote most first, and all of it is bounded: a database has thousands of
//! files open.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use quell_engine::identity::{container_shape, short_id};
use quell_engine::snapshot::{Container, OpenFile, Task};
use quell_kfile::mountinfo;
use quell_kfile::pid_fdinfo::{self, Access};
use quell_units::{Bytes, CgroupPath, Gap, escape, unescape};
use rustix::io::Errno;

use crate::error::gap;
use crate::file_stat::STAT;
use crate::gaps::{Gaps, Of};
use crate::reader::{Reader, join, list_open};
use crate::root::link_target;
use crate::values::many;

/// Processes that are asked. A container's writer is one of a few, and they are taken by what they wrote.
const PROCESSES_MAX: usize = 256;

/// Descriptors of one process that are looked at: those of a server with that many connections are sockets.
const OF_PROCESS_MAX: usize = 1_024;

/// Descriptors of all of them together. At some 10 us each that is 80 ms of CPU a snapshot at the very most.
const DESCRIPTORS_MAX: usize = 8_192;

/// Logs whose size is asked for, one a container.
const LOGS_MAX: usize = 4_096;

/// What goes through the descriptors, and what it met.
struct Walk<'a> {
    reader: &'a mut Reader,
    gaps: &'a mut Gaps,
    /// The type of the file system of each mount that was met. Ids are the host's own, whatever the namespace.
    mounts: HashMap<u32, String>,
    /// The process whose mounts were read last.
    mounts_of: Option<u32>,
    /// How many more descriptors may be looked at.
    left: usize,
    files: Vec<OpenFile>,
}

/// Reads what the processes of containers have open for writing, in the order of the processes.
pub(crate) fn read_open_files(
    reader: &mut Reader,
    tasks: &[Task],
    containers: &[Container],
    gaps: &mut Gaps,
) -> Vec<OpenFile> {
    let is_container = |path: &CgroupPath| {
        let has_state = |path: &CgroupPath| containers.binary_search_by(|known| known.cgroup.cmp(path)).is_ok();
        path.ancestors().any(|path| has_state(&path) || container_shape(&path).is_some())
    };
    let mut writers: Vec<(&Task, &CgroupPath, Bytes)> = tasks
        .iter()
        .filter(|task| task.tid == task.pid && !task.kernel_thread)
        .filter_map(|task| {
            // Where this file may not be read the descriptors may not either, and the one gap is told already.
            let written = task.io.ok()?.write_bytes.filter(|written| written.get() > 0)?;
            Some((task, task.cgroup.as_ref().ok()?, written))
        })
        .filter(|(_, cgroup, _)| is_container(cgroup))
        .collect();
    writers.sort_by_key(|(task, _, written)| (std::cmp::Reverse(*written), task.pid));
    for (task, ..) in writers.iter().skip(PROCESSES_MAX) {
        gaps.missing(OPEN_FILES, Of::Process, Gap::OverBound, || shown(task.pid));
    }
    let mut walk =
        Walk { reader, gaps, mounts: HashMap::new(), mounts_of: None, left: DESCRIPTORS_MAX, files: Vec::new() };
    for (task, cgroup, _) in writers.into_iter().take(PROCESSES_MAX) {
        walk.process(task.pid, cgroup);
    }
    let mut files = walk.files;
    files.sort_by_key(|file| (file.pid, file.fd));
    files
}

/// What is missing where something is.
const OPEN_FILES: &str = "open files";

impl Walk<'_> {
    fn process(&mut self, pid: u32, cgroup: &CgroupPath) {
        let dir = format!("proc/{pid}/fd");
        // The process ended, or its descriptors may not be read, which was noted with the process.
        let Ok(open) = self.reader.open_dir(dir.as_bytes()) else { return };
        let number = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
        let entries = list_open(&open).unwrap_or_default();
        let mut fds: Vec<u32> = entries.iter().filter_map(|entry| number(&entry.name)).collect();
        fds.sort_unstable();
        let looked_at = fds.len().min(OF_PROCESS_MAX).min(self.left);
        if looked_at < fds.len() {
            self.gaps.missing(OPEN_FILES, Of::Process, Gap::OverBound, || shown(pid));
        }
        self.left -= looked_at;
        for fd in fds.into_iter().take(looked_at) {
            match self.file(pid, fd, cgroup, &open) {
                // Closed meanwhile, or no regular file.
                Ok(None) | Err(Errno::NOENT | Errno::SRCH | Errno::INVAL) => {}
                Ok(Some(file)) => self.files.push(file),
                Err(errno) => self.gaps.missing(OPEN_FILES, Of::Process, gap(errno), || shown(pid)),
            }
        }
    }

    /// One descriptor; `None` where it is none of a file that lies below a mount and is open for writing.
    fn file(&mut self, pid: u32, fd: u32, cgroup: &CgroupPath, dir: &OwnedFd) -> Result<Option<OpenFile>, Errno> {
        let name = fd.to_string();
        let target = link_target(dir, name.as_bytes())?;
        // Sockets, pipes and the kernel's own have no path; terminals and disks are no files.
        if !target.starts_with(b"/") || target.starts_with(b"/dev/") {
            return Ok(None);
        }
        let path = format!("proc/{pid}/fdinfo/{fd}");
        let info = pid_fdinfo::parse(self.reader.read_unkept(path.as_bytes())?).value;
        let Some(access @ (Access::Write | Access::ReadWrite)) = info.access else { return Ok(None) };
        let (Some(mount_id), Some(pos)) = (info.mount_id, info.pos) else { return Ok(None) };
        // A mount that the process does not see is the kernel's own: memory that is called a file.
        let Some(fs_type) = self.fs_type(pid, mount_id) else { return Ok(None) };
        let stat = self.reader.stat_in(dir, name.as_bytes())?;
        if let Some(recording) = self.reader.recording() {
            let dir = format!("proc/{pid}/fd");
            recording.link(&join(&[dir.as_bytes(), name.as_bytes()]), &target);
            recording.file(path.as_bytes(), pid_fdinfo::render(&info).as_bytes());
            let kept = [STAT, name.as_bytes()].concat();
            recording.file(&join(&[dir.as_bytes(), &kept]), stat.render().as_bytes());
        }
        Ok(Some(OpenFile {
            pid,
            fd,
            cgroup: cgroup.clone(),
            path: escape(&target).into_owned(),
            fs_type,
            dev: stat.dev,
            inode: stat.inode,
            size: stat.size,
            modified: stat.modified,
            pos,
            write_only: access == Access::Write,
        }))
    }

    /// The type of the file system of a mount that a process sees.
    fn fs_type(&mut self, pid: u32, mount_id: u32) -> Option<String> {
        // Processes of one container see the same mounts; and of a mount that nobody sees one look is enough.
        if !self.mounts.contains_key(&mount_id) && self.mounts_of.replace(pid) != Some(pid) {
            let (rows, _) = many(self.reader.read(format!("proc/{pid}/mountinfo").as_bytes()), mountinfo::parse);
            let rows = rows.unwrap_or_default().into_iter();
            self.mounts.extend(rows.map(|row| (row.mount_id, escape(&row.fs_type).into_owned())));
        }
        self.mounts.get(&mount_id).cloned()
    }
}

/// A process as it is named among the gaps.
fn shown(pid: u32) -> String {
    format!("process {pid}")
}

/// Fills in how large docker's json logs are now.
pub(crate) fn read_log_sizes(reader: &mut Reader, containers: &mut [Container], gaps: &mut Gaps) {
    let mut left = LOGS_MAX;
    for container in containers.iter_mut().filter(|container| container.has_json_log()) {
        let Some(path) = container.log_path.as_deref().and_then(host_path) else { continue };
        if left == 0 {
            gaps.missing("json log", Of::Container, Gap::OverBound, || short_id(&container.id).to_owned());
            continue;
        }
        left -= 1;
        match reader.stat(&path) {
            Ok(stat) => container.log_size = Some(stat.size),
            // A container that never said anything has none.
            Err(Errno::NOENT) => {}
            Err(errno) => gaps.missing("json log", Of::Container, gap(errno), || short_id(&container.id).to_owned()),
        }
    }
}

/// A path that a runtime tells, below the root, as it was before it was made safe to print.
pub(crate) fn host_path(text: &str) -> Option<Vec<u8>> {
    let bytes = if text.contains('\\') { unescape(text)? } else { text.into() };
    let path = bytes.strip_prefix(b"/")?;
    (!path.is_empty()).then(|| path.to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use quell_kfile::pid_io::PidIo;
    use quell_units::UnixMicros;

    use super::*;

    /// This process, as if it were a container's.
    fn myself() -> Task {
        let io = PidIo { write_bytes: Some(Bytes(1)), ..PidIo::default() };
        Task {
            pid: std::process::id(),
            tid: std::process::id(),
            comm: "test".into(),
            blocked: false,
            kernel_thread: false,
            cgroup: Ok(CgroupPath::new(b"docker/web").unwrap()),
            wait_channel: None,
            io: Ok(io),
            io_uring: false,
        }
    }

    #[test]
    fn a_file_that_this_process_writes_is_seen_to_grow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.log");
        let mut log = File::create(&path).unwrap();
        let read_only = File::open(&path).unwrap();
        let mut reader = Reader::live().unwrap();
        let mut look = || {
            let files = read_open_files(&mut reader, &[myself()], &[], &mut Gaps::default());
            let mut mine = files.into_iter().filter(|file| file.path == path.to_str().unwrap());
            (mine.next().unwrap(), mine.count())
        };
        let (before, others) = look();
        assert_eq!((before.size, before.pos, before.write_only, others), (Bytes(0), Bytes(0), true, 0));
        log.write_all(&[1; 5000]).unwrap();
        let (after, _) = look();
        assert_eq!((after.size, after.pos), (Bytes(5000), Bytes(5000)));
        assert_eq!((after.dev, after.inode), (before.dev, before.inode));
        assert!(after.modified >= before.modified && after.modified > UnixMicros(1_600_000_000_000_000));
        assert!(!after.fs_type.is_empty());
        drop(read_only);
    }

    #[test]
    fn a_bound_on_processes_is_told() {
        let tree = tempfile::tempdir().unwrap();
        let tasks: Vec<Task> = (1..=258).map(|pid| Task { pid, tid: pid, ..myself() }).collect();
        let mut gaps = Gaps::default();
        assert_eq!(read_open_files(&mut Reader::under(tree.path()).unwrap(), &tasks, &[], &mut gaps), []);
        let missing = gaps.into_missing();
        assert_eq!((missing.len(), &*missing[0].what), (1, "open files of 2 processes"));
    }

    #[test]
    fn a_path_that_was_made_safe_to_print_is_the_path_again() {
        assert_eq!(host_path("/var/lib/a\\x0ab"), Some(b"var/lib/a\nb".to_vec()));
        assert_eq!(host_path("/var/lib/docker"), Some(b"var/lib/docker".to_vec()));
        assert_eq!((host_path("relative"), host_path("/"), host_path("/a\\b")), (None, None, None));
    }
}
