//! Where the programs attach, and what is lost with each that this kernel refuses.

use quell_engine::snapshot::Stage;

/// How a program attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At a tracepoint, with its arguments' types from BTF.
    Tracepoint(&'static str),
    /// Where a function is entered.
    Entry(&'static str),
    /// Where a function returns.
    Exit(&'static str),
}

/// One program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook {
    /// Its name in the object.
    pub program: &'static str,
    /// Where it attaches.
    pub place: Place,
    /// Whether it is needed for the device stage, without which there is nothing.
    pub of_device: bool,
    /// The stage that nothing else shows.
    pub stage: Option<Stage>,
    /// What cannot be told without it, for people.
    pub lost: &'static str,
}

const fn hook(program: &'static str, place: Place, lost: &'static str) -> Hook {
    Hook { program, place, of_device: false, stage: None, lost }
}

/// Every program. What ends a request comes first, so that none is begun whose end is missed.
pub(crate) static HOOKS: [Hook; 7] = [
    Hook { of_device: true, ..hook("rq_complete", Place::Tracepoint("block_rq_complete"), "every stage") },
    Hook { of_device: true, ..hook("rq_issue", Place::Tracepoint("block_rq_issue"), "every stage") },
    Hook { of_device: true, ..hook("rq_requeue", Place::Tracepoint("block_rq_requeue"), "requeues") },
    hook("split", Place::Tracepoint("block_split"), "the time of split bios above the request"),
    hook("bio_queue", Place::Tracepoint("block_bio_queue"), "the time above the request"),
    Hook {
        stage: Some(Stage::Throttle),
        ..hook(
            "throttle_enter",
            Place::Entry("__blk_throtl_bio"),
            "stage throttle (io.max), which no total holds either",
        )
    },
    Hook {
        stage: Some(Stage::Qos),
        ..hook("qos_exit", Place::Exit("__rq_qos_throttle"), "stage qos (iocost, io.latency, wbt) apart from stage tag")
    },
];
