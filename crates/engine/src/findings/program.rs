//! Advice that knows the program: the setting of the database or backup that fits a finding.
//!
//! A program is known by the name of one of its processes, or by a word in its workload's name where the process says
//! nothing (`java`). The table is data: a line is a program, the findings it is for, and what to set. Such advice comes
//! after the rule's own: what the host can do needs no trust in a guess about a program.

use super::finding::{Advice, Finding};
use super::scene::{Scene, Workload};

/// Whose setting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The one who suffers.
    Victim,
    /// The one who is to blame.
    Culprit,
}

/// One setting.
struct Hint {
    /// The program, for people.
    program: &'static str,
    /// Names of its processes (15 bytes of them: `TASK_COMM_LEN`), or words in its workload's name.
    names: &'static [&'static str],
    role: Role,
    /// The findings it is for.
    findings: &'static [&'static str],
    /// What to set.
    text: &'static str,
    /// What that costs.
    risk: Option<&'static str>,
}

/// Every commit waits for a flush.
const SYNCS: &[&str] = &["fsync-bound", "slow-flush", "journal-bound", "media-without-plp"];

/// It reads more than it need.
const READS: &[&str] =
    &["serial-issuer", "device-saturated", "noisy-neighbour", "provider-cap", "readahead-amplification"];

/// Its writes come in bursts.
const BURSTS: &[&str] = &["writeback-storm", "dirty-throttled", "noisy-neighbour", "device-saturated"];

/// Somebody else is slowed down by it.
const LOADS: &[&str] = &["noisy-neighbour", "system-hog", "writeback-storm", "device-saturated", "throttled-by-io-max"];

/// InnoDB's settings hold for both; how commits are grouped is each one's own.
const INNODB: &[&str] = &["mysqld", "mariadbd"];
const MYSQL: &[&str] = &["mysqld"];
const MARIADB: &[&str] = &["mariadbd"];
const POSTGRES: &[&str] = &["postgres", "postmaster"];
const ELASTIC: &[&str] = &["elasticsearch", "opensearch"];

