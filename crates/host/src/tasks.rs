//! Processes, and the threads among them that are in uninterruptible sleep.
//!
//! All threads of a process are looked at, since a database waits in its workers and not in its first thread; but only
//! those that sleep so are kept. A process that ends while it is read is dropped and counted: processes end all the
//! time.

use quell_engine::snapshot::Task;
use quell_kfile::pid_stat::{PidStat, TaskState};
use quell_kfile::{pid_cgroup, pid_io, pid_stat, wchan};
use quell_units::{CgroupPath, Gap, Known};

use crate::cgroups::Hierarchies;
use crate::error::gap;
use crate::gaps::{Gaps, Of};
use crate::reader::{Reader, find_link, join};
use crate::values::{many, one};

/// Processes and threads that are read for a snapshot. Beyond it they are counted and left out.
const TASKS_MAX: usize = 32_768;

/// Processes and threads that a light look goes through: more would not be light.
const LOOK_TASKS_MAX: usize = 8_192;

/// Descriptors of one process that are looked at for an io_uring.
const DESCRIPTORS_MAX: usize = 4_096;

/// Where the next light look begins: at the first thread that the last one left out. So a few looks see all of a host
/// that has more than one may go through, and none is left out each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pid: u32,
    tid: u32,
}

/// What goes through the processes, and what it met.
struct Walk<'a> {
    reader: &'a mut Reader,
    hierarchies: &'a Hierarchies,
    gaps: &'a mut Gaps,
    /// Whether only threads in uninterruptible sleep are wanted, and nothing that is not cheap.
    light: bool,
    /// How many more tasks may be read.
    left: usize,
    /// Where it begins; it ends there too, after the last process has been followed by the first.
    from: Cursor,
    /// The first that was left out for the bound.
    cut_at: Option<Cursor>,
    tasks: Vec<Task>,
}

/// The process ended while it was read.
struct Ended;

/// Reads every process, and every thread in uninterruptible sleep.
pub(crate) fn read_tasks(reader: &mut Reader, hierarchies: &Hierarchies, gaps: &mut Gaps) -> Vec<Task> {
    let mut walk = Walk::new(reader, hierarchies, gaps, TASKS_MAX);
    let left_out = walk.all();
    let tasks = walk.tasks;
    gaps.left_out(Of::Process, Gap::OverBound, left_out);
    tasks
}

/// Reads the threads in uninterruptible sleep, and whether the bound cut them short.
pub(crate) fn read_blocked(reader: &mut Reader, hierarchies: &Hierarchies, from: &mut Cursor) -> (Vec<Task>, bool) {
    read_blocked_of(LOOK_TASKS_MAX, reader, hierarchies, from)
}

fn read_blocked_of(
    tasks_max: usize,
    reader: &mut Reader,
    hierarchies: &Hierarchies,
    from: &mut Cursor,
) -> (Vec<Task>, bool) {
    let gaps = &mut Gaps::default();
    let mut walk = Walk { light: true, from: *from, ..Walk::new(reader, hierarchies, gaps, tasks_max) };
    let left_out = walk.all();
    let mut tasks = walk.tasks;
    *from = walk.cut_at.unwrap_or_default();
    tasks.sort_by_key(|task| task.pid);
    (tasks, left_out > 0)
}

impl<'a> Walk<'a> {
    fn new(reader: &'a mut Reader, hierarchies: &'a Hierarchies, gaps: &'a mut Gaps, left: usize) -> Self {
        let (light, from, cut_at, tasks) = (false, Cursor::default(), None, Vec::new());
        Self { reader, hierarchies, gaps, light, left, from, cut_at, tasks }
    }

    /// Goes through all processes; gives of how many something was left out.
    fn all(&mut self) -> u64 {
        let (mut ended, mut left_out) = (0, 0);
        let mut pids = self.ids(b"proc").unwrap_or_else(|reason| {
            self.gaps.missing("processes", Of::Host, reason, || "");
            Vec::new()
        });
        let first = pids.partition_point(|&pid| pid < self.from.pid);
        pids.rotate_left(first);
        for pid in pids {
            if self.left == 0 {
                self.cut(pid, 0);
                left_out += 1;
                continue;
            }
            let cut_before = self.cut_at;
            if self.process(pid).is_err() {
                ended += 1;
                if let Some(recording) = self.reader.recording() {
                    recording.forget(format!("proc/{pid}").as_bytes());
                }
            }
            left_out += u64::from(self.cut_at != cut_before);
        }
        self.gaps.left_out(Of::Process, Gap::Gone, ended);
        left_out
    }

