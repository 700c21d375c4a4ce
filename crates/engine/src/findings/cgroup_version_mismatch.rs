//! `cgroup-version-mismatch`: a program speaks one version of cgroups, and the host has the other.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "cgroup-version-mismatch",
    explain: Explain {
        means: "A program writes its limits in the way of one version of cgroups, and the host runs the other: they never \
            take effect.",
        kernel: "Version 1 has a hierarchy for each controller (/sys/fs/cgroup/blkio/.../blkio.throttle.*), version 2 one for \
            all (io.max). A controller belongs to one of them at a time.",
        evidence: "A path of version 1 that does not exist, or a program that says that it wants another version than the \
            host's.",
        change: "Take a version of the program that knows cgroup version 2; or, for version 2 itself, boot with \
            systemd.unified_cgroup_hierarchy=1.",
        undo: "Take the option out again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.statements().iter().find_map(|said| mismatch(scene, said)).into_iter().collect()
}

fn mismatch(scene: &Scene, said: &Statement) -> Option<Finding> {
    let host = scene.cgroup_version();
    let (by, wants, what) = match said {
        Statement::Refused { by, file, path, refusal: Refusal::NoFile, .. } if is_v1(file, path.as_deref()) => {
            (by, 1, path.as_ref().unwrap_or(file).clone())
        }
        Statement::WantsCgroup { by, version } => (by, *version, format!("wants version {version}")),
        _ => return None,
    };
    if host == Some(wants) {
        return None;
    }
    let has = if wants == 1 { 2 } else { 1 };
    let who = if by.is_empty() { "a program".into() } else { safe(by) };
    let advice = if wants == 1 {
        "take a version of it that writes io.max; what it would write today: echo 'MAJ:MIN wbps=N' > CGROUP/io.max"
    } else {
        "boot with systemd.unified_cgroup_hierarchy=1, the default of every distribution today"
    };
    Some(Finding {
        confidence: if host.is_some() { 0.95 } else { 0.8 },
        summary: format!(
            "{who} speaks cgroup version {wants} and this host has version {has}: its I/O limits are not set"
        ),
        evidence: vec![evidence(Aspect::Limit, "said", Value::Word(safe(&what)), PASTE)],
        advice: vec![Advice::text(advice)],
        ..finding(RULE.id, asker(by))
    })
}

/// Whether a file is of the old blkio hierarchy.
fn is_v1(file: &str, path: Option<&str>) -> bool {
    file.starts_with("blkio.") || path.is_some_and(|path| path.split('/').any(|part| part == "blkio"))
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Refusal, Statement};

    use crate::findings::written::Written;

    fn says(statements: Vec<Statement>) -> bool {
        let mut host = Written::new();
        host.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
        host.ids().contains(&"cgroup-version-mismatch")
    }

    #[test]
    fn a_path_of_version_1_that_is_not_there_is_named_unless_the_host_has_version_1() {
        let refused = |refusal| {
            let (by, file) = (String::new(), "blkio.throttle.read_bps_device".into());
            let path = Some("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device".into());
            Statement::Refused { by, file, path, dev: None, value: None, refusal }
        };
        assert!(says(vec![refused(Refusal::NoFile)]));
        assert!(!says(vec![refused(Refusal::NoFile), Statement::CgroupVersion(1)]));
        assert!(!says(vec![refused(Refusal::NoDevice)]), "the kernel answered: the file is there");
    }

    #[test]
    fn who_wants_what_the_host_has_gets_it() {
        let wants = || Statement::WantsCgroup { by: "greenplum".into(), version: 2 };
        assert!(says(vec![wants()]));
        assert!(says(vec![wants(), Statement::CgroupVersion(1)]));
        assert!(!says(vec![wants(), Statement::CgroupVersion(2)]));
    }
}