static HINTS: &[Hint] = &[
    hint(
        "MySQL",
        MYSQL,
        Role::Victim,
        SYNCS,
        "let more commits share a flush: binlog_group_commit_sync_delay=500 (microseconds)",
    )
    .risk("each commit takes that much longer"),
    hint(
        "MariaDB",
        MARIADB,
        Role::Victim,
        SYNCS,
        "let more commits share a flush: binlog_commit_wait_count=10 turns that on, with binlog_commit_wait_usec=500 in \
         place of its 100 ms",
    )
    .risk("each commit takes up to that much longer"),
    hint(
        "MySQL and MariaDB",
        INNODB,
        Role::Victim,
        SYNCS,
        "innodb_flush_log_at_trx_commit=2 with sync_binlog=1000 where a lost second is bearable",
    )
    .risk("a crash of the host loses the last second's commits"),
    hint(
        "MySQL and MariaDB",
        INNODB,
        Role::Victim,
        READS,
        "give innodb_buffer_pool_size more of the memory: a page in it is no read",
    ),
    hint(
        "MySQL and MariaDB",
        INNODB,
        Role::Culprit,
        BURSTS,
        "innodb_flush_method=O_DIRECT, and innodb_io_capacity near what the disk can bear",
    ),
    hint(
        "PostgreSQL",
        POSTGRES,
        Role::Victim,
        SYNCS,
        "let more commits share a flush: commit_delay=500 (microseconds)",
    )
    .risk("each commit takes that much longer"),
    hint("PostgreSQL", POSTGRES, Role::Victim, SYNCS, "synchronous_commit=off for the sessions that can lose a second")
        .risk("a crash loses their last commits, and damages nothing"),
    hint(
        "PostgreSQL",
        POSTGRES,
        Role::Victim,
        READS,
        "raise shared_buffers, and effective_io_concurrency so that scans read ahead",
    ),
    hint(
        "PostgreSQL",
        POSTGRES,
        Role::Culprit,
        BURSTS,
        "spread checkpoints: checkpoint_completion_target=0.9, checkpoint_flush_after=256kB, a larger max_wal_size",
    ),
    hint(
        "etcd",
        &["etcd"],
        Role::Victim,
        SYNCS,
        "give etcd's data directory a disk of its own; its log must reach the disk before it answers",
    ),
    hint(
        "etcd",
        &["etcd"],
        Role::Victim,
        LOADS,
        "raise --heartbeat-interval and --election-timeout until the disk is quiet, so that no leader is lost",
    )
    .risk("a dead leader is noticed that much later"),
    hint("Redis", &["redis-server", "valkey-server"], Role::Victim, SYNCS, "appendfsync everysec in place of always")
        .risk("a crash loses up to a second"),
    hint(
        "Redis",
        &["redis-server", "valkey-server"],
        Role::Victim,
        BURSTS,
        "no-appendfsync-on-rewrite yes, so that a rewrite of the log does not stop the writers",
    )
    .risk("a crash in the rewrite loses what was written since it began"),
    hint(
        "MongoDB",
        &["mongod"],
        Role::Victim,
        SYNCS,
        "raise storage.journal.commitIntervalMs, or ask for j:true only where it matters",
    )
    .risk("a crash loses up to that time"),
    hint(
        "Kafka",
        &["kafka"],
        Role::Victim,
        SYNCS,
        "leave log.flush.interval.messages unset: replication and not fsync keeps its promises",
    )
    .risk("with one replica a crash of the host loses what was not written back"),
    hint(
        "Kafka",
        &["kafka"],
        Role::Culprit,
        BURSTS,
        "lower vm.dirty_background_bytes on its host, so that its log is written back evenly",
    ),
    hint(
        "Elasticsearch",
        ELASTIC,
        Role::Victim,
        SYNCS,
        "index.translog.durability: async for indices that can be fed again",
    )
    .risk("a crash loses up to index.translog.sync_interval, 5 s"),
    hint(
        "Elasticsearch",
        ELASTIC,
        Role::Culprit,
        LOADS,
        "lower indices.recovery.max_bytes_per_sec and index.merge.scheduler.max_thread_count",
    ),
    hint(
        "CockroachDB",
        &["cockroach"],
        Role::Victim,
        SYNCS,
        "give each store a disk of its own, and its WAL another one by --wal-failover",
    ),
    hint("rsync", &["rsync"], Role::Culprit, LOADS, "rsync --bwlimit=RATE holds it at the source, without cgroups"),
    hint("pg_basebackup", &["pg_basebackup"], Role::Culprit, LOADS, "pg_basebackup --max-rate=RATE holds the backup"),
    hint(
        "XtraBackup",
        &["xtrabackup", "mariabackup", "mariadb-backup"],
        Role::Culprit,
        LOADS,
        "xtrabackup --throttle=N holds the backup to N copies of 10 MB a second",
    ),
    hint(
        "docker",
        &["dockerd"],
        Role::Culprit,
        LOADS,
        "image pulls download several layers at once: max-concurrent-downloads 1 in daemon.json",
    ),
    hint(
        "kubelet",
        &["kubelet", "containerd", "crio"],
        Role::Culprit,
        LOADS,
        "image pulls one after the other: serializeImagePulls: true, its default, in the kubelet's configuration",
    ),
];

const fn hint(
    program: &'static str,
    names: &'static [&'static str],
    role: Role,
    findings: &'static [&'static str],
    text: &'static str,
) -> Hint {
    Hint { program, names, role, findings, text, risk: None }
}

impl Hint {
    const fn risk(self, risk: &'static str) -> Self {
        Self { risk: Some(risk), ..self }
    }

    fn advice(&self) -> Advice {
        let advice = Advice::text(format!("{}: {}", self.program, self.text));
        self.risk.into_iter().fold(advice, Advice::risk)
    }
}

/// At most this many settings beside the rule's own advice.
const HINTS_MAX: usize = 2;

