//! `quell.doctor/1`: the findings, worst first, with the numbers that made them.

use quell_engine::findings::{self, Finding, Scene};
use schemars::JsonSchema;
use serde::Serialize;

use super::device::Device;
use super::{Cost, Gap, Host};

/// The doctor's verdict.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell doctor")]
pub struct Document {
    /// `quell.doctor/1`.
    #[schemars(extend("const" = "quell.doctor/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// The target asked for, as it was understood; null where none was.
    pub target: Option<String>,
    /// The time that was watched; null where there was one moment alone.
    pub observed_seconds: Option<f64>,
    /// Light looks between the two moments.
    pub looks: usize,
    /// What was found, worst first.
    pub findings: Vec<FindingDoc>,
    /// Every whole device that was ever used, partitions counted with their disk.
    pub devices: Vec<Device>,
    /// Every workload that did I/O or waited.
    pub workloads: Vec<WorkloadDoc>,
    /// What is not known, and why.
    pub gaps: Vec<Gap>,
    /// What quell itself spent; null for a capture.
    pub cost: Option<Cost>,
    /// What a paste is made of; null where a host or a capture was read.
    pub paste: Option<Paste>,
}

/// What a paste is made of.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Paste {
    /// What was recognised, in order.
    pub recognised: Vec<Piece>,
    /// What was judged of it, where it holds more: `blocks 6 to 10 of 10`.
    pub judged: Vec<String>,
    /// Lines that were not recognised; blank ones do not count.
    pub unread_lines: u32,
    /// The first of them.
    pub unread: Vec<UnreadLine>,
}

/// A stretch of a paste that was recognised.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Piece {
    /// What it is: `iostat`, `io.stat`, `fio JSON`.
    pub format: String,
    /// Its first line, from 1.
    pub line: u32,
    /// How many lines it took.
    pub lines: u32,
}

/// A line that was not recognised.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnreadLine {
    /// Its number, from 1.
    pub line: u32,
    /// Its start.
    pub text: String,
}

/// One finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct FindingDoc {
    /// The rule that made it; `quell explain` tells more.
    pub id: &'static str,
    /// `critical`, `warning` or `info`.
    pub severity: &'static str,
    /// Its place among all findings of the host, from 1.
    pub rank: usize,
    /// How sure the rule is, 0 to 1.
    pub confidence: f64,
    /// Who suffers.
    pub subject: SubjectDoc,
    /// Who is to blame, where that is somebody else.
    pub culprit: Option<SubjectDoc>,
    /// One sentence.
    pub summary: String,
    /// The share of the time that somebody waits.
    pub stall_ratio: f64,
    /// The numbers behind it.
    pub evidence: Vec<EvidenceDoc>,
    /// What to do, the best first.
    pub advice: Vec<AdviceDoc>,
}

/// What a finding is about, or whom it blames.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Subject")]
pub struct SubjectDoc {
    /// `container`, `unit`, `cgroup`, `device` or `host`.
    pub kind: &'static str,
    /// Its name as people know it.
    pub name: String,
    /// Its path below the cgroup root; bytes that are no UTF-8 are `\xNN`.
    pub cgroup: Option<String>,
    /// The inode of the cgroup's directory.
    pub cgroup_id: Option<u64>,
    /// The disk it is about.
    pub device: Option<String>,
}

/// One number, or one word, that a finding rests on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Evidence")]
pub struct EvidenceDoc {
    /// Whom it describes: `victim`, `culprit`, `device`, `limit`, `memory`, `journal`, `tasks` or `explains`.
    pub aspect: &'static str,
    /// What was measured.
    pub what: String,
    /// The number or the word.
    pub value: ValueDoc,
    /// The number's unit; empty for a bare number or a word.
    pub unit: &'static str,
    /// The file it came from; empty where it is another finding.
    pub source: String,
}

