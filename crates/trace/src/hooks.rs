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

/// What is lost with a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// The device stage, without which there is nothing.
    All,
    /// This, for people, and the stage that nothing else shows, where it is one.
    Part(&'static str, Option<Stage>),
}

/// One program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook {
    /// Its name in the object.
    pub program: &'static str,
    /// Where it attaches.
    pub place: Place,
    /// What is lost where it is refused.
    pub loss: Loss,
}

const fn hook(program: &'static str, place: Place, loss: Loss) -> Hook {
    Hook { program, place, loss }
}

/// Every program. What ends a request comes first, so that none is begun whose end is missed.
pub(crate) static HOOKS: [Hook; 7] = [
    hook("rq_complete", Place::Tracepoint("block_rq_complete"), Loss::All),
    hook("rq_issue", Place::Tracepoint("block_rq_issue"), Loss::All),
    hook("rq_requeue", Place::Tracepoint("block_rq_requeue"), Loss::All),
    hook("split", Place::Tracepoint("block_split"), Loss::Part("the time of split bios above the request", None)),
    hook("bio_queue", Place::Tracepoint("block_bio_queue"), Loss::Part("the time above the request", None)),
    hook(
        "throttle_enter",
        Place::Entry("__blk_throtl_bio"),
        Loss::Part("stage throttle (io.max), which no total holds either", Some(Stage::Throttle)),
    ),
    hook(
        "qos_exit",
        Place::Exit("__rq_qos_throttle"),
        Loss::Part("stage qos (iocost, io.latency, wbt) apart from stage tag", Some(Stage::Qos)),
    ),
];