/// Adds to a finding what the program of its victim or culprit can be set to.
pub(super) fn add_hints(scene: &Scene, finding: &mut Finding) {
    let workload = |path: Option<&quell_units::CgroupPath>| {
        scene.workloads.iter().find(|workload| Some(&workload.path) == path).map(|workload| names_of(scene, workload))
    };
    let culprit = finding.culprit.as_ref().and_then(|culprit| workload(culprit.cgroup.as_ref())).unwrap_or_default();
    let mut victim = workload(finding.subject.cgroup.as_ref()).unwrap_or_default();
    victim.extend(told(scene));
    let of = |role| if role == Role::Victim { &victim } else { &culprit };
    // A saturated disk blames nobody: its user is the one who can change.
    let alone = finding.culprit.is_none();
    let fits = |hint: &&Hint| {
        let names = if hint.role == Role::Culprit && alone { &victim } else { of(hint.role) };
        hint.findings.contains(&finding.id) && names.iter().any(|name| is_of(name, hint.names))
    };
    finding.advice.extend(HINTS.iter().filter(fits).take(HINTS_MAX).map(Hint::advice));
}

/// The names that a workload may be known by: its own, and its processes'.
fn names_of(scene: &Scene, workload: &Workload) -> Vec<String> {
    let tasks = scene.window.t1.tasks.iter();
    let own = tasks.filter(|task| task.cgroup.as_ref().is_ok_and(|path| path.is_within(&workload.path)));
    let mut names: Vec<String> = own.map(|task| task.comm.clone()).collect();
    // The first part of a name is what runs it, and not what it is.
    let name = workload.name.split_once('/').map_or(workload.name.as_str(), |(_, name)| name);
    names.push(name.to_owned());
    names
}

/// The programs whose own logs were pasted.
fn told(scene: &Scene) -> Vec<String> {
    use quell_paste::Statement::{SlowSync, StuckWrite};
    let statements = scene.window.pasted.iter().flat_map(|pasted| &pasted.statements);
    let by = statements.filter_map(|statement| match statement {
        SlowSync { by, .. } | StuckWrite { by, .. } => Some(by.clone()),
        _ => None,
    });
    by.collect()
}

/// Whether a name is one of these, or has one of them as a word: `docker/shop-kafka-1` is of Kafka, `mysqldump` is not
/// of MySQL.
fn is_of(name: &str, names: &[&str]) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| names.contains(&word)) || names.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::table::rule;
    use super::*;

    #[test]
    fn a_name_is_taken_by_its_words() {
        assert!(is_of("docker/shop-kafka-1", &["kafka"]) && is_of("redis-server", &["redis-server"]));
        assert!(!is_of("mysqldump", MYSQL) && !is_of("pgbouncer", POSTGRES));
    }

    #[test]
    fn each_server_gets_the_settings_that_it_has() {
        let told = |comm: &str| -> Vec<String> {
            let of = HINTS.iter().filter(|hint| is_of(comm, hint.names) && hint.findings.contains(&"fsync-bound"));
            of.map(|hint| hint.text.to_owned()).collect()
        };
        let has = |comm: &str, setting: &str| told(comm).iter().any(|text| text.contains(setting));
        assert!(has("mysqld", "binlog_group_commit_sync_delay") && !has("mysqld", "binlog_commit_wait"));
        assert!(has("mariadbd", "binlog_commit_wait_count") && has("mariadbd", "binlog_commit_wait_usec"));
        assert!(!has("mariadbd", "binlog_group_commit_sync_delay"));
        assert!(has("mysqld", "innodb_flush_log") && has("mariadbd", "innodb_flush_log"));
    }

    #[test]
    fn every_process_name_fits_into_the_kernels_and_every_finding_is_a_rules() {
        for hint in HINTS {
            assert!(hint.names.iter().all(|name| name.len() <= 15), "{}", hint.program);
            for id in hint.findings {
                assert!(rule(id).is_some(), "{}: {id}", hint.program);
            }
        }
    }
}
