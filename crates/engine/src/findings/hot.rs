//! Hot files: what the container that a finding is about writes to, and where that lies.
//!
//! Added to findings from outside, as [`super::program`] does for programs, because it is the same for every rule. The
//! files come from two snapshots of what processes have open. A file that grew has a rate; one that is overwritten from
//! its start has that of its descriptor; one that is written at places of the writer's choice (a database) has none, and
//! is told without. Files of another disk than the finding's are left out.

use std::collections::{HashMap, HashSet};

use quell_units::{Bytes, CgroupPath, DevNum, count};

use super::evidence::evidence;
use super::finding::{Advice, Aspect, Evidence, Finding, Severity, Subject, SubjectKind, Value};
use super::scene::Scene;
use crate::identity::WorkloadKind;
use crate::snapshot::{Container, OpenFile, Window};
use crate::stack::locate;

/// Files of one container that are told.
const FILES_MAX: usize = 3;

/// Growth below this is no load on any disk: 5 GiB a day.
const BYTES_PER_SEC_MIN: f64 = 64.0 * 1024.0;

/// File systems that keep nothing on a disk.
const OF_MEMORY: [&str; 9] =
    ["tmpfs", "ramfs", "devtmpfs", "proc", "sysfs", "cgroup", "cgroup2", "mqueue", "hugetlbfs"];

/// One file that was written in the window.
#[derive(Clone, Debug, PartialEq)]
struct Hot<'s> {
    file: &'s OpenFile,
    /// How it was written.
    written: Written,
}

/// How a file was written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// It grew, or was overwritten from one place on, by this much.
    PerSec(f64),
    /// At places of the writer's choice: how much is not known.
    InPlace,
    /// It is shorter than it was: how much was written since is not known.
    Anew,
}

/// Adds the hot files and the growing log of a finding's victim and culprit, and what to do about them.
pub(super) fn add_hot_files(scene: &Scene, finding: &mut Finding) {
    // What is worth knowing alone names nobody who writes too much.
    if finding.severity == Severity::Info {
        return;
    }
    let disks = disks_of(scene, finding);
    let (mut told, mut advice) = (Vec::new(), Vec::new());
    for (aspect, subject) in [(Aspect::Victim, Some(&finding.subject)), (Aspect::Culprit, finding.culprit.as_ref())] {
        let Some((path, subject)) = subject.and_then(|subject| Some((subject.cgroup.as_ref()?, subject))) else {
            continue;
        };
        // Whoever suffers from another one need not write less himself.
        let is_to_blame = aspect == Aspect::Culprit || finding.culprit.is_none();
        if subject.kind == SubjectKind::Workload(WorkloadKind::Container) {
            let hot: Vec<Hot> = hot_files(scene.window, path)
                .into_iter()
                .filter(|hot| lies_on(&disks, &devices_of(scene, hot.file, path), scene))
                .take(FILES_MAX)
                .collect();
            told.extend(hot.iter().map(|hot| of_file(hot, aspect)));
            if is_to_blame && let Some(hot) = worth_moving(&hot) {
                advice.push(move_out(scene, hot, path));
            }
        }
        if let Some((log, per_sec)) = growing_log(scene, subject, path)
            && lies_on(&disks, &log.log_path.as_deref().map_or(Vec::new(), |path| devices(scene, path)), scene)
        {
            told.push(of_log(scene, log, per_sec, path, aspect));
            if is_to_blame && log.log_grows_without_end() {
                advice.push(give_the_log_a_size());
            }
        }
    }
    finding.evidence.extend(told);
    finding.advice.extend(advice);
}