/// A number or a word.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Value")]
pub enum ValueDoc {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// One thing to do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Advice")]
pub struct AdviceDoc {
    /// What, in a sentence.
    pub text: String,
    /// The command that does it, where there is one.
    pub command: Option<String>,
    /// The command that takes it back, where there is one.
    pub undo: Option<String>,
    /// What it may cost.
    pub risk: Option<String>,
}

/// One workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Workload")]
pub struct WorkloadDoc {
    /// Its name as people know it.
    pub name: String,
    /// `container`, `unit` or `cgroup`.
    pub kind: &'static str,
    /// Its path below the cgroup root; bytes that are no UTF-8 are `\xNN`.
    pub cgroup: String,
    /// The inode of the cgroup's directory.
    pub cgroup_id: u64,
    /// Share of the time it was stalled on I/O, by pressure or by what was seen of its tasks.
    pub stall_ratio: f64,
    /// Share of the time in which all of its tasks were stalled on I/O.
    pub io_pressure_full_pct: Option<f64>,
}

impl Document {
    /// The verdict on a scene; `findings` with their ranks.
    #[must_use]
    pub fn of(scene: &Scene, findings: &[(usize, &Finding)], target: Option<String>, cost: Option<Cost>) -> Self {
        let devices = scene.disks.iter().map(|disk| Device::of(scene, disk));
        Self {
            schema: "quell.doctor/1",
            host: Host::of(&scene.window.t1.host),
            target,
            observed_seconds: scene.rates.seconds.ok(),
            looks: scene.window.looks.len(),
            findings: findings.iter().map(|(rank, finding)| FindingDoc::of(scene, *rank, finding)).collect(),
            devices: devices.filter(|device| device.ever_used || device.in_flight > 0).collect(),
            workloads: scene.workloads.iter().filter(|workload| is_active(workload)).map(WorkloadDoc::of).collect(),
            gaps: super::gaps(scene.window, scene.rates),
            cost,
            paste: None,
        }
    }

    /// The same with what was recognised of a paste, where one was judged.
    #[must_use]
    pub fn with_paste(self, scene: &Scene, judged: &[String]) -> Self {
        let paste = scene.window.pasted.as_deref().map(|pasted| Paste::of(pasted, judged));
        Self { paste, ..self }
    }
}

impl Paste {
    fn of(pasted: &quell_paste::Pasted, judged: &[String]) -> Self {
        let piece = |piece: &quell_paste::Piece| Piece {
            format: piece.format.clone(),
            line: piece.line_no,
            lines: piece.lines,
        };
        let unread = |(line, text): &(u32, String)| UnreadLine {
            line: *line,
            text: quell_units::escape(text.as_bytes()).into_owned(),
        };
        Self {
            recognised: pasted.pieces.iter().map(piece).collect(),
            judged: judged.to_vec(),
            unread_lines: pasted.unread.lines,
            unread: pasted.unread.first.iter().map(unread).collect(),
        }
    }
}

/// Whether a workload did I/O or waited.
#[must_use]
pub fn is_active(workload: &findings::Workload) -> bool {
    let moved = |io: &quell_engine::rates::CgroupIo| io.read.ios_per_sec > 0.0 || io.write.ios_per_sec > 0.0;
    workload.io.iter().any(moved) || workload.stall_ratio() > 0.0
}

impl FindingDoc {
    fn of(scene: &Scene, rank: usize, finding: &Finding) -> Self {
        Self {
            id: finding.id,
            severity: finding.severity.as_str(),
            rank,
            confidence: finding.confidence,
            subject: SubjectDoc::of(scene, &finding.subject),
            culprit: finding.culprit.as_ref().map(|culprit| SubjectDoc::of(scene, culprit)),
            summary: finding.summary.clone(),
            stall_ratio: finding.stall_ratio,
            evidence: finding.evidence.iter().map(EvidenceDoc::of).collect(),
            advice: finding.advice.iter().map(AdviceDoc::of).collect(),
        }
    }
}

impl SubjectDoc {
    fn of(scene: &Scene, subject: &findings::Subject) -> Self {
        let cgroup = subject.cgroup.as_ref();
        Self {
            kind: subject.kind.as_str(),
            name: subject.name.clone(),
            cgroup: cgroup.map(ToString::to_string),
            cgroup_id: cgroup.and_then(|path| scene.cgroup(path)).map(|cgroup| cgroup.id.0),
            device: subject.device.map(|name| name.to_string()),
        }
    }
}

impl EvidenceDoc {
    fn of(evidence: &findings::Evidence) -> Self {
        use findings::Value;
        let value = match &evidence.value {
            Value::Pct(v) | Value::Usec(v) | Value::Bytes(v) => ValueDoc::Number(*v),
            Value::BytesPerSec(v) | Value::PerSec(v) | Value::Number(v) => ValueDoc::Number(*v),
            Value::Word(word) => ValueDoc::Word(word.clone()),
        };
        Self {
            aspect: evidence.aspect.as_str(),
            what: evidence.what.clone(),
            value,
            unit: evidence.value.unit(),
            source: evidence.source.clone(),
        }
    }
}

impl AdviceDoc {
    fn of(advice: &findings::Advice) -> Self {
        let findings::Advice { text, command, undo, risk } = advice.clone();
        Self { text, command, undo, risk }
    }
}

impl WorkloadDoc {
    fn of(workload: &findings::Workload) -> Self {
        Self {
            name: workload.name.clone(),
            kind: findings::SubjectKind::Workload(workload.kind).as_str(),
            cgroup: workload.path.to_string(),
            cgroup_id: workload.id.0,
            stall_ratio: workload.stall_ratio(),
            io_pressure_full_pct: workload.pressure_full_pct(),
        }
    }
}
