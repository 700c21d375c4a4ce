//! A scenario: a host with a known cause, what quell must say of it, and what proves that the situation came about.
//!
//! One file each in `lab/scenarios`, its name is the scenario's. The script runs in the guest with the words of
//! `lab/guest/lib.sh`. What may not be said is everything that the file does not allow: a list of forbidden verdicts would
//! have to be extended with every new rule.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::claim::Claim;
use super::disk::Model;
use super::image::Image;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub(crate) name: String,
    /// The situation, in a sentence.
    pub(crate) cause: String,
    /// The verdict that must come first.
    #[serde(default)]
    pub(crate) truth: String,
    /// In its place, for the lab's own tests: the run must end without results, for this reason.
    pub(crate) breaks: Option<String>,
    /// Verdicts that are right in the first place too.
    #[serde(default)]
    pub(crate) accept: Vec<String>,
    /// Whether the truth is one that quell cannot tell yet.
    pub(crate) rule: Option<RuleIs>,
    /// Warnings that may be said besides; all others are wrong.
    #[serde(default)]
    pub(crate) may_say: Vec<String>,
    /// Warnings that may become evidence of another one, and may not stand alone.
    #[serde(default)]
    pub(crate) explains: Vec<String>,
    /// The cgroup that the truth is about.
    pub(crate) victim: Option<String>,
    /// The cgroup that the truth blames.
    pub(crate) culprit: Option<String>,
    /// The disk that the truth is about.
    pub(crate) device: Option<String>,
    /// Ratios that prove the situation, by other numbers than quell's; where one fails the run is void.
    #[serde(default)]
    pub(crate) real: Vec<Claim>,
    /// Ratios between quell's numbers and those of fio or of the disk itself.
    #[serde(default)]
    pub(crate) numbers: Vec<Claim>,
    /// Whether `cargo xtask test` runs it.
    #[serde(default)]
    pub(crate) core: bool,
    /// Loads whose I/O may fail.
    #[serde(default)]
    pub(crate) may_fail: Vec<String>,
    /// More words for the kernel's command line.
    #[serde(default)]
    pub(crate) kernel_args: String,
    /// How long the script may take.
    #[serde(default = "usual_limit")]
    pub(crate) limit_seconds: u64,
    /// The guest's script.
    pub(crate) script: String,
    /// The disks by the names that the guest gives them: `vd*` are virtio, `sd*` SCSI, `nvme*` NVMe.
    pub(crate) disk: BTreeMap<String, DiskSpec>,
}

/// Where quell's rule for a truth is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleIs {
    /// Not written yet: the situation is kept for it, and nothing false may be said of it until then.
    Later,
}

fn usual_limit() -> u64 {
    75
}

/// A disk of the guest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiskSpec {
    /// What is on it.
    pub(crate) image: Image,
    /// How it behaves.
    #[serde(default)]
    pub(crate) model: Model,
    /// More properties of QEMU's device.
    #[serde(default)]
    pub(crate) properties: String,
}

impl Scenario {
    /// The scenario of this file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("{shown}"))?;
        let name = path.file_stem().and_then(|name| name.to_str()).with_context(|| format!("{shown}: no name"))?;
        let scenario: Self = toml::from_str(&text).with_context(|| format!("{shown}"))?;
        scenario.check().with_context(|| format!("{shown}"))?;
        Ok(Self { name: name.into(), ..scenario })
    }

    fn check(&self) -> Result<()> {
        ensure!(self.truth.is_empty() == self.breaks.is_some(), "one of `truth` and `breaks` is wanted");
        // A situation that nothing proves would pass whatever the guest did.
        let proved = self.breaks.is_some() || !self.real.is_empty();
        ensure!(proved, "`real` is empty: what shows that the situation came about?");
        for name in self.disk.keys() {
            Front::of(name)?;
        }
        // The guest counts its disks from the first letter, whatever they are called here.
        for (front, numbers) in [(Front::Virtio, "abcdef"), (Front::Scsi, "abcdef"), (Front::Nvme, "0123456")] {
            let names = self.disk.keys().filter(|name| Front::of(name).is_ok_and(|of| of == front));
            for (name, number) in names.zip(numbers.chars()) {
                let right = front.name(number);
                ensure!(*name == right, "disk {name} will be {right} in the guest");
            }
        }
        Ok(())
    }

    /// Every scenario of a folder, by name.
    pub(crate) fn all(dir: &Path) -> Result<Vec<Self>> {
        let entries = std::fs::read_dir(dir).with_context(|| format!("{}", dir.display()))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// Whether this may be the first verdict.
    pub(crate) fn is_right(&self, id: &str) -> bool {
        self.truth == id || self.accept.iter().any(|accepted| accepted == id)
    }

    /// Whether this may be said on its own.
    pub(crate) fn allows(&self, id: &str) -> bool {
        self.is_right(id) || self.may_say.iter().any(|allowed| allowed == id)
    }

    /// Whether this may be evidence of another finding.
    pub(crate) fn allows_as_evidence(&self, id: &str) -> bool {
        self.allows(id) || self.explains.iter().any(|allowed| allowed == id)
    }
}