    /// Notes what is left out for the bound.
    fn cut(&mut self, pid: u32, tid: u32) {
        self.cut_at.get_or_insert(Cursor { pid, tid });
    }

    /// The numbers among the names in a directory, in order: a captured tree lists them in any.
    fn ids(&mut self, dir: &[u8]) -> Known<Vec<u32>> {
        let entries = self.reader.list(dir).map_err(gap)?;
        let id = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
        let mut ids: Vec<u32> = entries.iter().filter_map(|entry| id(&entry.name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn process(&mut self, pid: u32) -> Result<(), Ended> {
        let dir = format!("proc/{pid}");
        let stat = self.stat(&dir)?;
        // A kernel thread has no other threads.
        let threads = if stat.kernel_thread { Vec::new() } else { self.blocked_threads(&dir, pid) };
        let blocked = stat.state == TaskState::Uninterruptible;
        if self.light && !blocked && threads.is_empty() {
            return Ok(());
        }
        let cgroup = self.cgroup(&dir)?;
        for (tid, thread) in threads {
            let wait_channel = self.wait_channel(&format!("{dir}/task/{tid}"), &thread);
            // Counted with its process: its own bytes would be counted twice.
            let io = Err(Gap::NotInKernel);
            self.tasks.push(task(pid, tid, thread, cgroup.clone(), wait_channel, io, false));
        }
        if !self.light || blocked {
            let io = self.io(&dir);
            let io_uring = !self.light && !stat.kernel_thread && self.holds_io_uring(&dir);
            let wait_channel = self.wait_channel(&dir, &stat);
            if wait_channel.is_none() && stat.state != TaskState::Running && io == Err(Gap::Denied) {
                // Both files ask for the same permission, but without it this one reads as `0` and does not fail.
                self.gaps.missing("wchan", Of::Process, Gap::Denied, || shown(&dir));
            }
            self.tasks.push(task(pid, pid, stat, cgroup, wait_channel, io, io_uring));
        }
        Ok(())
    }

    fn stat(&mut self, dir: &str) -> Result<PidStat, Ended> {
        self.left = self.left.saturating_sub(1);
        match one(self.reader.read(format!("{dir}/stat").as_bytes()), pid_stat::parse) {
            Ok(stat) => Ok(stat),
            Err(Gap::NotInKernel | Gap::Gone) => Err(Ended),
            Err(reason) => {
                self.gaps.missing("stat", Of::Process, reason, || shown(dir));
                Err(Ended)
            }
        }
    }

    /// The other threads of a process that are in uninterruptible sleep.
    fn blocked_threads(&mut self, dir: &str, pid: u32) -> Vec<(u32, PidStat)> {
        // A capture has the folder only where there are other threads.
        let ids = self.ids(format!("{dir}/task").as_bytes()).unwrap_or_default();
        let from = if pid == self.from.pid { self.from.tid } else { 0 };
        let mut others: Vec<u32> = ids.into_iter().filter(|&tid| tid != pid && tid >= from).collect();
        if let Some(&tid) = others.get(self.left) {
            self.cut(pid, tid);
            others.truncate(self.left);
        }
        let blocked = others.into_iter().filter_map(|tid| {
            // A thread that ended is no loss: it was not asleep.
            let stat = self.stat(&format!("{dir}/task/{tid}")).ok()?;
            (stat.state == TaskState::Uninterruptible).then_some((tid, stat))
        });
        blocked.collect()
    }

    fn cgroup(&mut self, dir: &str) -> Result<Known<CgroupPath>, Ended> {
        let (cgroup, lost) = many(self.reader.read(format!("{dir}/cgroup").as_bytes()), pid_cgroup::parse);
        match cgroup {
            Err(Gap::Gone) => return Err(Ended),
            // Not there while the process is: a capture without it. On a live host the process just ended.
            Err(Gap::NotInKernel) if !self.reader.is_captured() => self.stat(dir).map(drop)?,
            _ => {}
        }
        let walked = self.hierarchies.io();
        let path = cgroup.and_then(|cgroup| {
            let v1 = self.hierarchies.blkio.is_some();
            let path = if v1 { cgroup.v1_of("blkio") } else { cgroup.unified.as_ref() };
            // A lost line is a path outside the part of the tree that this process may see.
            let missing = if lost.is_none() { Gap::NotInKernel } else { Gap::Denied };
            below(path.ok_or(missing)?, walked.map_or(&[], |walked| &walked.shows))
        });
        if let Err(reason) = path
            && walked.is_some()
        {
            self.gaps.missing("cgroup", Of::Process, reason, || shown(dir));
        }
        Ok(path)
    }

    fn io(&mut self, dir: &str) -> Known<pid_io::PidIo> {
        let (io, lost) = many(self.reader.read(format!("{dir}/io").as_bytes()), pid_io::parse);
        self.gaps.lost("io", Of::Process, &lost, || shown(dir));
        if let Err(reason) = io {
            self.gaps.missing("io", Of::Process, reason, || shown(dir));
        }
        io
    }

    fn wait_channel(&mut self, dir: &str, stat: &PidStat) -> Option<String> {
        if stat.state == TaskState::Running {
            return None;
        }
        let function = one(self.reader.read(format!("{dir}/wchan").as_bytes()), |bytes| {
            wchan::parse(bytes).map(|function| function.map(str::to_owned))
        });
        function.ok().flatten()
    }

    fn holds_io_uring(&mut self, dir: &str) -> bool {
        let dir = format!("{dir}/fd");
        match self.reader.open_dir(dir.as_bytes()) {
            Ok(open) => {
                let ring = find_link(&open, DESCRIPTORS_MAX, |target| target == b"anon_inode:[io_uring]");
                if let (Some((name, target)), Some(recording)) = (&ring, self.reader.recording()) {
                    recording.link(&join(&[dir.as_bytes(), name]), target);
                }
                ring.is_some()
            }
            Err(errno) => {
                let reason = gap(errno);
                if reason == Gap::Denied {
                    self.gaps.missing("fd", Of::Process, reason, || shown(&dir));
                }
                false
            }
        }
    }
}

/// A process as it is named among the gaps: `process 7`, from `proc/7` or what lies below.
fn shown(dir: &str) -> String {
    format!("process {}", dir.split('/').nth(1).unwrap_or_default())
}

/// A path below the cgroup that the walk begins at.
fn below(path: &CgroupPath, shows: &[u8]) -> Known<CgroupPath> {
    if shows.is_empty() {
        return Ok(path.clone());
    }
    let rest = path.as_bytes().strip_prefix(shows).filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
    CgroupPath::new(rest.ok_or(Gap::Denied)?).map_err(|_| Gap::Malformed)
}

fn task(
    pid: u32,
    tid: u32,
    stat: PidStat,
    cgroup: Known<CgroupPath>,
    wait_channel: Option<String>,
    io: Known<pid_io::PidIo>,
    io_uring: bool,
) -> Task {
    Task {
        pid,
        tid,
        comm: String::from_utf8_lossy(&stat.comm).into_owned(),
        blocked: stat.state == TaskState::Uninterruptible,
        kernel_thread: stat.kernel_thread,
        cgroup,
        wait_channel,
        io,
        io_uring,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_over_a_bound_take_turns_until_all_were_seen() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let stat = |tid: u32| format!("{tid} (x) D 1 0 0 0 -1 0{}\n", " 0".repeat(43));
        for pid in [1, 2, 3, 9] {
            write(&format!("proc/{pid}/stat"), &stat(pid));
        }
        for tid in [4, 5, 6, 7] {
            write(&format!("proc/3/task/{tid}/stat"), &stat(tid));
        }
        let mut reader = Reader::under(tree.path()).unwrap();
        let mut look = |tasks_max, from: &mut Cursor| {
            let (tasks, cut) = read_blocked_of(tasks_max, &mut reader, &Hierarchies::default(), from);
            (tasks.iter().map(|task| task.tid).collect::<Vec<_>>(), cut)
        };
        let mut from = Cursor::default();
        assert_eq!(look(4, &mut from), (vec![1, 2, 4, 3], true));
        // The first thread is always read with its process. What was left out goes first, then it starts again.
        assert_eq!(look(4, &mut from), (vec![5, 6, 7, 3], true));
        assert_eq!(look(4, &mut from), (vec![1, 2, 3, 9], true));
        assert_eq!(look(8, &mut from), (vec![1, 2, 4, 5, 6, 7, 3, 9], false), "a look at all starts at the first");
    }

    #[test]
    fn a_process_outside_the_part_that_is_seen_has_no_path() {
        let path = |text: &str| CgroupPath::new(text.as_bytes()).unwrap();
        assert_eq!(below(&path("docker/aa/app"), b"docker/aa"), Ok(path("app")));
        assert_eq!(below(&path("docker/aa"), b"docker/aa"), Ok(CgroupPath::root()));
        assert_eq!(below(&path("docker/aab"), b"docker/aa"), Err(Gap::Denied));
        assert_eq!(below(&path("docker/aab"), b""), Ok(path("docker/aab")));
    }
}