/// The files of a container that were written in the window and lie on a disk, the fastest first.
fn hot_files<'s>(window: &'s Window, container: &CgroupPath) -> Vec<Hot<'s>> {
    let Some(span) = window.t1.clock.tasks.since(window.t0.clock.tasks) else { return Vec::new() };
    let of = |files: &'s [OpenFile]| {
        files.iter().filter(|file| file.cgroup.is_within(container) && !OF_MEMORY.contains(&&*file.fs_type))
    };
    let key = |file: &OpenFile| (file.dev, file.inode);
    let mut was: HashMap<(DevNum, u64), Vec<&OpenFile>> = HashMap::new();
    for file in of(&window.t0.open_files) {
        was.entry(key(file)).or_default().push(file);
    }
    let mut hot: Vec<Hot> = of(&window.t1.open_files)
        .filter_map(|file| Some(Hot { file, written: written(was.get(&key(file))?, file, span.seconds())? }))
        .collect();
    // Of files without a rate those that could lie elsewhere come first.
    hot.sort_by(|a, b| b.per_sec().total_cmp(&a.per_sec()).then(b.file.is_in_layer().cmp(&a.file.is_in_layer())));
    // One file that is open several times: its fastest descriptor.
    let mut seen = HashSet::new();
    hot.retain(|hot| seen.insert(key(hot.file)));
    hot
}

/// What a file's descriptors at the first moment and one at the second tell; `None` where it was not written.
fn written(was: &[&OpenFile], now: &OpenFile, seconds: f64) -> Option<Written> {
    let first = was.first()?;
    let grown = now.size.saturating_sub(first.size);
    // Reading moves a descriptor too, unless it cannot read.
    let same = was.iter().find(|file| file.write_only && now.write_only && (file.pid, file.fd) == (now.pid, now.fd));
    let moved = same.map_or(Bytes(0), |file| now.pos.saturating_sub(file.pos));
    let bytes = if grown > Bytes(0) { grown } else { moved };
    if now.size >= first.size && bytes > Bytes(0) {
        let per_sec = count(bytes.get()) / seconds;
        return (per_sec >= BYTES_PER_SEC_MIN).then_some(Written::PerSec(per_sec));
    }
    let kind = if now.size < first.size { Written::Anew } else { Written::InPlace };
    (now.modified > first.modified).then_some(kind)
}

impl Hot<'_> {
    /// Its rate; none counts as less than any.
    const fn per_sec(&self) -> f64 {
        match self.written {
            Written::PerSec(rate) => rate,
            Written::InPlace | Written::Anew => 0.0,
        }
    }
}

fn of_file(hot: &Hot, aspect: Aspect) -> Evidence {
    let Hot { file, written } = hot;
    let how = match written {
        Written::PerSec(rate) => per_sec_text(*rate),
        Written::InPlace => "written in place".into(),
        Written::Anew => "cut and written anew".into(),
    };
    let place = match file.is_in_layer() {
        true => "in its writable layer".to_owned(),
        false => format!("on {}", file.fs_type),
    };
    let text = format!("{}, {how}, {place}", file.path);
    evidence(aspect, "hot file", Value::Word(text), format!("/proc/{}/fd/{}", file.pid, file.fd))
}

/// The file that it is worth to keep elsewhere: the hottest in the writable layer, if it is a tenth of the hottest of all.
fn worth_moving<'h, 's>(hot: &'h [Hot<'s>]) -> Option<&'h Hot<'s>> {
    let most = hot.first()?.per_sec();
    hot.iter().find(|hot| hot.file.is_in_layer()).filter(|hot| hot.per_sec() >= most / 10.0)
}

fn move_out(scene: &Scene, hot: &Hot, container: &CgroupPath) -> Advice {
    let file = hot.file.path.trim_end_matches(" (deleted)");
    let dir = file.rsplit_once('/').map_or("/", |(dir, _)| if dir.is_empty() { file } else { dir });
    let is_pod = scene.window.t1.container(container).is_some_and(|known| known.pod.is_some());
    let (volume, memory) = if is_pod {
        ("a volume there".to_owned(), "an emptyDir of medium Memory".to_owned())
    } else {
        (format!("-v NAME:{dir}"), format!("--tmpfs {dir}"))
    };
    Advice::text(format!(
        "keep {dir} out of the writable layer: a volume ({volume}), on another disk if there is one, or tmpfs where it is \
         scratch ({memory})"
    ))
    .risk("the container is made anew for it; what lies in tmpfs takes memory and ends with the container")
}