/// How a disk is attached to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Virtio,
    Scsi,
    Nvme,
}

impl Front {
    /// What the guest calls the disk of this letter or number.
    fn name(self, number: char) -> String {
        match self {
            Self::Virtio => format!("vd{number}"),
            Self::Scsi => format!("sd{number}"),
            Self::Nvme => format!("nvme{number}n1"),
        }
    }

    /// The front of a disk of this name.
    pub(crate) fn of(name: &str) -> Result<Self> {
        Ok(match name {
            _ if name.starts_with("vd") => Self::Virtio,
            _ if name.starts_with("sd") => Self::Scsi,
            _ if name.starts_with("nvme") => Self::Nvme,
            _ => bail!("disk {name}: neither vd* (virtio), sd* (SCSI) nor nvme* (NVMe)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab");

    #[test]
    fn every_scenario_of_the_repository_reads_and_some_are_core() {
        let all = Scenario::all(&Path::new(LAB).join("scenarios")).unwrap();
        assert!(all.len() >= 24, "{}", all.len());
        assert!(all.iter().filter(|scenario| scenario.core).count() >= 5);
    }

    /// A slip here would show only in a VM.
    #[test]
    fn what_the_claims_name_is_made_by_the_script_and_every_id_is_known() {
        let all = Scenario::all(&Path::new(LAB).join("scenarios")).unwrap();
        let rules: Vec<&str> = quell_engine::findings::RULES.iter().map(|line| line.rule.id).collect();
        let later: Vec<&str> =
            all.iter().filter(|scenario| scenario.rule.is_some()).map(|scenario| scenario.truth.as_str()).collect();
        for scenario in &all {
            let name = &scenario.name;
            assert_eq!(
                rules.contains(&scenario.truth.as_str()),
                scenario.rule.is_none() && scenario.breaks.is_none(),
                "{name}"
            );
            for id in scenario.accept.iter().chain(&scenario.may_say).chain(&scenario.explains) {
                assert!(rules.contains(&id.as_str()) || later.contains(&id.as_str()), "{name}: {id} is no rule");
            }
            for claim in scenario.real.iter().chain(&scenario.numbers) {
                let claim = claim.to_string();
                for path in claim.split_whitespace().filter(|word| word.contains('.') && word.parse::<f64>().is_err()) {
                    let words: Vec<&str> = path.split('.').collect();
                    let in_a_loop = words[1].trim_end_matches(|c: char| c.is_ascii_digit());
                    let made = |word: &str| {
                        let names = [words[1].to_owned(), format!("{in_a_loop}$i")];
                        names.iter().any(|name| scenario.script.contains(&format!("{word} {name} ")))
                    };
                    let known = match words[0] {
                        "fio" => made("load") || made("before"),
                        "disk" => scenario.disk.contains_key(words[1]),
                        "seen" => {
                            let endings = ["_looks", "looks", "_pressure_pct", "_per_sec"];
                            let stem = endings.iter().find_map(|ending| words[1].strip_suffix(ending));
                            scenario.script.contains(stem.unwrap_or(words[1]))
                        }
                        "quell" => true,
                        _ => false,
                    };
                    assert!(known, "{name}: {path} is nothing that the script makes");
                }
            }
        }
    }

    #[test]
    fn a_scenario_that_nothing_proves_and_a_misspelt_key_are_refused() {
        let text = "cause = ''\ntruth = 'healthy'\nreal = []\nscript = ''\n[disk]";
        let scenario: Scenario = toml::from_str(text).unwrap();
        assert!(scenario.check().is_err());
        assert!(toml::from_str::<Scenario>(&text.replace("cause", "casue")).is_err());
    }
}