/// The json log that somebody's output makes grow: a container's own, or for docker's daemon, which writes all of them,
/// the fastest.
fn growing_log<'s>(scene: &Scene<'s>, subject: &Subject, path: &CgroupPath) -> Option<(&'s Container, f64)> {
    const DAEMONS: [&[u8]; 2] = [b"docker.service", b"snap.docker.dockerd.service"];
    let window = scene.window;
    let seconds = window.t1.clock.tasks.since(window.t0.clock.tasks)?.seconds();
    let is_daemon = DAEMONS.contains(&path.name());
    let is_container = subject.kind == SubjectKind::Workload(WorkloadKind::Container);
    let all = window.t1.containers.iter().filter(|known| is_daemon || (is_container && known.cgroup.is_within(path)));
    let grown = all.filter_map(|now| {
        let was = window.t0.container(&now.cgroup).filter(|was| was.id == now.id)?;
        let per_sec = count(now.log_size?.saturating_sub(was.log_size?).get()) / seconds;
        (per_sec >= BYTES_PER_SEC_MIN).then_some((now, per_sec))
    });
    grown.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn of_log(scene: &Scene, log: &Container, per_sec: f64, of: &CgroupPath, aspect: Aspect) -> Evidence {
    let size = match log.log_size_max {
        Some(size) => format!("max-size {size}"),
        None => "no max-size".into(),
    };
    let whose = match log.cgroup == *of {
        true => String::new(),
        false => format!(" of {}", scene.name_of(&log.cgroup)),
    };
    let text = format!("grows {}, {size}", per_sec_text(per_sec));
    let source = log.log_path.clone().unwrap_or_default();
    evidence(aspect, &format!("json log{whose}"), Value::Word(text), source)
}

fn give_the_log_a_size() -> Advice {
    Advice::text("let docker begin the json log anew: --log-opt max-size=10m, or log-opts in daemon.json for all")
        .risk("older output is dropped; containers that are there keep their log until they are made anew")
}

fn per_sec_text(per_sec: f64) -> String {
    format!("{}/s", Bytes::rounded(per_sec))
}

/// The lowest disks that a finding is about; none where it is about no disk.
fn disks_of(scene: &Scene, finding: &Finding) -> Vec<DevNum> {
    let subjects = std::iter::once(&finding.subject).chain(&finding.culprit);
    let disk = subjects.filter_map(|subject| subject.device).find_map(|name| {
        let disk = scene.disks.iter().find(|disk| disk.name == name)?;
        Some(scene.window.t1.leaves(disk.dev))
    });
    disk.unwrap_or_default()
}

/// The devices that a file of a container lies on; none where they are not known.
fn devices_of(scene: &Scene, file: &OpenFile, container: &CgroupPath) -> Vec<DevNum> {
    if file.is_in_layer() {
        let upper = scene.window.t1.container(container).and_then(|known| known.upper_dir.as_deref());
        return upper.map_or(Vec::new(), |upper| devices(scene, upper));
    }
    // btrfs and network file systems have a number of no device.
    if file.dev.major == 0 { Vec::new() } else { vec![file.dev] }
}

fn devices(scene: &Scene, path: &str) -> Vec<DevNum> {
    locate(path, &scene.window.t1).map_or(Vec::new(), |place| place.devices)
}

/// Whether something on these devices may be on one of the disks: what is not known on either side may be anywhere.
fn lies_on(disks: &[DevNum], devices: &[DevNum], scene: &Scene) -> bool {
    let below = |&dev: &DevNum| scene.window.t1.leaves(dev);
    disks.is_empty() || devices.is_empty() || devices.iter().flat_map(below).any(|leaf| disks.contains(&leaf))
}

#[cfg(test)]
mod tests {
    use quell_units::UnixMicros;

    use super::*;
    use crate::findings::written::{Did, SECONDS, Written as Host, number};
    use crate::identity::container;

    const WEB: &str = "docker/web";
    const SATA: &str = "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
    const MIB: u64 = 1 << 20;

    /// A container that fills the disk of another one, and a second disk that does nothing.
    fn host() -> Host {
        let mut host = Host::new();
        let did = Did { reads: 1900, read_bytes: 1900 * 4096, read_usec: 16_000, util_pct: 100, ..Did::default() };
        host.disk(0, "sda", SATA, did).disk(1, "sdb", SATA, Did::default());
        host.cgroup(WEB, 0.0, &[(0, 1700, 0, 1700 * 4096)]).cgroup("docker/db", 0.6, &[(0, 200, 0, 200 * 4096)]);
        host
    }

    fn file(path: &str, fs_type: &str, inode: u64) -> OpenFile {
        OpenFile {
            pid: 7,
            fd: 3,
            cgroup: CgroupPath::new(WEB.as_bytes()).unwrap(),
            path: path.into(),
            fs_type: fs_type.into(),
            dev: if fs_type == "overlay" { DevNum { major: 0, minor: 60 } } else { number(0) },
            inode,
            size: Bytes(MIB),
            modified: UnixMicros(1),
            pos: Bytes(0),
            write_only: true,
        }
    }

    /// The file at both moments, changed at the second.
    fn open(host: &mut Host, file: &OpenFile, change: impl Fn(&mut OpenFile)) {
        host.window.t0.open_files.push(file.clone());
        let mut now = file.clone();
        now.modified = UnixMicros(2);
        change(&mut now);
        host.window.t1.open_files.push(now);
    }

    /// What is said of the worst finding's files and logs, and the advice of that kind.
    fn said(host: &Host) -> (Vec<String>, Vec<String>) {
        let finding = host.findings().remove(0);
        assert_eq!(finding.id, "noisy-neighbour");
        let of_files = |evidence: &&Evidence| evidence.what == "hot file" || evidence.what.starts_with("json log");
        let told = finding.evidence.iter().filter(of_files).map(|evidence| match &evidence.value {
            Value::Word(word) => format!("{} {} {word}", evidence.aspect.as_str(), evidence.what),
            other => panic!("{other:?}"),
        });
        let advice = finding.advice.iter().map(|advice| advice.text.clone());
        (told.collect(), advice.filter(|text| text.contains("writable layer") || text.contains("json log")).collect())
    }

    #[test]
    fn a_log_that_grows_in_the_writable_layer_is_named_and_has_its_place_elsewhere() {
        let mut host = host();
        open(&mut host, &file("/var/log/app.log", "overlay", 1), |now| now.size = Bytes((1 + SECONDS * 3) * MIB));
        let (told, advice) = said(&host);
        assert_eq!(told, ["culprit hot file /var/log/app.log, 3.00 MiB/s, in its writable layer"]);
        assert!(
            advice[0].contains("keep /var/log out of the writable layer: a volume (-v NAME:/var/log)"),
            "{advice:?}"
        );
    }

    #[test]
    fn the_rate_is_that_of_growth_else_of_the_descriptor_else_none() {
        let now = |change: &dyn Fn(&mut OpenFile)| {
            let was = file("/x", "overlay", 1);
            let mut now = OpenFile { modified: UnixMicros(2), ..was.clone() };
            change(&mut now);
            written(&[&was], &now, 10.0)
        };
        let rate = Some(Written::PerSec(1_048_576.0));
        assert_eq!(now(&|file| file.size = Bytes(11 * MIB)), rate);
        assert_eq!(now(&|file| file.pos = Bytes(10 * MIB)), rate);
        assert_eq!(now(&|_| {}), Some(Written::InPlace));
        assert_eq!(now(&|file| file.size = Bytes(0)), Some(Written::Anew));
        assert_eq!(now(&|file| file.modified = UnixMicros(1)), None, "it was not written");
        assert_eq!(now(&|file| file.size = Bytes(MIB + 99)), None, "a line now and then");
        let reads = |file: &mut OpenFile| (file.pos, file.write_only) = (Bytes(10 * MIB), false);
        assert_eq!(now(&reads), Some(Written::InPlace), "what can read moves by reading too");
    }

    #[test]
    fn the_fastest_come_first_each_file_once_and_few_of_them() {
        let mut host = host();
        for (inode, mib) in [(1, 1), (2, 5), (3, 3), (4, 2)] {
            let file = file(&format!("/data/{inode}"), "ext4", inode);
            open(&mut host, &file, |now| now.size = Bytes((1 + SECONDS * mib) * MIB));
            let again = OpenFile { fd: 9, ..file };
            open(&mut host, &again, |now| now.size = Bytes((1 + SECONDS * mib) * MIB));
        }
        let (told, advice) = said(&host);
        let paths: Vec<&str> = told.iter().map(|text| text.split(' ').nth(3).unwrap()).collect();
        assert_eq!(paths, ["/data/2,", "/data/3,", "/data/4,"]);
        assert!(told[0].ends_with("5.00 MiB/s, on ext4") && advice.is_empty(), "{told:?} {advice:?}");
    }

    #[test]
    fn files_of_memory_and_of_another_disk_are_left_out() {
        let mut host = host();
        open(&mut host, &file("/dev/shm/x", "tmpfs", 1), |now| now.size = Bytes(99 * MIB));
        let other = OpenFile { dev: number(1), ..file("/backup/x", "ext4", 2) };
        open(&mut host, &other, |now| now.size = Bytes(99 * MIB));
        assert_eq!(said(&host).0, Vec::<String>::new());
    }

    #[test]
    fn a_file_that_was_not_open_at_first_has_no_rate() {
        let mut host = host();
        host.window.t1.open_files.push(file("/var/log/app.log", "overlay", 1));
        assert_eq!(said(&host).0, Vec::<String>::new());
    }

    /// The container's json log, grown by 2 MiB a second.
    fn log(host: &mut Host, size_max: Option<Bytes>) {
        for (snapshot, size) in [(&mut host.window.t0, 1), (&mut host.window.t1, 1 + SECONDS * 2)] {
            snapshot.containers = vec![Container {
                log_driver: Some("json-file".into()),
                log_path: Some("/var/lib/docker/containers/web/web-json.log".into()),
                log_size: Some(Bytes(size * MIB)),
                log_size_max: size_max,
                name: Some("web".into()),
                ..container(WEB)
            }];
        }
    }

    #[test]
    fn a_json_log_without_a_size_is_advised_one() {
        let mut host = host();
        log(&mut host, None);
        let (told, advice) = said(&host);
        assert_eq!(told, ["culprit json log grows 2.00 MiB/s, no max-size"]);
        assert!(advice[0].contains("--log-opt max-size=10m"), "{advice:?}");
        log(&mut host, Some(Bytes(10_000_000)));
        let (told, advice) = said(&host);
        assert_eq!(told, ["culprit json log grows 2.00 MiB/s, max-size 9.54 MiB"]);
        assert!(advice.is_empty(), "it is kept to a size: {advice:?}");
    }

    #[test]
    fn the_daemon_that_writes_all_logs_has_the_fastest_named() {
        let mut host = host();
        log(&mut host, None);
        let rates = crate::rates::Rates::of(&host.window);
        let scene = Scene::of(&host.window, &rates);
        let daemon = CgroupPath::new(b"system.slice/docker.service").unwrap();
        let subject = Subject {
            kind: SubjectKind::Workload(WorkloadKind::Unit),
            name: "unit/docker.service".into(),
            cgroup: Some(daemon.clone()),
            device: None,
        };
        let (log, per_sec) = growing_log(&scene, &subject, &daemon).unwrap();
        assert_eq!(of_log(&scene, log, per_sec, &daemon, Aspect::Culprit).what, "json log of docker/web");
        let other = CgroupPath::new(b"system.slice/nginx.service").unwrap();
        assert_eq!(growing_log(&scene, &subject, &other), None);
    }
}
